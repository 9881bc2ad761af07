-- Entries name their execution by number: a small key, and the entries of recent executions lie together.
CREATE TABLE executions (
    number  INTEGER PRIMARY KEY,
    id      BLOB NOT NULL UNIQUE,
    created INTEGER NOT NULL,
    phase   INTEGER NOT NULL,
    caller  TEXT NOT NULL,
    due     INTEGER,
    seal    INTEGER NOT NULL
);
CREATE INDEX executions_by_phase ON executions (phase, created, id);
CREATE INDEX executions_by_caller ON executions (caller, phase, created, id);
CREATE INDEX executions_by_due ON executions (due) WHERE due IS NOT NULL;

-- The newest seq of an execution is its last row here: an append that changes nothing else writes one page.
CREATE TABLE entries (
    execution INTEGER NOT NULL,
    seq       INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    event     TEXT NOT NULL,
    seal      INTEGER NOT NULL,
    PRIMARY KEY (execution, seq)
) WITHOUT ROWID;

CREATE TABLE questions (
    question  BLOB PRIMARY KEY,
    execution INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX questions_by_execution ON questions (execution);

CREATE TABLE records (
    kind    TEXT NOT NULL,
    key     TEXT NOT NULL,
    value   TEXT NOT NULL,
    version INTEGER NOT NULL,
    seal    INTEGER NOT NULL,
    PRIMARY KEY (kind, key)
) WITHOUT ROWID;
