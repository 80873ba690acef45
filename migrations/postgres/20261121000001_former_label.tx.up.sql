-- What a key was called before it was renamed; null for every other activity,
-- and for those recorded before this column was there.
ALTER TABLE activities ADD COLUMN former_label text;
