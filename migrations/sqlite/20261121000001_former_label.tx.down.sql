ALTER TABLE activities DROP COLUMN former_label;
