-- The days (UTC) on which the keys of each account had requests or calls, in the order of a report,
-- which reads no more of them than it has on a page. Triggers add them.
CREATE TABLE api_key_days (
    account_id uuid NOT NULL,
    day        timestamptz NOT NULL,
    api_key_id uuid NOT NULL,
    PRIMARY KEY (account_id, day, api_key_id)
);
CREATE INDEX api_key_days_day ON api_key_days (day);

-- The first argument of the trigger is the column with the key, the second one that with the time.
CREATE FUNCTION note_day() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    noted jsonb := to_jsonb(NEW);
BEGIN
    INSERT INTO api_key_days (account_id, day, api_key_id)
    SELECT account_id, date_trunc('day', (noted->>TG_ARGV[1])::timestamptz, 'UTC'), id
    FROM api_keys WHERE id = (noted->>TG_ARGV[0])::uuid
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER api_key_last_uses_note_first_day AFTER INSERT ON api_key_last_uses
    FOR EACH ROW WHEN (NEW.hour IS NOT NULL) EXECUTE FUNCTION note_day('api_key_id', 'hour');
CREATE TRIGGER api_key_last_uses_note_day AFTER UPDATE OF hour ON api_key_last_uses
    FOR EACH ROW WHEN (NEW.hour IS NOT NULL AND OLD.hour IS DISTINCT FROM NEW.hour
        AND date_trunc('day', OLD.hour, 'UTC') IS DISTINCT FROM date_trunc('day', NEW.hour, 'UTC'))
    EXECUTE FUNCTION note_day('api_key_id', 'hour');
CREATE TRIGGER api_key_daily_usage_note_day AFTER INSERT ON api_key_daily_usage
    FOR EACH ROW EXECUTE FUNCTION note_day('api_key_id', 'day');

CREATE TRIGGER call_totals_note_day AFTER INSERT ON call_totals
    FOR EACH ROW EXECUTE FUNCTION note_day('subject_id', 'day');

-- The days that are known so far.
INSERT INTO api_key_days (account_id, day, api_key_id)
SELECT account_id, date_trunc('day', used.hour, 'UTC'), id FROM api_key_last_uses AS used JOIN api_keys ON id = api_key_id
WHERE used.hour IS NOT NULL
UNION SELECT account_id, past.day, id FROM api_key_daily_usage AS past JOIN api_keys ON id = api_key_id
UNION SELECT account_id, total.day, id FROM call_totals AS total JOIN api_keys ON id = subject_id;
