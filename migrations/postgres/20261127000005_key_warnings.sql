-- What is known about the revocation of each active key for lack of use. A trigger adds the row of a
-- new key; the next look at a key that has ended deletes it.
CREATE TABLE key_warnings (
    api_key_id uuid PRIMARY KEY REFERENCES api_keys (id) ON UPDATE CASCADE ON DELETE CASCADE,
    -- The nanoseconds of PORTAL_KEY_UNUSED_LIFETIME at the last look. If they are negative, the next
    -- look starts anew.
    policy     bigint NOT NULL DEFAULT -1,
    -- The time of the next look. NULL: never.
    check_at   timestamptz,
    -- The start of the 14 days before the revocation, and when they end. NULL: not yet.
    since      timestamptz,
    ends_at    timestamptz,
    -- The last mails about it have this id in outbox.activity_id. NULL: none.
    warning_id uuid,
    -- How often mails about it were queued, and how many times somebody got them.
    warnings   smallint NOT NULL DEFAULT 0,
    mailed     smallint NOT NULL DEFAULT 0
);
CREATE INDEX key_warnings_due ON key_warnings (policy, check_at);
CREATE INDEX key_warnings_mail ON key_warnings (warning_id) WHERE warning_id IS NOT NULL;

CREATE FUNCTION watch_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO key_warnings (api_key_id) VALUES (NEW.id);
    RETURN NULL;
END $$;
CREATE TRIGGER api_keys_insert_watches_key AFTER INSERT ON api_keys FOR EACH ROW EXECUTE FUNCTION watch_key();

-- Mails that wait have no id, so they are queued again.
INSERT INTO key_warnings (api_key_id, policy, check_at, since, ends_at, warnings, mailed)
SELECT id, unused_policy, unused_check_at, unused_since,
    CASE unused_warnings WHEN 2 THEN unused_warned_at + interval '3 days' ELSE unused_since + interval '14 days' END,
    unused_warnings, unused_mailed
FROM api_keys WHERE revoked_at IS NULL;

-- The columns unused_ of api_keys are for instances of the previous version, which read and write
-- them. A later version can drop them.
DROP INDEX api_keys_unused;
