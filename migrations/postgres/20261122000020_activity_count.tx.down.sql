ALTER TABLE activities DROP COLUMN count;
