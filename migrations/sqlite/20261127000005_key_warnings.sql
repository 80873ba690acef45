-- What is known about the revocation of each active key for lack of use. A trigger adds the row of a
-- new key; the next look at a key that has ended deletes it.
CREATE TABLE key_warnings (
    api_key_id TEXT PRIMARY KEY REFERENCES api_keys (id) ON UPDATE CASCADE ON DELETE CASCADE,
    -- The nanoseconds of PORTAL_KEY_UNUSED_LIFETIME at the last look. If they are negative, the next
    -- look starts anew.
    policy     INTEGER NOT NULL DEFAULT -1,
    -- The time of the next look. NULL: never.
    check_at   TIMESTAMP,
    -- The start of the 14 days before the revocation, and when they end. NULL: not yet.
    since      TIMESTAMP,
    ends_at    TIMESTAMP,
    -- The last mails about it have this id in outbox.activity_id. NULL: none.
    warning_id TEXT,
    -- How often mails about it were queued, and how many times somebody got them.
    warnings   INTEGER NOT NULL DEFAULT 0,
    mailed     INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX key_warnings_due ON key_warnings (policy, check_at);
CREATE INDEX key_warnings_mail ON key_warnings (warning_id) WHERE warning_id IS NOT NULL;

CREATE TRIGGER api_keys_insert_watches_key AFTER INSERT ON api_keys
BEGIN
    INSERT INTO key_warnings (api_key_id) VALUES (NEW.id);
END;

-- Instances of the previous version change the lifetime too, and note it in the columns unused_ of
-- api_keys. After a rollback they need these again.
CREATE TRIGGER accounts_update_watches_keys_anew AFTER UPDATE OF unused_lifetime ON accounts
WHEN OLD.unused_lifetime IS NOT NEW.unused_lifetime
BEGIN
    UPDATE api_keys SET unused_policy = -1 WHERE account_id = NEW.id AND revoked_at IS NULL;
    UPDATE key_warnings SET policy = -1
    WHERE api_key_id IN (SELECT id FROM api_keys WHERE account_id = NEW.id AND revoked_at IS NULL);
END;
