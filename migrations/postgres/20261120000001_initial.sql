-- The schema for PostgreSQL. The file for SQLite has the same tables in the same order, and the
-- same names of columns, indexes and triggers.
--
-- The program generates the ids (UUIDv7). Times are UTC. A hash is a SHA-256 unless its comment
-- says otherwise.

-- Customers.

CREATE TABLE accounts (
    id                     uuid PRIMARY KEY,
    name                   text NOT NULL,
    -- Whether every user of the account needs an authenticator app or a passkey.
    second_factor_required boolean NOT NULL DEFAULT false,
    -- Whether demo seed created it and may replace it.
    seeded                 boolean NOT NULL DEFAULT false,
    created_at             timestamptz NOT NULL,
    disabled_at            timestamptz,
    -- The limits of its calls as JSON. NULL: none.
    limits                 text,
    -- The nanoseconds without a use after which keys are revoked. NULL: as the portal is
    -- configured.
    unused_lifetime        bigint
);

-- For the question whether any limit is set.
CREATE INDEX accounts_limited ON accounts (id) WHERE limits IS NOT NULL;

CREATE TABLE users (
    id              uuid PRIMARY KEY,
    account_id      uuid NOT NULL REFERENCES accounts (id),
    -- Owners manage the users of their account, members do not.
    role            text NOT NULL CHECK (role IN ('owner', 'member')),
    email           text NOT NULL,
    -- Hash of the trimmed email in lower case. Users sometimes type a password into the email
    -- field, and it must not reach the database's log.
    email_hash      bytea NOT NULL UNIQUE,
    -- Since when the user's emails are proven: a link mailed to the email was used, or an operator
    -- gave it. NULL: nobody has proved the email.
    email_proven_at timestamptz,
    -- argon2id as a PHC string.
    password_hash   text NOT NULL,
    -- The browsers that the user has signed in with are known until this changes.
    known_browsers  integer NOT NULL DEFAULT 0,
    created_at      timestamptz NOT NULL,
    last_sign_in_at timestamptz,
    disabled_at     timestamptz,
    -- A removed user stays for the account's activity log, but is disabled, and its email is free.
    removed_at      timestamptz
);
CREATE INDEX users_account ON users (account_id);
-- For the purge of users who were removed long ago.
CREATE INDEX users_removed ON users (removed_at) WHERE removed_at IS NOT NULL;

CREATE TABLE agents (
    id         uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts (id),
    name       text NOT NULL,
    created_at timestamptz NOT NULL,
    -- While it is set, the agent is refused like one that was removed.
    paused_at  timestamptz
);
-- For the list of agents, which is read page by page.
CREATE INDEX agents_by_name ON agents (account_id, lower(name), name, id);

CREATE TABLE api_keys (
    id          uuid PRIMARY KEY,
    account_id  uuid NOT NULL REFERENCES accounts (id),
    label       text NOT NULL,
    -- Hash of the whole key; the key itself is stored nowhere. NULL for a key without a secret.
    key_hash    bytea UNIQUE CHECK (length(key_hash) = 32),
    last_four   text NOT NULL,
    -- What the key is for, which never changes: agents and tokens, or only reports.
    access      text NOT NULL DEFAULT 'agents' CHECK (access IN ('agents', 'reports')),
    -- The form that generated the key. Each form generates at most one key.
    form_id     uuid NOT NULL,
    -- The key that this one replaces in a rotation.
    replaces_id uuid REFERENCES api_keys (id) ON DELETE SET NULL,
    -- The user who generated the key; NULL for an operator.
    created_by  uuid,
    created_at  timestamptz NOT NULL,
    revoked_at  timestamptz,
    -- Who reported the key as leaked, and where it was found; NULL for a key that nobody reported.
    leak_reporter text,
    leak_url    text,
    -- From then on the key is refused, by the database's clock. NULL: never.
    expires_at  timestamptz,
    -- The nanoseconds until expires_at when it was last set, for a rotation.
    lifetime    bigint,
    -- When the owners were last told that the key expires; NULL if they were not, or if the expiry
    -- was set since.
    expiry_warned_at timestamptz,
    -- The recorded activities about the expiry: 0 none, 1 that the key expires, 2 that it has
    -- expired.
    expiry_recorded smallint NOT NULL DEFAULT 0,
    -- The nanoseconds of PORTAL_KEY_UNUSED_LIFETIME when it was last looked whether the key is
    -- unused; negative if that is to be done anew. Then the time of the next look, NULL: never, the
    -- start of the 14 days before the revocation, when and how often mails about it were queued,
    -- and how many times somebody got them.
    unused_policy bigint NOT NULL DEFAULT -1,
    unused_check_at timestamptz,
    unused_since timestamptz,
    unused_warned_at timestamptz,
    unused_warnings smallint NOT NULL DEFAULT 0,
    unused_mailed smallint NOT NULL DEFAULT 0,
    -- JSON lists: the ids of the agents that the key reaches, and the networks (CIDR) that it is
    -- accepted from. NULL: all of them.
    agents      text,
    networks    text,
    -- The limits of its calls as JSON. NULL: none.
    limits      text,
    note        text NOT NULL DEFAULT '',
    -- What the user wrote when the key was revoked.
    revocation_reason text NOT NULL DEFAULT '',
    -- How a client proves that it may use the key: with its value, or with a token that the trust
    -- rule accepts. The rule is JSON. Its version changes whenever it is saved, which ends the
    -- access tokens from before. The pins, which are JSON too, are claims of the first token.
    credential  text NOT NULL DEFAULT 'secret' CHECK (credential IN ('secret', 'workload')),
    trust       text,
    trust_version uuid,
    trust_pins  text,
    CONSTRAINT api_keys_secret_check CHECK ((credential = 'secret') = (key_hash IS NOT NULL)),
    CONSTRAINT api_keys_workload_check CHECK ((credential = 'workload') = (trust IS NOT NULL AND trust_version IS NOT NULL)),
    UNIQUE (account_id, form_id)
);
-- For the lists of all keys, and of revoked and expired keys, which are read page by page.
CREATE INDEX api_keys_account ON api_keys (account_id, id);
CREATE INDEX api_keys_ended ON api_keys (account_id, COALESCE(revoked_at, expires_at), id)
    WHERE COALESCE(revoked_at, expires_at) IS NOT NULL;
-- For the active keys. Because it follows api_keys_account, SQLite prefers it.
CREATE INDEX api_keys_active ON api_keys (account_id, id) WHERE revoked_at IS NULL;
-- For the mails about keys that expire.
CREATE INDEX api_keys_expiry ON api_keys (expires_at) WHERE revoked_at IS NULL AND expires_at IS NOT NULL;
-- For the activities about keys that expire. It has no key whose expiry is recorded.
CREATE INDEX api_keys_expiry_unrecorded ON api_keys (expiry_recorded, expires_at)
    WHERE revoked_at IS NULL AND expiry_recorded < 2;
-- For the keys at which it is to be looked whether they are unused. The second condition, which all
-- rows meet, keeps other statements from reading all active keys with this index.
CREATE INDEX api_keys_unused ON api_keys (unused_policy, unused_check_at) WHERE revoked_at IS NULL AND unused_policy >= -1;
-- For the question whether any limit is set.
CREATE INDEX api_keys_limited ON api_keys (account_id) WHERE limits IS NOT NULL AND revoked_at IS NULL;
-- For the notice about leaked keys.
CREATE INDEX api_keys_leaked ON api_keys (account_id, revoked_at) WHERE leak_reporter IS NOT NULL;
CREATE INDEX api_keys_replaces ON api_keys (replaces_id) WHERE replaces_id IS NOT NULL;
-- For the purge of users who were removed long ago.
CREATE INDEX api_keys_creator ON api_keys (created_by) WHERE created_by IS NOT NULL;

-- The exchanges of tokens whose issuer and signature were right: the last 20 of each key.
CREATE TABLE exchanges (
    id         uuid PRIMARY KEY,
    api_key_id uuid NOT NULL,
    at         timestamptz NOT NULL,
    -- Why the token was refused; empty: accepted.
    reason     text NOT NULL,
    address    text NOT NULL
);
CREATE INDEX exchanges_of_key ON exchanges (api_key_id, id);

-- Tokens that are accepted once: a hash of issuer and jti, until the token expires.
CREATE TABLE used_tokens (
    token_hash bytea PRIMARY KEY CHECK (length(token_hash) = 32),
    expires_at timestamptz NOT NULL
);
CREATE INDEX used_tokens_expiry ON used_tokens (expires_at);

-- Usage. It is written in the background into tables of its own, so that authentication and
-- revocation never wait for its locks. There are no foreign keys, so that the flush of many keys
-- does not fail when an operator deletes one of them.

-- The row of a key has its last use, and the counts of one hour, which is usually the current one.
-- A trigger moves the counts of a past hour to the tables of hours and days. So the background
-- write of a used key updates one row, and the other two tables once an hour.
CREATE TABLE api_key_last_uses (
    api_key_id uuid PRIMARY KEY,
    used_at    timestamptz,
    hour       timestamptz,
    requests   bigint NOT NULL DEFAULT 0,
    refusals   bigint NOT NULL DEFAULT 0
    -- No index has a column that changes. With space for a second version of each row, every update
    -- stays on its page and needs no new index entry (HOT).
) WITH (fillfactor = 50);

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
) WITH (fillfactor = 80);
CREATE INDEX api_key_daily_usage_day ON api_key_daily_usage (day);

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

-- Where the requests of each key come from, by day, also those that were refused for their address,
-- but not those with a key that is no longer active. A key has at most 20 sources on a day: for a
-- new one, a trigger adds the one of the others that has the fewest requests to a row with an empty
-- address and client. The addresses are personal data: the rows are deleted after 90 days.
CREATE TABLE api_key_sources (
    api_key_id uuid NOT NULL,
    day        timestamptz NOT NULL,
    -- An IPv4 address, an IPv6 network (/64) or "Unknown".
    address    text NOT NULL,
    -- The first product of the User-Agent, or "Unknown".
    client     text NOT NULL,
    requests   bigint NOT NULL,
    first_seen timestamptz NOT NULL,
    last_seen  timestamptz NOT NULL,
    PRIMARY KEY (api_key_id, day, address, client)
) WITH (fillfactor = 80);
CREATE INDEX api_key_sources_day ON api_key_sources (day);

CREATE FUNCTION keep_most_used_sources() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    least api_key_sources;
BEGIN
    IF 20 < (SELECT count(*) FROM api_key_sources WHERE api_key_id = NEW.api_key_id AND day = NEW.day AND client <> '') THEN
        DELETE FROM api_key_sources WHERE (api_key_id, day, address, client) IN (
            SELECT api_key_id, day, address, client FROM api_key_sources
            WHERE api_key_id = NEW.api_key_id AND day = NEW.day AND client <> '' AND (address, client) <> (NEW.address, NEW.client)
            ORDER BY requests, last_seen, address, client LIMIT 1)
        RETURNING api_key_id, day, address, client, requests, first_seen, last_seen INTO least;
        INSERT INTO api_key_sources AS others (api_key_id, day, address, client, requests, first_seen, last_seen)
        VALUES (least.api_key_id, least.day, '', '', least.requests, least.first_seen, least.last_seen)
        ON CONFLICT (api_key_id, day, address, client) DO UPDATE SET requests = others.requests + excluded.requests,
            first_seen = LEAST(others.first_seen, excluded.first_seen), last_seen = GREATEST(others.last_seen, excluded.last_seen);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER api_key_sources_keep_most_used AFTER INSERT ON api_key_sources
    FOR EACH ROW WHEN (NEW.client <> '') EXECUTE FUNCTION keep_most_used_sources();

-- The last 50 refused requests of each key of 7 days. The program deletes older ones when it
-- writes. The addresses are personal data.
CREATE TABLE api_key_refusals (
    api_key_id uuid NOT NULL,
    id         uuid NOT NULL,
    at         timestamptz NOT NULL,
    reason     text NOT NULL,
    -- The method and the pattern of the path.
    route      text NOT NULL,
    -- As in api_key_sources.
    address    text NOT NULL,
    client     text NOT NULL,
    request_id text NOT NULL,
    PRIMARY KEY (api_key_id, id)
);
CREATE INDEX api_key_refusals_at ON api_key_refusals (at);

-- When each key last used an agent: issued a widget token for it or authorized a request to it.
CREATE TABLE api_key_agents (
    api_key_id uuid NOT NULL,
    agent_id   uuid NOT NULL,
    used_at    timestamptz NOT NULL,
    PRIMARY KEY (api_key_id, agent_id)
);
-- For the last use of an agent.
CREATE INDEX api_key_agents_agent ON api_key_agents (agent_id, used_at);
CREATE INDEX api_key_agents_used ON api_key_agents (used_at);

-- Sign-in.

CREATE TABLE sessions (
    id               uuid PRIMARY KEY,
    user_id          uuid NOT NULL REFERENCES users (id),
    -- Hash of the session token in the cookie.
    token_hash       bytea NOT NULL UNIQUE CHECK (length(token_hash) = 32),
    created_at       timestamptz NOT NULL,
    last_seen_at     timestamptz NOT NULL,
    expires_at       timestamptz NOT NULL,
    -- When the user last entered the password, or proved the identity in another way.
    authenticated_at timestamptz NOT NULL,
    first_address    text NOT NULL,
    last_address     text NOT NULL,
    user_agent       text NOT NULL
);
CREATE INDEX sessions_user ON sessions (user_id);
-- For the purge of expired and idle sessions.
CREATE INDEX sessions_expiry ON sessions (expires_at);
CREATE INDEX sessions_last_seen ON sessions (last_seen_at);

-- Wrong passwords of the last minute. The subject is a hash, because users sometimes type a
-- password into the email field.
CREATE TABLE sign_in_failures (
    id      uuid PRIMARY KEY,
    subject bytea NOT NULL,
    at      timestamptz NOT NULL
);
CREATE INDEX sign_in_failures_subject ON sign_in_failures (subject, at);
CREATE INDEX sign_in_failures_at ON sign_in_failures (at);

-- Sign-ins after the first of two steps.
CREATE TABLE pending_sign_ins (
    -- Hash of the token in the browser's cookie.
    token_hash bytea PRIMARY KEY CHECK (length(token_hash) = 32),
    user_id    uuid NOT NULL REFERENCES users (id),
    expires_at timestamptz NOT NULL
);
CREATE INDEX pending_sign_ins_user ON pending_sign_ins (user_id);
CREATE INDEX pending_sign_ins_expiry ON pending_sign_ins (expires_at);

-- Links that sign a user in once. A used link is deleted.
CREATE TABLE sign_in_links (
    -- Hash of the token in the link.
    token_hash bytea PRIMARY KEY CHECK (length(token_hash) = 32),
    user_id    uuid NOT NULL REFERENCES users (id),
    expires_at timestamptz NOT NULL
);
CREATE INDEX sign_in_links_user ON sign_in_links (user_id);
CREATE INDEX sign_in_links_expiry ON sign_in_links (expires_at);

-- Links that set a new password once. Using one deletes all links of the user.
CREATE TABLE password_reset_links (
    -- Hash of the token in the link.
    token_hash bytea PRIMARY KEY CHECK (length(token_hash) = 32),
    user_id    uuid NOT NULL REFERENCES users (id),
    expires_at timestamptz NOT NULL
);
CREATE INDEX password_reset_links_user ON password_reset_links (user_id);
CREATE INDEX password_reset_links_expiry ON password_reset_links (expires_at);

-- The new emails that users have asked for. A link in an email to the new address confirms it.
CREATE TABLE email_changes (
    user_id    uuid PRIMARY KEY REFERENCES users (id),
    email      text NOT NULL,
    -- The email in the outbox.
    mail_id    uuid NOT NULL UNIQUE,
    -- Hash of the token in the link; NULL until the email is sent.
    token_hash bytea UNIQUE CHECK (length(token_hash) = 32),
    expires_at timestamptz NOT NULL
);
CREATE INDEX email_changes_expiry ON email_changes (expires_at);

-- The authenticator apps of users.
CREATE TABLE authenticators (
    user_id       uuid PRIMARY KEY REFERENCES users (id),
    -- The secret shared with the app, encrypted with a key derived from PORTAL_SECRET.
    secret        bytea NOT NULL,
    -- Identifies that key.
    key_id        bytea NOT NULL CHECK (length(key_id) = 8),
    created_at    timestamptz NOT NULL,
    -- NULL until the user has entered the first code.
    enabled_at    timestamptz,
    -- The time step of the last accepted code. Each code works once.
    last_step     bigint NOT NULL DEFAULT 0,
    -- The wrong codes since the first one within a day.
    refused_codes integer NOT NULL DEFAULT 0,
    refused_since timestamptz
);
CREATE INDEX authenticators_unconfirmed ON authenticators (created_at) WHERE enabled_at IS NULL;

-- The unused recovery codes of users. A used code is deleted.
CREATE TABLE recovery_codes (
    -- Hash of the code, which has 120 random bits.
    code_hash bytea PRIMARY KEY CHECK (length(code_hash) = 32),
    user_id   uuid NOT NULL REFERENCES users (id)
);
CREATE INDEX recovery_codes_user ON recovery_codes (user_id);

-- The passkeys of users.
CREATE TABLE passkeys (
    id            uuid PRIMARY KEY,
    user_id       uuid NOT NULL REFERENCES users (id),
    credential_id bytea NOT NULL UNIQUE,
    -- The credential record of WebAuthn as JSON, with the public key.
    credential    text NOT NULL,
    sign_count    bigint NOT NULL,
    name          text NOT NULL,
    created_at    timestamptz NOT NULL,
    last_used_at  timestamptz
);
CREATE INDEX passkeys_user ON passkeys (user_id);

-- The WebAuthn challenges that have been answered. Each works once.
CREATE TABLE used_challenges (
    challenge_hash bytea PRIMARY KEY CHECK (length(challenge_hash) = 32),
    expires_at     timestamptz NOT NULL
);
CREATE INDEX used_challenges_expiry ON used_challenges (expires_at);

-- The identities at an OpenID Connect provider that sign users in.
CREATE TABLE identities (
    issuer     text NOT NULL,
    subject    text NOT NULL CHECK (length(subject) BETWEEN 1 AND 255),
    user_id    uuid NOT NULL REFERENCES users (id),
    -- The provider's email at that time, which helps the user to recognize the identity.
    email      text NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (issuer, subject)
);
CREATE UNIQUE INDEX identities_user ON identities (user_id, issuer);

-- Invitations and emails.

-- Invitations to join an account. A used or cancelled invitation is deleted.
CREATE TABLE invitations (
    id              uuid PRIMARY KEY,
    account_id      uuid NOT NULL REFERENCES accounts (id),
    email           text NOT NULL,
    -- As in users.
    email_hash      bytea NOT NULL CHECK (length(email_hash) = 32),
    role            text NOT NULL CHECK (role IN ('owner', 'member')),
    -- Hash of the token in the link.
    token_hash      bytea NOT NULL UNIQUE CHECK (length(token_hash) = 32),
    -- Hash of the token in the link of the email; NULL until the email is sent.
    mail_token_hash bytea CHECK (length(mail_token_hash) = 32),
    -- The user who invites; NULL for an operator.
    inviter_id      uuid REFERENCES users (id),
    created_at      timestamptz NOT NULL,
    expires_at      timestamptz NOT NULL,
    UNIQUE (account_id, email_hash)
);
CREATE INDEX invitations_inviter ON invitations (inviter_id);
CREATE INDEX invitations_expiry ON invitations (expires_at);
CREATE UNIQUE INDEX invitations_mail_token ON invitations (mail_token_hash);

-- Emails of the last hour, to limit them, with their ids. Older rows are purged.
CREATE TABLE recent_mails (
    id          uuid PRIMARY KEY,
    kind        text NOT NULL,
    account_id  uuid NOT NULL REFERENCES accounts (id),
    -- As in users.
    email_hash  bytea NOT NULL CHECK (length(email_hash) = 32),
    -- Hash of the address and the browser of a sign-in. Repeated sign-ins share an email.
    device_hash bytea CHECK (length(device_hash) = 32),
    at          timestamptz NOT NULL
);
CREATE INDEX recent_mails_account ON recent_mails (account_id, kind, at);
CREATE INDEX recent_mails_email ON recent_mails (email_hash, kind, at);
CREATE INDEX recent_mails_at ON recent_mails (at);

-- Emails that wait until they are sent. A sent email is deleted.
CREATE TABLE outbox (
    id          uuid PRIMARY KEY,
    -- The action of the activity that the email reports, password.forgotten, email.confirmation,
    -- api_key.expiring or api_key.unused.
    kind        text NOT NULL,
    -- NULL: unknown until the email is sent.
    account_id  uuid REFERENCES accounts (id),
    activity_id uuid,
    -- Empty until the email is sent if only the hash is known.
    recipient   text NOT NULL,
    -- As in users.
    email_hash  bytea CHECK (length(email_hash) = 32),
    created_at  timestamptz NOT NULL,
    -- When an instance may send the email: also the end of the lease of the one that sends it.
    due_at      timestamptz NOT NULL,
    attempts    integer NOT NULL DEFAULT 0
);
CREATE INDEX outbox_due ON outbox (due_at);
CREATE INDEX outbox_account ON outbox (account_id);
CREATE INDEX outbox_created ON outbox (created_at);

-- Activity.

-- What users and operators did. Only an erasure changes a row.
CREATE TABLE activities (
    id           uuid PRIMARY KEY,
    account_id   uuid NOT NULL REFERENCES accounts (id),
    actor_kind   text NOT NULL,
    actor_id     uuid,
    action       text NOT NULL,
    subject_id   uuid,
    -- The name of the subject at that time.
    label        text NOT NULL,
    -- The name of a key, agent or account before it was renamed, or the email of a user before it
    -- was changed; NULL for other activities.
    former_label text,
    -- The old and new restrictions of a key, or why it was revoked; NULL for other activities.
    detail       text,
    -- The number of sessions or calls that were ended at once; 1 for other activities.
    count        bigint NOT NULL DEFAULT 1,
    address      text NOT NULL,
    at           timestamptz NOT NULL
);
CREATE INDEX activities_account ON activities (account_id, id);
-- For the list of revoked keys and who revoked them.
CREATE INDEX activities_subject ON activities (account_id, subject_id) WHERE subject_id IS NOT NULL;
-- For the emails of users at the time of an activity.
CREATE INDEX activities_emails ON activities (subject_id, id) WHERE action = 'email.changed';
-- For the check whether an agent was removed: its form must not create it again.
CREATE INDEX activities_removed_agents ON activities (subject_id) WHERE action = 'agent.removed';

-- The account whose activities this transaction erases. A transaction deletes its row before it
-- commits, so that no other one ever sees a row.
CREATE TABLE erasing (
    account_id uuid PRIMARY KEY
);

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_LEVEL = 'ROW' AND EXISTS (SELECT 1 FROM erasing WHERE account_id = OLD.account_id) THEN
        IF TG_OP = 'DELETE' THEN
            RETURN OLD;
        END IF;
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'activities is append-only';
END $$;
CREATE TRIGGER activities_no_update BEFORE UPDATE ON activities
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
-- The portal deletes activities after 400 days. The trigger allows a DELETE after 399 days, because
-- the clocks of the portal and the database may differ.
CREATE TRIGGER activities_no_delete BEFORE DELETE ON activities
    FOR EACH ROW WHEN (OLD.at > now() - interval '399 days') EXECUTE FUNCTION refuse_change();
CREATE TRIGGER activities_no_truncate BEFORE TRUNCATE ON activities
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- One activity records the wrong passwords or codes of one user in ten minutes. This table counts
-- them, because the rows of activities never change.
CREATE TABLE activity_repeats (
    account_id  uuid NOT NULL,
    user_id     uuid NOT NULL,
    action      text NOT NULL,
    -- The start of the ten minutes.
    period      timestamptz NOT NULL,
    activity_id uuid NOT NULL UNIQUE,
    -- The address of the first one.
    address     text NOT NULL,
    -- The number after the first one.
    repeats     bigint NOT NULL DEFAULT 0,
    -- Whether one of them came from another address than the first one.
    elsewhere   boolean NOT NULL DEFAULT false,
    -- The place of the activity in the list, which sorts by id, and its time: of the last one.
    last_id     uuid NOT NULL,
    last_at     timestamptz NOT NULL,
    PRIMARY KEY (user_id, action, period)
);
CREATE INDEX activity_repeats_period ON activity_repeats (period);
CREATE INDEX activity_repeats_account ON activity_repeats (account_id, last_id);

-- Calls.

-- The calls of visitors: LiveKit's rooms that tokens of the portal opened. The ids of visitors are
-- personal data: the rows are deleted after 90 days.
CREATE TABLE calls (
    id           uuid PRIMARY KEY,
    account_id   uuid NOT NULL REFERENCES accounts (id),
    agent_id     uuid NOT NULL,
    api_key_id   uuid NOT NULL,
    -- LiveKit's id of the room. A room that is opened again has another one, but the same name.
    room_id      text NOT NULL UNIQUE,
    room_name    text NOT NULL,
    -- The id of the visitor in the customer's system.
    user_id      text,
    started_at   timestamptz NOT NULL,
    ended_at     timestamptz,
    end_reason   text,
    -- Whether LiveKit has reported the start and, if there is one, the end.
    exact        boolean NOT NULL,
    -- Why the portal ends the call, before it does.
    ending       text,
    -- The last list of rooms with somebody in the room, if a later one was without.
    unseen_since timestamptz,
    -- What LiveKit has reported about each visitor, as JSON.
    visitors     text,
    -- Whether the portal has ended the call and no activity counts it yet.
    unrecorded   boolean NOT NULL DEFAULT false
);
CREATE INDEX calls_account ON calls (account_id, started_at, id);
CREATE INDEX calls_agent ON calls (agent_id, started_at, id);
CREATE INDEX calls_key ON calls (api_key_id, started_at, id);
CREATE INDEX calls_agent_key ON calls (agent_id, api_key_id, started_at, id);
-- For the purge, and for operators, who list the calls of all accounts.
CREATE INDEX calls_started ON calls (started_at, id);
CREATE INDEX calls_open ON calls (account_id, api_key_id, started_at) WHERE ended_at IS NULL;
CREATE INDEX calls_unrecorded ON calls (ended_at) WHERE unrecorded;

-- By key and by account: the calls that began on a day, and the seconds of this day that ended
-- calls lasted. The transaction that changes a call corrects them.
CREATE TABLE call_totals (
    -- The key or the account.
    subject_id uuid NOT NULL,
    day        timestamptz NOT NULL,
    calls      bigint NOT NULL,
    seconds    bigint NOT NULL,
    PRIMARY KEY (subject_id, day)
);
CREATE INDEX call_totals_day ON call_totals (day);

-- The owners are told once a month that most of a limit's minutes, or all of them, are used.
CREATE TABLE limit_notices (
    -- The key or the account.
    subject_id uuid NOT NULL,
    month      timestamptz NOT NULL,
    percent    bigint NOT NULL,
    PRIMARY KEY (subject_id, month, percent)
);
CREATE INDEX limit_notices_month ON limit_notices (month);

-- The rounds, in which one instance at a time lists LiveKit's rooms and ends calls: one row.
CREATE TABLE call_rounds (
    only_row     boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    -- The number of the round. An instance that begins a round increases it.
    round        bigint NOT NULL DEFAULT 0,
    -- When another instance may begin a round, although this one has not ended.
    lease_until  timestamptz NOT NULL,
    -- When the next round is due, at the latest.
    due_at       timestamptz NOT NULL,
    -- When LiveKit last answered with a list of rooms. NULL: never.
    listed_at    timestamptz,
    -- The moment and the epoch of authentication that the last complete round saw.
    checked_at   timestamptz NOT NULL,
    epoch        bytea,
    -- Until then, a client can open a call with the token of a key that may have been revoked.
    watch_until  timestamptz NOT NULL
);
INSERT INTO call_rounds (lease_until, due_at, checked_at, watch_until)
VALUES ('2000-01-01 00:00:00+00:00', '2000-01-01 00:00:00+00:00', '2000-01-01 00:00:00+00:00', '2000-01-01 00:00:00+00:00');

-- The accounts and users whose data were erased. A row stays, so that a restore of an older backup
-- erases them again.
CREATE TABLE erasures (
    -- The account or the user.
    id          uuid PRIMARY KEY,
    account_id  uuid NOT NULL,
    erased_at   timestamptz NOT NULL,
    -- The emails of the user, one a line; empty when the erasure is complete.
    emails      text NOT NULL DEFAULT '',
    -- NULL while rows are left.
    finished_at timestamptz
);
CREATE INDEX erasures_account ON erasures (account_id);
CREATE INDEX erasures_unfinished ON erasures (id) WHERE finished_at IS NULL;

-- When the newest backup was begun, for a metric. There is no row before the first.
CREATE TABLE last_backup (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    began_at timestamptz NOT NULL
);

-- Webhooks.

-- The URLs that get an account's events.
CREATE TABLE webhook_endpoints (
    id             uuid PRIMARY KEY,
    account_id     uuid NOT NULL REFERENCES accounts (id),
    url            text NOT NULL,
    -- The groups of events, as a JSON list.
    event_groups   text NOT NULL,
    -- The secret that signs, encrypted with a key derived from PORTAL_SECRET, and the id of that
    -- key.
    secret         bytea NOT NULL,
    key_id         bytea NOT NULL CHECK (length(key_id) = 8),
    -- The secret before a rotation, which signs too until previous_until.
    previous       bytea,
    previous_key_id bytea CHECK (length(previous_key_id) = 8),
    previous_until timestamptz,
    created_at     timestamptz NOT NULL,
    disabled_at    timestamptz,
    -- When it was removed. The purge deletes its deliveries, which can be many, and then it.
    removed_at     timestamptz,
    -- The first failed attempt since the last one that succeeded, and the number of deliveries that
    -- have failed at least once since then.
    failing_since  timestamptz,
    failures       bigint NOT NULL DEFAULT 0,
    -- When the owners were told that the endpoint fails.
    failure_mailed_at timestamptz
);
CREATE INDEX webhook_endpoints_account ON webhook_endpoints (account_id, id);
CREATE INDEX webhook_endpoints_enabled ON webhook_endpoints (id) WHERE disabled_at IS NULL;
CREATE INDEX webhook_endpoints_removed ON webhook_endpoints (id) WHERE removed_at IS NOT NULL;

-- The events for each endpoint, kept for 30 days. A row is a job in the queue while it has due_at.
CREATE TABLE webhook_deliveries (
    endpoint_id uuid NOT NULL REFERENCES webhook_endpoints (id) ON DELETE CASCADE,
    -- The activity, the call, or a new id for a test event. The content is read when it is sent.
    event_id    uuid NOT NULL,
    event       text NOT NULL,
    account_id  uuid NOT NULL,
    created_at  timestamptz NOT NULL,
    -- When an instance may send it: also the end of the lease of the one that sends it.
    due_at      timestamptz,
    attempts    bigint NOT NULL DEFAULT 0,
    -- Whether the next attempt is the last one.
    final       boolean NOT NULL DEFAULT false,
    delivered_at timestamptz,
    -- The status and the first characters of the last response, or why there was none.
    status      bigint NOT NULL DEFAULT 0,
    response    text NOT NULL DEFAULT '',
    PRIMARY KEY (endpoint_id, event_id, event)
);
CREATE INDEX webhook_deliveries_first ON webhook_deliveries (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (endpoint_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries (account_id, created_at) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_deliveries_created ON webhook_deliveries (created_at);
CREATE INDEX webhook_deliveries_list ON webhook_deliveries (endpoint_id, created_at);

-- The epoch of authentication: one row with one random value. An instance caches the facts that
-- grant access together with this value, and the cache is valid while the value is unchanged. Only
-- equality matters, so a restored backup or a failover cannot make an old cache look valid, as a
-- counter could.

CREATE TABLE auth_epoch (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    value    bytea NOT NULL CHECK (length(value) = 16)
);

CREATE FUNCTION random_epoch() RETURNS bytea LANGUAGE sql VOLATILE AS $$
    -- Two v4 UUIDs have 244 random bits; the value is 128 bits of their hash.
    SELECT substring(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())) FROM 1 FOR 16)
$$;
INSERT INTO auth_epoch (value) VALUES (random_epoch());

-- Hashes of a key derived from the secret, and from the previous one, of the instance that started
-- last. With another secret, an instance warns at its start.
CREATE TABLE secret_check (
    only_row integer PRIMARY KEY DEFAULT 1 CHECK (only_row = 1),
    current  bytea NOT NULL,
    previous bytea
);

-- What commands need to know of the instance that started last: they have other settings.
CREATE TABLE last_start (
    only_row      integer PRIMARY KEY DEFAULT 1 CHECK (only_row = 1),
    -- Whether nobody signs in with a password.
    passwords_off boolean NOT NULL
);

-- Triggers renew the epoch after every change of a key, an agent or an account, also by an
-- operator's own SQL. Labels and names are not cached. Inserts renew it too: two states of the
-- database with the same epoch therefore hold the same keys, agents and accounts.
--
-- The triggers are deferred: they run inside COMMIT. So a transaction that stays open, in a frozen
-- instance or in an operator's psql, does not lock the row that every revocation needs. A
-- transaction that changes these tables and then alters them must first run
-- SET CONSTRAINTS ALL IMMEDIATE.
CREATE FUNCTION renew_auth_epoch() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    this_transaction text := pg_current_xact_id();
BEGIN
    -- The trigger runs for each row. One renewal in a transaction is enough.
    IF current_setting('portal.epoch_renewed_in', true) IS DISTINCT FROM this_transaction THEN
        UPDATE auth_epoch SET value = random_epoch();
        PERFORM set_config('portal.epoch_renewed_in', this_transaction, true);
    END IF;
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER accounts_insert_renews_epoch AFTER INSERT ON accounts
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION renew_auth_epoch();
CREATE CONSTRAINT TRIGGER accounts_update_renews_epoch AFTER UPDATE OF id, disabled_at, limits ON accounts
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION renew_auth_epoch();
CREATE CONSTRAINT TRIGGER accounts_delete_renews_epoch AFTER DELETE ON accounts
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION renew_auth_epoch();
CREATE CONSTRAINT TRIGGER agents_insert_renews_epoch AFTER INSERT ON agents
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION renew_auth_epoch();
CREATE CONSTRAINT TRIGGER agents_update_renews_epoch AFTER UPDATE OF id, account_id, paused_at ON agents
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION renew_auth_epoch();
CREATE CONSTRAINT TRIGGER agents_delete_renews_epoch AFTER DELETE ON agents
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION renew_auth_epoch();
CREATE CONSTRAINT TRIGGER api_keys_insert_renews_epoch AFTER INSERT ON api_keys
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION renew_auth_epoch();
CREATE CONSTRAINT TRIGGER api_keys_update_renews_epoch AFTER UPDATE
    OF id, account_id, key_hash, revoked_at, expires_at, access, agents, networks, limits, credential, trust, trust_version ON api_keys
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION renew_auth_epoch();
CREATE CONSTRAINT TRIGGER api_keys_delete_renews_epoch AFTER DELETE ON api_keys
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION renew_auth_epoch();

-- PostgreSQL cannot defer a trigger for TRUNCATE.
CREATE TRIGGER accounts_truncate_renews_epoch AFTER TRUNCATE ON accounts
    FOR EACH STATEMENT EXECUTE FUNCTION renew_auth_epoch();
CREATE TRIGGER agents_truncate_renews_epoch AFTER TRUNCATE ON agents
    FOR EACH STATEMENT EXECUTE FUNCTION renew_auth_epoch();
CREATE TRIGGER api_keys_truncate_renews_epoch AFTER TRUNCATE ON api_keys
    FOR EACH STATEMENT EXECUTE FUNCTION renew_auth_epoch();
