-- What was done lately, in books of a bounded number of lines.
CREATE TABLE notes (
    number INTEGER PRIMARY KEY,
    book   TEXT NOT NULL,
    line   TEXT NOT NULL,
    seal   INTEGER NOT NULL
);
CREATE INDEX notes_by_book ON notes (book, number);
