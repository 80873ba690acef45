-- For the list of revoked keys and who revoked them.
CREATE INDEX api_keys_revoked ON api_keys (account_id, revoked_at, id) WHERE revoked_at IS NOT NULL;
CREATE INDEX activities_subject ON activities (account_id, subject_id) WHERE subject_id IS NOT NULL;
