-- The row of a key also counts the requests of one hour, which is usually the current one. A
-- trigger moves the counts of a past hour to the tables of hours and days. The background write of
-- a used key therefore updates one row, and the other two tables once an hour.
CREATE TABLE api_key_usage (
    api_key_id TEXT PRIMARY KEY,
    used_at    TIMESTAMP,
    hour       TIMESTAMP,
    requests   INTEGER NOT NULL DEFAULT 0,
    refusals   INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
INSERT INTO api_key_usage (api_key_id, used_at) SELECT api_key_id, used_at FROM api_key_last_uses;
DROP TABLE api_key_last_uses;
ALTER TABLE api_key_usage RENAME TO api_key_last_uses;

CREATE TRIGGER api_key_last_uses_keep_past_hour AFTER UPDATE OF hour ON api_key_last_uses
    WHEN OLD.hour <> NEW.hour
BEGIN
    INSERT INTO api_key_hourly_usage (api_key_id, hour, requests, refusals)
    VALUES (OLD.api_key_id, OLD.hour, OLD.requests, OLD.refusals)
    ON CONFLICT (api_key_id, hour) DO UPDATE SET
        requests = requests + excluded.requests, refusals = refusals + excluded.refusals;
    INSERT INTO api_key_daily_usage (api_key_id, day, requests, refusals)
    VALUES (OLD.api_key_id, substr(OLD.hour, 1, 10) || ' 00:00:00+00:00', OLD.requests, OLD.refusals)
    ON CONFLICT (api_key_id, day) DO UPDATE SET
        requests = requests + excluded.requests, refusals = refusals + excluded.refusals;
END;

-- The number of the last piece of usage that each instance has written. Package usage explains it.
CREATE TABLE usage_flushes (
    recorder_id TEXT PRIMARY KEY,
    piece       INTEGER NOT NULL,
    written_at  TIMESTAMP NOT NULL
);
