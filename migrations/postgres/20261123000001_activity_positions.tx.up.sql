-- The place of a repeated activity in the list, which sorts by id, and the time of the last repeat.
-- Both are NULL without a repeat. The account is NULL if an older version counted the first one.
ALTER TABLE activity_repeats ADD COLUMN account_id uuid;
ALTER TABLE activity_repeats ADD COLUMN last_id uuid;
ALTER TABLE activity_repeats ADD COLUMN last_at timestamptz;
CREATE INDEX activity_repeats_account ON activity_repeats (account_id, last_id) WHERE last_id IS NOT NULL;
