-- The label of a key before it was renamed; null for other activities and for older rows.
ALTER TABLE activities ADD COLUMN former_label text;
