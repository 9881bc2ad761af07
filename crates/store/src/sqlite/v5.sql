-- The entries of an execution that ended in the append that began it lie in its own row, and none of them among `entries`:
-- to find a place for each took longer than to write them down. Nothing is ever appended to such an execution.
-- From here on a journal may say nothing of limits, where they are the usual ones.
ALTER TABLE executions ADD COLUMN n_entries INTEGER;
ALTER TABLE executions ADD COLUMN ended INTEGER;
ALTER TABLE executions ADD COLUMN entries_seal INTEGER;
ALTER TABLE executions ADD COLUMN entries BLOB;
