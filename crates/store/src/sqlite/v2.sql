-- Executions that are no longer kept, so that whoever asks for one is told so. Only the newest are remembered.
CREATE TABLE forgotten (
    number INTEGER PRIMARY KEY,
    id     BLOB NOT NULL UNIQUE
);
