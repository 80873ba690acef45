-- The program generates the ids (UUIDv7). Ids and times (UTC) are text. Tables with triggers have
-- no rowid, because a statement could replace a row by its rowid without firing the triggers.

CREATE TABLE accounts (
    id          TEXT PRIMARY KEY,
    name        TEXT NOT NULL,
    created_at  TIMESTAMP NOT NULL,
    disabled_at TIMESTAMP
) WITHOUT ROWID;

CREATE TABLE users (
    id            TEXT PRIMARY KEY,
    account_id    TEXT NOT NULL REFERENCES accounts (id),
    email         TEXT NOT NULL,
    -- SHA-256 of the trimmed email in lower case. Users sometimes type a password into the email
    -- field, and it must not reach the database's log.
    email_hash    BLOB NOT NULL UNIQUE,
    -- argon2id as a PHC string.
    password_hash TEXT NOT NULL,
    created_at    TIMESTAMP NOT NULL,
    disabled_at   TIMESTAMP
);
CREATE INDEX users_account ON users (account_id);

CREATE TABLE agents (
    id         TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    name       TEXT NOT NULL,
    created_at TIMESTAMP NOT NULL
) WITHOUT ROWID;
CREATE INDEX agents_account ON agents (account_id);

CREATE TABLE api_keys (
    id          TEXT PRIMARY KEY,
    account_id  TEXT NOT NULL REFERENCES accounts (id),
    label       TEXT NOT NULL,
    -- SHA-256 of the whole key; the key itself is stored nowhere.
    key_hash    BLOB NOT NULL UNIQUE CHECK (length(key_hash) = 32),
    last_four   TEXT NOT NULL,
    -- The form that generated the key. Each form generates at most one key.
    form_id     TEXT NOT NULL,
    -- The key that this one replaces in a rotation.
    replaces_id TEXT REFERENCES api_keys (id) ON DELETE SET NULL,
    created_at  TIMESTAMP NOT NULL,
    revoked_at  TIMESTAMP,
    UNIQUE (account_id, form_id)
) WITHOUT ROWID;
CREATE INDEX api_keys_active ON api_keys (account_id) WHERE revoked_at IS NULL;
CREATE INDEX api_keys_replaces ON api_keys (replaces_id) WHERE replaces_id IS NOT NULL;

-- Usage is written in the background into tables of its own, so that authentication and revocation
-- never wait for its locks. There are no foreign keys, so that the flush of many keys does not fail
-- when an operator deletes one of them.
CREATE TABLE api_key_last_uses (
    api_key_id TEXT PRIMARY KEY,
    used_at    TIMESTAMP NOT NULL
);

CREATE TABLE api_key_hourly_usage (
    api_key_id TEXT NOT NULL,
    hour       TIMESTAMP NOT NULL,
    requests   INTEGER NOT NULL DEFAULT 0,
    refusals   INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (api_key_id, hour)
);
CREATE INDEX api_key_hourly_usage_hour ON api_key_hourly_usage (hour);

CREATE TABLE api_key_daily_usage (
    api_key_id TEXT NOT NULL,
    day        TIMESTAMP NOT NULL,
    requests   INTEGER NOT NULL DEFAULT 0,
    refusals   INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (api_key_id, day)
);
CREATE INDEX api_key_daily_usage_day ON api_key_daily_usage (day);

CREATE TABLE sessions (
    id             TEXT PRIMARY KEY,
    user_id        TEXT NOT NULL REFERENCES users (id),
    -- SHA-256 of the session token in the cookie.
    reference_hash BLOB NOT NULL UNIQUE CHECK (length(reference_hash) = 32),
    created_at     TIMESTAMP NOT NULL,
    last_seen_at   TIMESTAMP NOT NULL,
    expires_at     TIMESTAMP NOT NULL,
    first_address  TEXT NOT NULL,
    last_address   TEXT NOT NULL,
    user_agent     TEXT NOT NULL
);
CREATE INDEX sessions_user ON sessions (user_id);
CREATE INDEX sessions_expiry ON sessions (expires_at);

-- Wrong passwords of the last minute. The subject is a SHA-256, because users sometimes type a
-- password into the email field.
CREATE TABLE sign_in_failures (
    id      TEXT PRIMARY KEY,
    subject BLOB NOT NULL,
    at      TIMESTAMP NOT NULL
);
CREATE INDEX sign_in_failures_subject ON sign_in_failures (subject, at);
CREATE INDEX sign_in_failures_at ON sign_in_failures (at);

CREATE TABLE activities (
    id         TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    actor_kind TEXT NOT NULL,
    actor_id   TEXT,
    action     TEXT NOT NULL,
    subject_id TEXT,
    -- The name of the subject at that time.
    label      TEXT NOT NULL,
    address    TEXT NOT NULL,
    at         TIMESTAMP NOT NULL
) WITHOUT ROWID;
CREATE INDEX activities_account ON activities (account_id, id);

CREATE TRIGGER activities_no_update BEFORE UPDATE ON activities
BEGIN
    SELECT RAISE(ABORT, 'activities is append-only');
END;
CREATE TRIGGER activities_no_delete BEFORE DELETE ON activities
BEGIN
    SELECT RAISE(ABORT, 'activities is append-only');
END;
CREATE TRIGGER activities_no_replace BEFORE INSERT ON activities
    WHEN EXISTS (SELECT 1 FROM activities WHERE id = NEW.id)
BEGIN
    SELECT RAISE(ABORT, 'activities is append-only');
END;

-- One row with one random value. An instance caches the facts that grant access together with this
-- value, and the cache is valid while the value is unchanged. Only equality matters, so a restored
-- backup cannot make an old cache look valid, as a counter could.
CREATE TABLE auth_epoch (
    only_row INTEGER PRIMARY KEY DEFAULT 1 CHECK (only_row = 1),
    value    BLOB NOT NULL CHECK (length(value) = 16)
);
INSERT INTO auth_epoch (value) VALUES (randomblob(16));

-- These triggers fire on every change that can take access away, also by an operator's own SQL.
-- Inserts only grant access, and labels and names are not cached. But SQLite's INSERT OR REPLACE
-- and UPDATE OR REPLACE delete rows without firing a delete trigger. So there are triggers for an
-- insert over an existing row, and for an update of form_id, which is unique.
CREATE TRIGGER api_keys_update_renews_epoch AFTER UPDATE OF id, account_id, key_hash, form_id, revoked_at ON api_keys
BEGIN
    UPDATE auth_epoch SET value = randomblob(16);
END;
CREATE TRIGGER api_keys_delete_renews_epoch AFTER DELETE ON api_keys
BEGIN
    UPDATE auth_epoch SET value = randomblob(16);
END;
CREATE TRIGGER agents_update_renews_epoch AFTER UPDATE OF id, account_id ON agents
BEGIN
    UPDATE auth_epoch SET value = randomblob(16);
END;
CREATE TRIGGER agents_delete_renews_epoch AFTER DELETE ON agents
BEGIN
    UPDATE auth_epoch SET value = randomblob(16);
END;
CREATE TRIGGER accounts_update_renews_epoch AFTER UPDATE OF id, disabled_at ON accounts
BEGIN
    UPDATE auth_epoch SET value = randomblob(16);
END;
CREATE TRIGGER accounts_delete_renews_epoch AFTER DELETE ON accounts
BEGIN
    UPDATE auth_epoch SET value = randomblob(16);
END;
CREATE TRIGGER api_keys_replace_renews_epoch BEFORE INSERT ON api_keys
    WHEN EXISTS (SELECT 1 FROM api_keys WHERE id = NEW.id OR key_hash = NEW.key_hash
        OR (account_id = NEW.account_id AND form_id = NEW.form_id))
BEGIN
    UPDATE auth_epoch SET value = randomblob(16);
END;
CREATE TRIGGER agents_replace_renews_epoch BEFORE INSERT ON agents
    WHEN EXISTS (SELECT 1 FROM agents WHERE id = NEW.id)
BEGIN
    UPDATE auth_epoch SET value = randomblob(16);
END;
CREATE TRIGGER accounts_replace_renews_epoch BEFORE INSERT ON accounts
    WHEN EXISTS (SELECT 1 FROM accounts WHERE id = NEW.id)
BEGIN
    UPDATE auth_epoch SET value = randomblob(16);
END;
