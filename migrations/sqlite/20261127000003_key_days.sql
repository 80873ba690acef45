-- The days (UTC) on which the keys of each account had requests or calls, in the order of a report,
-- which reads no more of them than it has on a page. Triggers add them.
CREATE TABLE api_key_days (
    account_id TEXT NOT NULL,
    day        TIMESTAMP NOT NULL,
    api_key_id TEXT NOT NULL,
    PRIMARY KEY (account_id, day, api_key_id)
) WITHOUT ROWID;
CREATE INDEX api_key_days_day ON api_key_days (day);

CREATE TRIGGER api_key_last_uses_note_first_day AFTER INSERT ON api_key_last_uses WHEN NEW.hour IS NOT NULL
BEGIN
    INSERT INTO api_key_days (account_id, day, api_key_id)
    SELECT account_id, substr(NEW.hour, 1, 10) || ' 00:00:00+00:00', id FROM api_keys WHERE id = NEW.api_key_id
    ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER api_key_last_uses_note_day AFTER UPDATE OF hour ON api_key_last_uses
    WHEN NEW.hour IS NOT NULL AND substr(OLD.hour, 1, 10) IS NOT substr(NEW.hour, 1, 10)
BEGIN
    INSERT INTO api_key_days (account_id, day, api_key_id)
    SELECT account_id, substr(NEW.hour, 1, 10) || ' 00:00:00+00:00', id FROM api_keys WHERE id = NEW.api_key_id
    ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER api_key_daily_usage_note_day AFTER INSERT ON api_key_daily_usage
BEGIN
    INSERT INTO api_key_days (account_id, day, api_key_id)
    SELECT account_id, NEW.day, id FROM api_keys WHERE id = NEW.api_key_id
    ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER call_totals_note_day AFTER INSERT ON call_totals
BEGIN
    INSERT INTO api_key_days (account_id, day, api_key_id)
    SELECT account_id, NEW.day, id FROM api_keys WHERE id = NEW.subject_id
    ON CONFLICT DO NOTHING;
END;

-- The days that are known so far.
INSERT INTO api_key_days (account_id, day, api_key_id)
SELECT account_id, substr(used.hour, 1, 10) || ' 00:00:00+00:00', id FROM api_key_last_uses AS used JOIN api_keys ON id = api_key_id
WHERE used.hour IS NOT NULL
UNION SELECT account_id, past.day, id FROM api_key_daily_usage AS past JOIN api_keys ON id = api_key_id
UNION SELECT account_id, total.day, id FROM call_totals AS total JOIN api_keys ON id = subject_id;
