-- The row of a key also counts the requests of one hour, which is usually the current one. A
-- trigger moves the counts of a past hour to the tables of hours and days. The background write of
-- a used key therefore updates one row, and the other two tables once an hour.
ALTER TABLE api_key_last_uses
    ALTER COLUMN used_at DROP NOT NULL,
    ADD COLUMN hour timestamptz,
    ADD COLUMN requests bigint NOT NULL DEFAULT 0,
    ADD COLUMN refusals bigint NOT NULL DEFAULT 0,
    -- No index has a column that changes. With space for a second version of each row, every update
    -- stays on its page and needs no new index entry (HOT).
    SET (fillfactor = 50);
ALTER TABLE api_key_daily_usage SET (fillfactor = 80);

CREATE FUNCTION keep_past_hour() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO api_key_hourly_usage AS stored (api_key_id, hour, requests, refusals)
    VALUES (OLD.api_key_id, OLD.hour, OLD.requests, OLD.refusals)
    ON CONFLICT (api_key_id, hour) DO UPDATE SET
        requests = stored.requests + excluded.requests, refusals = stored.refusals + excluded.refusals;
    INSERT INTO api_key_daily_usage AS stored (api_key_id, day, requests, refusals)
    VALUES (OLD.api_key_id, date_trunc('day', OLD.hour, 'UTC'), OLD.requests, OLD.refusals)
    ON CONFLICT (api_key_id, day) DO UPDATE SET
        requests = stored.requests + excluded.requests, refusals = stored.refusals + excluded.refusals;
    RETURN NULL;
END $$;
CREATE TRIGGER api_key_last_uses_keep_past_hour AFTER UPDATE OF hour ON api_key_last_uses
    FOR EACH ROW WHEN (OLD.hour <> NEW.hour) EXECUTE FUNCTION keep_past_hour();

-- The number of the last piece of usage that each instance has written. Package usage explains it.
CREATE TABLE usage_flushes (
    recorder_id uuid PRIMARY KEY,
    piece       bigint NOT NULL,
    written_at  timestamptz NOT NULL
);
