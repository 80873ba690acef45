-- The user who generated the key; NULL for an operator. For older keys only the activity has it.
ALTER TABLE api_keys ADD COLUMN created_by TEXT;
