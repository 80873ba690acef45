-- The program generates the ids (UUIDv7). Times are UTC.

CREATE TABLE accounts (
    id          uuid PRIMARY KEY,
    name        text NOT NULL,
    created_at  timestamptz NOT NULL,
    disabled_at timestamptz
);

CREATE TABLE users (
    id            uuid PRIMARY KEY,
    account_id    uuid NOT NULL REFERENCES accounts (id),
    email         text NOT NULL,
    -- SHA-256 of the trimmed email in lower case. Users sometimes type a password into the email
    -- field, and it must not reach the database's log.
    email_hash    bytea NOT NULL UNIQUE,
    -- argon2id as a PHC string.
    password_hash text NOT NULL,
    created_at    timestamptz NOT NULL,
    disabled_at   timestamptz
);
CREATE INDEX users_account ON users (account_id);

CREATE TABLE agents (
    id         uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts (id),
    name       text NOT NULL,
    created_at timestamptz NOT NULL
);
CREATE INDEX agents_account ON agents (account_id);

CREATE TABLE api_keys (
    id          uuid PRIMARY KEY,
    account_id  uuid NOT NULL REFERENCES accounts (id),
    label       text NOT NULL,
    -- SHA-256 of the whole key; the key itself is stored nowhere.
    key_hash    bytea NOT NULL UNIQUE CHECK (length(key_hash) = 32),
    last_four   text NOT NULL,
    -- The form that generated the key. Each form generates at most one key.
    form_id     uuid NOT NULL,
    -- The key that this one replaces in a rotation.
    replaces_id uuid REFERENCES api_keys (id) ON DELETE SET NULL,
    created_at  timestamptz NOT NULL,
    revoked_at  timestamptz,
    UNIQUE (account_id, form_id)
);
CREATE INDEX api_keys_active ON api_keys (account_id) WHERE revoked_at IS NULL;
CREATE INDEX api_keys_replaces ON api_keys (replaces_id) WHERE replaces_id IS NOT NULL;

-- Usage is written in the background into tables of its own, so that authentication and revocation
-- never wait for its locks. There are no foreign keys, so that the flush of many keys does not fail
-- when an operator deletes one of them.
CREATE TABLE api_key_last_uses (
    api_key_id uuid PRIMARY KEY,
    used_at    timestamptz NOT NULL
);

CREATE TABLE api_key_hourly_usage (
    api_key_id uuid NOT NULL,
    hour       timestamptz NOT NULL,
    requests   bigint NOT NULL DEFAULT 0,
    refusals   bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (api_key_id, hour)
);
CREATE INDEX api_key_hourly_usage_hour ON api_key_hourly_usage (hour);

CREATE TABLE api_key_daily_usage (
    api_key_id uuid NOT NULL,
    day        timestamptz NOT NULL,
    requests   bigint NOT NULL DEFAULT 0,
    refusals   bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (api_key_id, day)
);
CREATE INDEX api_key_daily_usage_day ON api_key_daily_usage (day);

CREATE TABLE sessions (
    id             uuid PRIMARY KEY,
    user_id        uuid NOT NULL REFERENCES users (id),
    -- SHA-256 of the session token in the cookie.
    reference_hash bytea NOT NULL UNIQUE CHECK (length(reference_hash) = 32),
    created_at     timestamptz NOT NULL,
    last_seen_at   timestamptz NOT NULL,
    expires_at     timestamptz NOT NULL,
    first_address  text NOT NULL,
    last_address   text NOT NULL,
    user_agent     text NOT NULL
);
CREATE INDEX sessions_user ON sessions (user_id);
CREATE INDEX sessions_expiry ON sessions (expires_at);

-- Wrong passwords of the last minute. The subject is a SHA-256, because users sometimes type a
-- password into the email field.
CREATE TABLE sign_in_failures (
    id      uuid PRIMARY KEY,
    subject bytea NOT NULL,
    at      timestamptz NOT NULL
);
CREATE INDEX sign_in_failures_subject ON sign_in_failures (subject, at);
CREATE INDEX sign_in_failures_at ON sign_in_failures (at);

CREATE TABLE activities (
    id         uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts (id),
    actor_kind text NOT NULL,
    actor_id   uuid,
    action     text NOT NULL,
    subject_id uuid,
    -- The name of the subject at that time.
    label      text NOT NULL,
    address    text NOT NULL,
    at         timestamptz NOT NULL
);
CREATE INDEX activities_account ON activities (account_id, id);

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'activities is append-only';
END $$;
CREATE TRIGGER activities_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON activities
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- One row with one random value. An instance caches the facts that grant access together with this
-- value, and the cache is valid while the value is unchanged. Only equality matters, so a restored
-- backup or a failover cannot make an old cache look valid, as a counter could.
CREATE TABLE auth_epoch (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    value    bytea NOT NULL CHECK (length(value) = 16)
);

CREATE FUNCTION random_epoch() RETURNS bytea LANGUAGE sql VOLATILE AS $$
    -- Two v4 UUIDs have 244 random bits; the value is 128 bits of their hash.
    SELECT substring(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())) FROM 1 FOR 16)
$$;
INSERT INTO auth_epoch (value) VALUES (random_epoch());

CREATE FUNCTION renew_auth_epoch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE auth_epoch SET value = random_epoch();
    RETURN NULL;
END $$;

-- These triggers fire on every change that can take access away, also by an operator's own SQL.
-- Inserts only grant access, and labels and names are not cached.
CREATE TRIGGER api_keys_renew_epoch
    AFTER UPDATE OF id, account_id, key_hash, revoked_at OR DELETE OR TRUNCATE ON api_keys
    FOR EACH STATEMENT EXECUTE FUNCTION renew_auth_epoch();
CREATE TRIGGER agents_renew_epoch
    AFTER UPDATE OF id, account_id OR DELETE OR TRUNCATE ON agents
    FOR EACH STATEMENT EXECUTE FUNCTION renew_auth_epoch();
CREATE TRIGGER accounts_renew_epoch
    AFTER UPDATE OF id, disabled_at OR DELETE OR TRUNCATE ON accounts
    FOR EACH STATEMENT EXECUTE FUNCTION renew_auth_epoch();
