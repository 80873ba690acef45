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

-- Instances of the previous version change the lifetime too, and note it in the columns unused_ of
-- api_keys. After a rollback they need these again.
CREATE FUNCTION watch_keys_anew() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE api_keys SET unused_policy = -1 WHERE account_id = NEW.id AND revoked_at IS NULL;
    UPDATE key_warnings SET policy = -1
    WHERE api_key_id IN (SELECT id FROM api_keys WHERE account_id = NEW.id AND revoked_at IS NULL);
    RETURN NULL;
END $$;
CREATE TRIGGER accounts_update_watches_keys_anew AFTER UPDATE OF unused_lifetime ON accounts
    FOR EACH ROW WHEN (OLD.unused_lifetime IS DISTINCT FROM NEW.unused_lifetime) EXECUTE FUNCTION watch_keys_anew();
