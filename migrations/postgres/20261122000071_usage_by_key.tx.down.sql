DROP TABLE usage_flushes;
-- The trigger keeps the counts of the current hour.
UPDATE api_key_last_uses SET hour = '-infinity' WHERE hour IS NOT NULL;
DROP TRIGGER api_key_last_uses_keep_past_hour ON api_key_last_uses;
DROP FUNCTION keep_past_hour;
DELETE FROM api_key_last_uses WHERE used_at IS NULL;
ALTER TABLE api_key_daily_usage RESET (fillfactor);
ALTER TABLE api_key_last_uses
    ALTER COLUMN used_at SET NOT NULL,
    DROP COLUMN hour,
    DROP COLUMN requests,
    DROP COLUMN refusals,
    RESET (fillfactor);
