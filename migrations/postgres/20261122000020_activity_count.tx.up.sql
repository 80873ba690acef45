-- The number of sessions that were ended at once; 1 for other activities.
ALTER TABLE activities ADD COLUMN count bigint NOT NULL DEFAULT 1;
