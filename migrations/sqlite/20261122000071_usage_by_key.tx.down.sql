DROP TABLE usage_flushes;
-- The trigger keeps the counts of the current hour.
UPDATE api_key_last_uses SET hour = '' WHERE hour IS NOT NULL;
CREATE TABLE api_key_usage (
    api_key_id TEXT PRIMARY KEY,
    used_at    TIMESTAMP NOT NULL
);
INSERT INTO api_key_usage (api_key_id, used_at) SELECT api_key_id, used_at FROM api_key_last_uses WHERE used_at IS NOT NULL;
DROP TABLE api_key_last_uses;
ALTER TABLE api_key_usage RENAME TO api_key_last_uses;
