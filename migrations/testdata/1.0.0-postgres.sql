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
-- Whether a call cannot go on: nothing changes any more. While it is false, a visitor may come back
-- after ended_at. The end of the earlier calls was sent at once, so they are final: the first
-- default gives them the value without a rewrite of the table. The second one is for instances of
-- the previous version, which do not know the column.
ALTER TABLE calls ADD COLUMN final boolean NOT NULL DEFAULT true;
ALTER TABLE calls ALTER COLUMN final SET DEFAULT false;
UPDATE calls SET final = false WHERE ended_at IS NULL;
-- From now on, unseen_since of an ended call is the first list without the room, or when LiveKit
-- finished it.

CREATE INDEX calls_unsettled ON calls (id) WHERE NOT final;
DROP INDEX calls_open;
CREATE INDEX calls_open ON calls (account_id, api_key_id, agent_id, started_at) WHERE ended_at IS NULL;
-- A call that the portal has ended, or is about to end, stays ended: its room may not be opened
-- again.
CREATE INDEX calls_stopped ON calls (room_name) WHERE ending IS NOT NULL;
CREATE INDEX calls_stopped_at ON calls (ended_at) WHERE ending IS NOT NULL;
-- A claim begins with the deliveries that are due. It does not look at endpoints that get nothing.
DROP INDEX webhook_deliveries_first;
CREATE INDEX webhook_deliveries_first ON webhook_deliveries (due_at, endpoint_id, account_id) WHERE due_at IS NOT NULL;
DROP INDEX webhook_endpoints_enabled;
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
-- The endpoints whose last attempts failed, which operators count.
CREATE INDEX webhook_endpoints_failing ON webhook_endpoints (failing_since) WHERE failing_since IS NOT NULL;
CREATE TABLE applied_migrations (file varchar(255) PRIMARY KEY);
SET session_replication_role = replica;
INSERT INTO accounts (id, name, second_factor_required, seeded, created_at, disabled_at, limits, unused_lifetime) VALUES ('01a21f26-d45d-7255-9646-127bb8689ff7', 'Acme', 'false', 'false', '2026-03-14 15:19:26.535897+00', NULL, NULL, NULL) ON CONFLICT DO NOTHING;
INSERT INTO accounts (id, name, second_factor_required, seeded, created_at, disabled_at, limits, unused_lifetime) VALUES ('01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'Acme', 'false', 'false', '2026-03-14 15:09:26.535897+00', NULL, '{"calls":5,"minutesPerMonth":1}', '7776000000000000') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-d0f6-75ea-96bf-899d6ac48899', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'webhook.added', '01a21f26-d0f4-7e1c-a33e-ef77fc925502', 'https://example.com/', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:09:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-d11b-7cd1-8fe3-70b5e5e31fab', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'api_key.generated', '01a21f26-d108-7ee6-9e76-dcfc066ccce5', 'production', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:09:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-d14c-71a5-967c-d79ac6b32845', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'api_key.generated', '01a21f26-d141-707f-b04f-844b1b5a96bd', 'production', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:09:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-d15a-7deb-8d6f-f2d182d94214', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'api_key.generated', '01a21f26-d159-7776-ad07-89d54099aaf4', 'production', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:09:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-d161-778b-9b57-1328a7130ead', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'agent.created', '01a21f26-d15e-74de-b902-c248fa8722b8', 'Reception', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:09:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-d164-7e9f-801f-d2678db5e53e', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'agent.created', '01a21f26-d162-727d-89b5-dde5c029e080', 'Reception', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:09:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-d178-7c79-a8b1-98b920f391c3', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'session.created', '01a21f26-d166-7a53-bc1b-56b60cc52c21', '', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:09:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-d288-7dd3-b116-ab8e57cb901a', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'session.created', '01a21f26-d280-763d-bbc8-57a945d14904', '', NULL, NULL, '1', '', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-d29d-71f5-976c-79e8bc1467a6', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'user.added', '01a21f26-d29c-738d-a1e3-c6df2d85922f', '151d6f65-269a-44e5-a5f8-e64b79f821dc@example.com', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-d2aa-7881-bb4d-1746c23fbb7d', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'sign_in_link.created', '01a21f26-d29c-738d-a1e3-c6df2d85922f', '151d6f65-269a-44e5-a5f8-e64b79f821dc@example.com', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-d2c1-76ba-b6d2-a513886f0e75', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d29c-738d-a1e3-c6df2d85922f', 'session.created', '01a21f26-d2b7-7a59-8c83-04e07541a6cf', 'a sign-in link', NULL, NULL, '1', '', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-d2f1-7e68-aa8b-4b5d569c2478', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'user.added', '01a21f26-d2ee-7030-8985-af10a95c5a42', 'ac67e555-ebbd-4254-9baa-156708b72fe4@example.com', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-d2f4-7a23-9800-c7c69180ecfd', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'sign_in_link.created', '01a21f26-d2ee-7030-8985-af10a95c5a42', 'ac67e555-ebbd-4254-9baa-156708b72fe4@example.com', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-d2f8-7bf1-89c4-1fd870d80aee', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'invitation.created', '01a21f26-d2f5-7650-a080-6bcf9994db52', 'ce10f7df-2a03-4c65-88a4-aea1beea29bd@example.com', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-d30e-7850-98c9-52e4886d2d7f', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'invitation.created', '01a21f26-d30a-7d70-aa5d-407dca3f943e', '4d42cdc3-7e22-4fa9-8974-94929e491184@example.com', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-d3e7-79c8-8845-d0bb19d81fd6', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d3e7-747d-b66f-282aa97c9280', 'invitation.accepted', '01a21f26-d3e7-747d-b66f-282aa97c9280', '4d42cdc3-7e22-4fa9-8974-94929e491184@example.com', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-d3f1-7e25-8bd7-a7df17f087df', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d3e7-747d-b66f-282aa97c9280', 'session.created', '01a21f26-d3e8-7438-a504-571adf43ea0a', 'an invitation', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-d3fd-7cdc-a0e2-26331ef25bd8', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'user.made_owner', '01a21f26-d29c-738d-a1e3-c6df2d85922f', '151d6f65-269a-44e5-a5f8-e64b79f821dc@example.com', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-d42b-7ba3-a04d-f3f56e119512', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'user.made_member', '01a21f26-d29c-738d-a1e3-c6df2d85922f', '151d6f65-269a-44e5-a5f8-e64b79f821dc@example.com', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-d446-77d0-99e8-96c2c55e9a95', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'agent.renamed', '01a21f26-d15e-74de-b902-c248fa8722b8', 'Renamed', 'Reception', NULL, '1', '203.0.113.7', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-d458-703a-8cdf-31469530805d', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'agent.created', '2510e4ef-309b-49cf-8423-d9983d901130', 'Front desk', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-d619-7a3d-a144-3ce0a6ff3984', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'account.unused_keys', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'Acme', NULL, 'Never → After 90 days', '1', '203.0.113.7', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-d64c-79c1-a1a7-3860f61997df', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'system', NULL, 'api_key.expiring', '01a21f26-d159-7776-ad07-89d54099aaf4', 'production', NULL, '14 Mar 2026, 16:09:26 UTC', '1', '', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-d765-7e55-b07b-7fbf5fd660de', '01a21f26-d45d-7255-9646-127bb8689ff7', 'user', '01a21f26-d45d-7261-905b-b1ae13b37490', 'password.reset', '01a21f26-d45d-7261-905b-b1ae13b37490', 'Ada.01a21f26-d45d-7255-9646-127bb8689ff7@Example.com', NULL, NULL, '1', '', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-d79e-725b-b80e-1472050704a5', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'email.changed', '01a21f26-d09c-7bdf-853f-1c1d75174c51', '75006d8b-6143-4b96-9574-2b0d30745b8a@example.com', 'Ada.01a21f26-d09c-7bd6-9a6c-875d1d308a04@Example.com', NULL, '1', '', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-d7a3-768e-b32c-07e05a6acda9', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'operator', NULL, 'email.changed', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'Ada.01a21f26-d09c-7bd6-9a6c-875d1d308a04@Example.com', '75006d8b-6143-4b96-9574-2b0d30745b8a@example.com', NULL, '1', '', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-d8b2-75b1-b590-fe65c814ed20', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'operator', NULL, 'account.limited', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'Acme', NULL, 'Limits: none → 5 calls at a time, 1 minute a month', '1', '', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-d931-70d8-bdda-c23eeaf28831', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'system', NULL, 'limit.approaching', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'Acme', NULL, '80% of 1 minutes in November 2026', '1', '', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-d93e-7dea-ad0b-a203cd9a100f', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'system', NULL, 'limit.reached', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'Acme', NULL, '100% of 1 minutes in November 2026', '1', '', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-e362-72c0-9620-be8432fe38f6', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'visitor', NULL, 'api_key.leaked', '01a21f26-d141-707f-b04f-844b1b5a96bd', 'production', NULL, NULL, '1', '', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-e36a-7c89-aebe-6cbbe12075eb', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'api_key.renamed', '01a21f26-d108-7ee6-9e76-dcfc066ccce5', 'renamed', 'production', NULL, '1', '203.0.113.7', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-e375-736b-ae09-fdce3d6152ce', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'agent.created', '5f048b0c-5e8b-5fb7-a750-48bdfd5b8cec', 'Front desk', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-e386-7f32-98ee-0f9e21ec27ce', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'agent.removed', '01a21f26-d162-727d-89b5-dde5c029e080', 'Reception', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-e399-70ba-bc07-f0939c053d00', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'invitation.cancelled', '01a21f26-d2f5-7650-a080-6bcf9994db52', 'ce10f7df-2a03-4c65-88a4-aea1beea29bd@example.com', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-e3d3-7259-a43b-71d60786b1d4', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'webhook.disabled', '01a21f26-d0f4-7e1c-a33e-ef77fc925502', 'https://example.com/', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-e3e6-7d11-81f3-e4a2628d019e', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'webhook.removed', '01a21f26-d0f4-7e1c-a33e-ef77fc925502', 'https://example.com/', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-e3f9-713b-be4b-c696e040155a', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'sessions.revoked', '01a21f26-d09c-7bdf-853f-1c1d75174c51', '', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-e3fe-74be-abd9-5ff742b3abcf', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'session.revoked', '01a21f26-d166-7a53-bc1b-56b60cc52c21', 'Mozilla/5.0', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-e408-7b68-a780-fb62abc5d075', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'user.removed', '01a21f26-d29c-738d-a1e3-c6df2d85922f', '151d6f65-269a-44e5-a5f8-e64b79f821dc@example.com', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-e467-7ac9-a6a9-929761948982', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'api_key.generated', '01a21f26-e44f-73ec-a480-3563c3a8952d', 'rotated', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-e48e-76e7-9c67-6980480a71c9', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'api_key.revoked', '01a21f26-d108-7ee6-9e76-dcfc066ccce5', 'renamed', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-e4c2-7702-87bc-f9a47a561a72', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'session.created', '01a21f26-e4b7-7b72-919c-92fccdecb293', '', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-e4dc-7d63-ace1-b29efa2f2f59', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'passkey.added', '01a21f26-e4da-7044-a1bf-c9d24672b52d', 'Phone', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-e4fd-727f-930e-94596477a24b', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'session.created', '01a21f26-e4f0-7c02-b206-b269ece6c11d', '', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-e50c-7136-b139-2ab2e7ca3590', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'authenticator.enabled', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'ada@example.com', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-e51c-7668-a75d-fa359c9bca09', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'sessions.revoked', '01a21f26-d09c-7bdf-853f-1c1d75174c51', '', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-e51e-7e20-b787-df7331bae2ca', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'webhook.added', '01a21f26-e51c-7d4f-9259-875fd71182b5', 'https://example.com/', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:20:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-e525-718a-811e-77e0dd6dde90', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'invitation.created', '01a21f26-e521-7459-b8b3-e583ac4adfe6', '5560273c-b6ef-47be-9bce-7a48fca11583@example.com', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:20:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-e530-7c3f-8997-d6291be7ca4a', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'user', '01a21f26-d09c-7bdf-853f-1c1d75174c51', 'api_key.generated', '01a21f26-e52d-7a5d-bdc4-4012010fe515', 'production', NULL, NULL, '1', '203.0.113.7', '2026-03-14 15:20:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO agents (id, account_id, name, created_at, paused_at) VALUES ('01a21f26-d15e-74de-b902-c248fa8722b8', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'Renamed', '2026-03-14 15:09:26.535897+00', NULL) ON CONFLICT DO NOTHING;
INSERT INTO agents (id, account_id, name, created_at, paused_at) VALUES ('2510e4ef-309b-49cf-8423-d9983d901130', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'Front desk', '2026-03-14 15:19:26.535897+00', NULL) ON CONFLICT DO NOTHING;
INSERT INTO agents (id, account_id, name, created_at, paused_at) VALUES ('5f048b0c-5e8b-5fb7-a750-48bdfd5b8cec', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'Front desk', '2026-03-14 15:19:26.535897+00', NULL) ON CONFLICT DO NOTHING;
INSERT INTO api_key_agents (api_key_id, agent_id, used_at) VALUES ('01a21f26-d108-7ee6-9e76-dcfc066ccce5', '01a21f26-d15e-74de-b902-c248fa8722b8', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO api_key_days (account_id, day, api_key_id) VALUES ('01a21f26-d09c-7bd6-9a6c-875d1d308a04', '2026-03-14 00:00:00+00', '01a21f26-d108-7ee6-9e76-dcfc066ccce5') ON CONFLICT DO NOTHING;
INSERT INTO api_key_last_uses (api_key_id, used_at, hour, requests, refusals) VALUES ('01a21f26-d108-7ee6-9e76-dcfc066ccce5', '2026-03-14 15:19:26.535897+00', '2026-03-14 15:00:00+00', '1', '0') ON CONFLICT DO NOTHING;
INSERT INTO api_key_sources (api_key_id, day, address, client, requests, first_seen, last_seen) VALUES ('01a21f26-d108-7ee6-9e76-dcfc066ccce5', '2026-03-14 00:00:00+00', '', '', '1', '2026-03-14 15:19:26.535897+00', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO api_keys (id, account_id, label, key_hash, last_four, access, form_id, replaces_id, created_by, created_at, revoked_at, leak_reporter, leak_url, expires_at, lifetime, expiry_warned_at, expiry_recorded, unused_policy, unused_check_at, unused_since, unused_warned_at, unused_warnings, unused_mailed, agents, networks, limits, note, revocation_reason, credential, trust, trust_version, trust_pins) VALUES ('01a21f26-d159-7776-ad07-89d54099aaf4', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'production', E'\\xc2b1c0ed9dea6e1b0f7e51c8718d0b4d348bafa0bbdbbd96776f7e7897f31980', 'hY75', 'agents', '2deff39e-44fe-47f7-8130-b70f381b36c5', NULL, '01a21f26-d09c-7bdf-853f-1c1d75174c51', '2026-03-14 15:09:26.535897+00', NULL, NULL, NULL, '2026-03-14 16:09:26.535897+00', '2592000000000000', '2026-03-14 15:19:26.535897+00', '1', '0', NULL, NULL, NULL, '0', '0', NULL, NULL, NULL, '', '', 'secret', NULL, NULL, NULL) ON CONFLICT DO NOTHING;
INSERT INTO api_keys (id, account_id, label, key_hash, last_four, access, form_id, replaces_id, created_by, created_at, revoked_at, leak_reporter, leak_url, expires_at, lifetime, expiry_warned_at, expiry_recorded, unused_policy, unused_check_at, unused_since, unused_warned_at, unused_warnings, unused_mailed, agents, networks, limits, note, revocation_reason, credential, trust, trust_version, trust_pins) VALUES ('01a21f26-d141-707f-b04f-844b1b5a96bd', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'production', E'\\x581e127ec9479ea062f62c355ec5517d4a73913604b438e0b6fba36b7bb6d846', 'J4e6', 'agents', '63eb9537-ae28-4127-8d73-9b7835aa2c3d', NULL, '01a21f26-d09c-7bdf-853f-1c1d75174c51', '2026-03-14 15:09:26.535897+00', '2026-03-14 15:19:26.535897+00', 'github', NULL, NULL, NULL, NULL, '0', '0', '2026-12-08 22:36:08.633424+00', '2026-11-27 22:36:08.633424+00', '2026-11-27 22:36:08.633424+00', '1', '1', NULL, NULL, NULL, '', '', 'secret', NULL, NULL, NULL) ON CONFLICT DO NOTHING;
INSERT INTO api_keys (id, account_id, label, key_hash, last_four, access, form_id, replaces_id, created_by, created_at, revoked_at, leak_reporter, leak_url, expires_at, lifetime, expiry_warned_at, expiry_recorded, unused_policy, unused_check_at, unused_since, unused_warned_at, unused_warnings, unused_mailed, agents, networks, limits, note, revocation_reason, credential, trust, trust_version, trust_pins) VALUES ('01a21f26-e44f-73ec-a480-3563c3a8952d', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'rotated', E'\\xa27c8688d6773a7243dc47ea48d2984dcf82ef6f1563ac0a653cce9551b1659c', 'CpzE', 'agents', 'f8f6549a-e340-4b60-8a63-d123d2608cbe', '01a21f26-d108-7ee6-9e76-dcfc066ccce5', '01a21f26-d09c-7bdf-853f-1c1d75174c51', '2026-03-14 15:19:26.535897+00', NULL, NULL, NULL, NULL, NULL, NULL, '0', '-1', NULL, NULL, NULL, '0', '0', NULL, NULL, NULL, '', '', 'secret', NULL, NULL, NULL) ON CONFLICT DO NOTHING;
INSERT INTO api_keys (id, account_id, label, key_hash, last_four, access, form_id, replaces_id, created_by, created_at, revoked_at, leak_reporter, leak_url, expires_at, lifetime, expiry_warned_at, expiry_recorded, unused_policy, unused_check_at, unused_since, unused_warned_at, unused_warnings, unused_mailed, agents, networks, limits, note, revocation_reason, credential, trust, trust_version, trust_pins) VALUES ('01a21f26-d108-7ee6-9e76-dcfc066ccce5', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'renamed', E'\\x9bc4473c127634aee0de529237b7c807f7e07b99f71194b311f09901aed0ddef', 'Sglr', 'agents', '087d22aa-e50f-4666-be60-234650edf69a', NULL, '01a21f26-d09c-7bdf-853f-1c1d75174c51', '2026-03-14 15:09:26.535897+00', '2026-03-14 15:19:26.535897+00', NULL, NULL, NULL, NULL, NULL, '0', '0', '2026-12-08 22:36:08.633424+00', '2026-11-27 22:36:08.633424+00', '2026-11-27 22:36:08.633424+00', '1', '1', NULL, NULL, NULL, '', '', 'secret', NULL, NULL, NULL) ON CONFLICT DO NOTHING;
INSERT INTO api_keys (id, account_id, label, key_hash, last_four, access, form_id, replaces_id, created_by, created_at, revoked_at, leak_reporter, leak_url, expires_at, lifetime, expiry_warned_at, expiry_recorded, unused_policy, unused_check_at, unused_since, unused_warned_at, unused_warnings, unused_mailed, agents, networks, limits, note, revocation_reason, credential, trust, trust_version, trust_pins) VALUES ('01a21f26-e52d-7a5d-bdc4-4012010fe515', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'production', E'\\xb334049a44a6cfe2759f17dc0fbe63d508b2dd8e3a76166170af3fc15ce99e86', 'AVOM', 'agents', 'dbe55266-5b45-438a-a8a9-61898480d42c', NULL, '01a21f26-d09c-7bdf-853f-1c1d75174c51', '2026-03-14 15:20:26.535897+00', NULL, NULL, NULL, NULL, NULL, NULL, '0', '-1', NULL, NULL, NULL, '0', '0', NULL, NULL, NULL, '', '', 'secret', NULL, NULL, NULL) ON CONFLICT DO NOTHING;
INSERT INTO applied_migrations (file) VALUES ('20261120000001_initial.sql') ON CONFLICT DO NOTHING;
INSERT INTO applied_migrations (file) VALUES ('20261127000001_final_calls.sql') ON CONFLICT DO NOTHING;
INSERT INTO applied_migrations (file) VALUES ('20261127000002_webhook_queue.sql') ON CONFLICT DO NOTHING;
INSERT INTO applied_migrations (file) VALUES ('20261127000003_key_days.sql') ON CONFLICT DO NOTHING;
INSERT INTO applied_migrations (file) VALUES ('20261127000004_failing_endpoints.sql') ON CONFLICT DO NOTHING;
INSERT INTO auth_epoch (only_row, value) VALUES ('true', E'\\x2543574a1b7fb576aeb754e62ca63bb5') ON CONFLICT DO NOTHING;
INSERT INTO authenticators (user_id, secret, key_id, created_at, enabled_at, last_step, refused_codes, refused_since) VALUES ('01a21f26-d09c-7bdf-853f-1c1d75174c51', E'\\xc355816a8afe6a3cebee8376ce43cac3cbe344de95b0d54a278b250bfa7583e3872aacd624f341a4dcb782fb2a1c0a9c', E'\\x7619eef430707544', '2026-03-14 15:19:26.535897+00', '2026-03-14 15:19:26.535897+00', '59116718', '0', NULL) ON CONFLICT DO NOTHING;
INSERT INTO call_rounds (only_row, round, lease_until, due_at, listed_at, checked_at, epoch, watch_until) VALUES ('true', '3', '2026-11-27 22:36:11.984508+00', '2026-11-27 22:36:16.484508+00', '2026-11-27 22:36:12.616366+00', '2026-11-27 22:36:11.984508+00', E'\\xc36ef55ec0a6d70477a931047d75f28b', '2026-11-27 23:38:09.860104+00') ON CONFLICT DO NOTHING;
INSERT INTO call_totals (subject_id, day, calls, seconds) VALUES ('01a21f26-d09c-7bd6-9a6c-875d1d308a04', '2026-03-14 00:00:00+00', '2', '59') ON CONFLICT DO NOTHING;
INSERT INTO call_totals (subject_id, day, calls, seconds) VALUES ('01a21f26-d108-7ee6-9e76-dcfc066ccce5', '2026-03-14 00:00:00+00', '2', '59') ON CONFLICT DO NOTHING;
INSERT INTO calls (id, account_id, agent_id, api_key_id, room_id, room_name, user_id, started_at, ended_at, end_reason, exact, ending, unseen_since, visitors, unrecorded, final) VALUES ('01a21f26-d849-7224-9604-d1f927dbdb36', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', '01a21f26-d15e-74de-b902-c248fa8722b8', '01a21f26-d108-7ee6-9e76-dcfc066ccce5', 'RM_01a21f26-d108-7ee6-9e76-dcfc066ccce5_1', '01a21f26-d15e-74de-b902-c248fa8722b8_01a21f26-d108-7ee6-9e76-dcfc066ccce5_1', 'u-17', '2026-03-14 15:19:26.535897+00', '2026-03-14 15:20:26+00', 'visitor_left', 'true', 'ended_in_portal', NULL, '[{"identity":"visitor","userId":"u-17","first":"2026-03-14T15:19:26.535897Z","joined":"2026-03-14T15:20:26Z","id":"PA_1","left":"2026-03-14T15:20:26Z","reason":"visitor_left"}]', 'false', 'true') ON CONFLICT DO NOTHING;
INSERT INTO calls (id, account_id, agent_id, api_key_id, room_id, room_name, user_id, started_at, ended_at, end_reason, exact, ending, unseen_since, visitors, unrecorded, final) VALUES ('01a21f26-d924-783a-baf2-f39793db8a6d', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', '01a21f26-d15e-74de-b902-c248fa8722b8', '01a21f26-d108-7ee6-9e76-dcfc066ccce5', 'RM_01a21f26-d108-7ee6-9e76-dcfc066ccce5_2', '01a21f26-d15e-74de-b902-c248fa8722b8_01a21f26-d108-7ee6-9e76-dcfc066ccce5_2', 'u-17', '2026-03-14 15:19:26.535897+00', '2026-03-14 15:19:26.535897+00', 'unknown', 'false', 'limit_minutes_per_month', NULL, '[{"identity":"visitor","userId":"u-17","first":"2026-03-14T15:19:26.535897Z","joined":"2026-03-14T15:19:26.535897Z","id":"PA_1"}]', 'false', 'true') ON CONFLICT DO NOTHING;
INSERT INTO invitations (id, account_id, email, email_hash, role, token_hash, mail_token_hash, inviter_id, created_at, expires_at) VALUES ('01a21f26-e521-7459-b8b3-e583ac4adfe6', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', '5560273c-b6ef-47be-9bce-7a48fca11583@example.com', E'\\x338473188a5893584259dc58aac5274eb59c0e137bcfe743550b2d031aeaf907', 'member', E'\\x8ef13bd386a76d75675f34514661ef9bbbded264423639e876a8928c5d378937', NULL, '01a21f26-d09c-7bdf-853f-1c1d75174c51', '2026-03-14 15:20:26.535897+00', '2026-03-21 15:20:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO limit_notices (subject_id, month, percent) VALUES ('01a21f26-d09c-7bd6-9a6c-875d1d308a04', '2026-11-01 00:00:00+00', '80') ON CONFLICT DO NOTHING;
INSERT INTO limit_notices (subject_id, month, percent) VALUES ('01a21f26-d09c-7bd6-9a6c-875d1d308a04', '2026-11-01 00:00:00+00', '100') ON CONFLICT DO NOTHING;
INSERT INTO outbox (id, kind, account_id, activity_id, recipient, email_hash, created_at, due_at, attempts) VALUES ('01a21f26-d93d-768d-85fd-4f351c1d1e96', 'limit.approaching', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', '01a21f26-d931-70d8-bdda-c23eeaf28831', 'Ada.01a21f26-d09c-7bd6-9a6c-875d1d308a04@Example.com', NULL, '2026-03-14 15:19:26.535897+00', '2026-03-14 15:19:26.535897+00', '0') ON CONFLICT DO NOTHING;
INSERT INTO outbox (id, kind, account_id, activity_id, recipient, email_hash, created_at, due_at, attempts) VALUES ('01a21f26-d93d-768e-951d-479b281a349b', 'limit.approaching', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', '01a21f26-d931-70d8-bdda-c23eeaf28831', '4d42cdc3-7e22-4fa9-8974-94929e491184@example.com', NULL, '2026-03-14 15:19:26.535897+00', '2026-03-14 15:19:26.535897+00', '0') ON CONFLICT DO NOTHING;
INSERT INTO outbox (id, kind, account_id, activity_id, recipient, email_hash, created_at, due_at, attempts) VALUES ('01a21f26-d946-7ed2-b2d4-fe98b31ce2e0', 'limit.reached', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', '01a21f26-d93e-7dea-ad0b-a203cd9a100f', 'Ada.01a21f26-d09c-7bd6-9a6c-875d1d308a04@Example.com', NULL, '2026-03-14 15:19:26.535897+00', '2026-03-14 15:19:26.535897+00', '0') ON CONFLICT DO NOTHING;
INSERT INTO outbox (id, kind, account_id, activity_id, recipient, email_hash, created_at, due_at, attempts) VALUES ('01a21f26-d946-7ed3-a9ea-df5d66e2a086', 'limit.reached', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', '01a21f26-d93e-7dea-ad0b-a203cd9a100f', '4d42cdc3-7e22-4fa9-8974-94929e491184@example.com', NULL, '2026-03-14 15:19:26.535897+00', '2026-03-14 15:19:26.535897+00', '0') ON CONFLICT DO NOTHING;
INSERT INTO outbox (id, kind, account_id, activity_id, recipient, email_hash, created_at, due_at, attempts) VALUES ('01a21f26-e369-7431-8274-a34be1b0e34b', 'api_key.leaked', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', '01a21f26-e362-72c0-9620-be8432fe38f6', 'Ada.01a21f26-d09c-7bd6-9a6c-875d1d308a04@Example.com', NULL, '2026-03-14 15:19:26.535897+00', '2026-03-14 15:19:36.535897+00', '0') ON CONFLICT DO NOTHING;
INSERT INTO outbox (id, kind, account_id, activity_id, recipient, email_hash, created_at, due_at, attempts) VALUES ('01a21f26-e369-7432-9692-bf9145eef04e', 'api_key.leaked', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', '01a21f26-e362-72c0-9620-be8432fe38f6', '4d42cdc3-7e22-4fa9-8974-94929e491184@example.com', NULL, '2026-03-14 15:19:26.535897+00', '2026-03-14 15:19:36.535897+00', '0') ON CONFLICT DO NOTHING;
INSERT INTO outbox (id, kind, account_id, activity_id, recipient, email_hash, created_at, due_at, attempts) VALUES ('01a21f26-e476-7ef8-9a34-2c727fb3e2d3', 'api_key.generated', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', '01a21f26-e467-7ac9-a6a9-929761948982', 'Ada.01a21f26-d09c-7bd6-9a6c-875d1d308a04@Example.com', NULL, '2026-03-14 15:19:26.535897+00', '2026-03-14 15:19:26.535897+00', '0') ON CONFLICT DO NOTHING;
INSERT INTO outbox (id, kind, account_id, activity_id, recipient, email_hash, created_at, due_at, attempts) VALUES ('01a21f26-e476-7ef9-ad6e-5efa51740db2', 'api_key.generated', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', '01a21f26-e467-7ac9-a6a9-929761948982', '4d42cdc3-7e22-4fa9-8974-94929e491184@example.com', NULL, '2026-03-14 15:19:26.535897+00', '2026-03-14 15:19:26.535897+00', '0') ON CONFLICT DO NOTHING;
INSERT INTO outbox (id, kind, account_id, activity_id, recipient, email_hash, created_at, due_at, attempts) VALUES ('01a21f26-e4cf-7e05-90ed-647a19a4e1e2', 'session.created', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', '01a21f26-e4c2-7702-87bc-f9a47a561a72', 'ada@example.com', NULL, '2026-03-14 15:19:26.535897+00', '2026-03-14 15:19:26.535897+00', '0') ON CONFLICT DO NOTHING;
INSERT INTO outbox (id, kind, account_id, activity_id, recipient, email_hash, created_at, due_at, attempts) VALUES ('01a21f26-e4ec-7124-ba13-b641b0c6e3e1', 'passkey.added', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', '01a21f26-e4dc-7d63-ace1-b29efa2f2f59', 'ada@example.com', NULL, '2026-03-14 15:19:26.535897+00', '2026-03-14 15:19:26.535897+00', '0') ON CONFLICT DO NOTHING;
INSERT INTO outbox (id, kind, account_id, activity_id, recipient, email_hash, created_at, due_at, attempts) VALUES ('01a21f26-e51b-759b-b6f4-c1b748d3fd8a', 'authenticator.enabled', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', '01a21f26-e50c-7136-b139-2ab2e7ca3590', 'ada@example.com', NULL, '2026-03-14 15:19:26.535897+00', '2026-03-14 15:19:26.535897+00', '0') ON CONFLICT DO NOTHING;
INSERT INTO outbox (id, kind, account_id, activity_id, recipient, email_hash, created_at, due_at, attempts) VALUES ('01a21f26-e52d-704f-a225-77e05fc9825d', 'invitation.created', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', '01a21f26-e525-718a-811e-77e0dd6dde90', '5560273c-b6ef-47be-9bce-7a48fca11583@example.com', NULL, '2026-03-14 15:20:26.535897+00', '2026-03-14 15:20:26.535897+00', '0') ON CONFLICT DO NOTHING;
INSERT INTO outbox (id, kind, account_id, activity_id, recipient, email_hash, created_at, due_at, attempts) VALUES ('01a21f26-e534-7f13-93f4-4e723b15687e', 'api_key.generated', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', '01a21f26-e530-7c3f-8997-d6291be7ca4a', 'ada@example.com', NULL, '2026-03-14 15:20:26.535897+00', '2026-03-14 15:20:26.535897+00', '0') ON CONFLICT DO NOTHING;
INSERT INTO outbox (id, kind, account_id, activity_id, recipient, email_hash, created_at, due_at, attempts) VALUES ('01a21f26-e534-7f15-b636-64529018ce69', 'api_key.generated', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', '01a21f26-e530-7c3f-8997-d6291be7ca4a', '4d42cdc3-7e22-4fa9-8974-94929e491184@example.com', NULL, '2026-03-14 15:20:26.535897+00', '2026-03-14 15:20:26.535897+00', '0') ON CONFLICT DO NOTHING;
INSERT INTO passkeys (id, user_id, credential_id, credential, sign_count, name, created_at, last_used_at) VALUES ('01a21f26-e4da-7044-a1bf-c9d24672b52d', '01a21f26-d09c-7bdf-853f-1c1d75174c51', E'\\x32643865383938322d396238352d343435642d393639642d333061643461653739623234', '{}', '1', 'Phone', '2026-03-14 15:19:26.535897+00', NULL) ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-d12b-7146-baf6-85d6732ff8cb', 'api_key.generated', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', E'\\x3b7fcc9a2c6599b3e30ce4f0e55a406a8b74d724e4ef0dd3a6bbeb8da72a7db0', NULL, '2026-03-14 15:09:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-d14d-7057-b69c-4385be37203b', 'api_key.generated', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', E'\\x3b7fcc9a2c6599b3e30ce4f0e55a406a8b74d724e4ef0dd3a6bbeb8da72a7db0', NULL, '2026-03-14 15:09:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-d15b-79c8-baa0-d4f6a5765f42', 'api_key.generated', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', E'\\x3b7fcc9a2c6599b3e30ce4f0e55a406a8b74d724e4ef0dd3a6bbeb8da72a7db0', NULL, '2026-03-14 15:09:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-d18a-769f-b2d7-00531400bc2d', 'session.created', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', E'\\x3b7fcc9a2c6599b3e30ce4f0e55a406a8b74d724e4ef0dd3a6bbeb8da72a7db0', E'\\x3257cb8b2e8d7ed3ed16cdf4976ef0f426e503d2fc283b65cec90978ede4721f', '2026-03-14 15:09:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-d28e-73dc-bc66-303d9bc1c4ce', 'session.created', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', E'\\x3b7fcc9a2c6599b3e30ce4f0e55a406a8b74d724e4ef0dd3a6bbeb8da72a7db0', E'\\x92f7afa9ee72a719060c91050b04a3b7929735f4111e56b7aecaab8106187875', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-d2d0-7d99-a209-f2d92c372090', 'session.created', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', E'\\x5d6714af3f32ed64c43c0fc80676607be6d4ed6cbb2ba0059d3e922e07c06ef6', E'\\x92f7afa9ee72a719060c91050b04a3b7929735f4111e56b7aecaab8106187875', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-d2fa-7263-b522-30b26cd3b357', 'invitation.created', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', E'\\xef0af6bab8983a4b37949d751dd7f929da9008cb55b7200acde36683ad12964f', NULL, '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-d5c7-7c81-b973-cb0b60ad80c4', 'email.confirmation', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', E'\\xa2a9a040fc4ea1c296bf7b8187739a7fabb71b471b758fa9e638c378af24199c', NULL, '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-d606-7c21-be2b-f0e0dc106795', 'api_key.expiring', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', E'\\x3b7fcc9a2c6599b3e30ce4f0e55a406a8b74d724e4ef0dd3a6bbeb8da72a7db0', NULL, '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-d606-7c22-bca3-21e72395b651', 'api_key.expiring', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', E'\\xe29c45425aa7996a386dbc7e2eb9ff33508a8a997c0da28c5b8894998258e43f', NULL, '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-d648-7cf2-ac94-35dd5ea6ad98', 'api_key.unused', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', E'\\x3b7fcc9a2c6599b3e30ce4f0e55a406a8b74d724e4ef0dd3a6bbeb8da72a7db0', NULL, '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-d648-7cf3-bac5-5984da823518', 'api_key.unused', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', E'\\xe29c45425aa7996a386dbc7e2eb9ff33508a8a997c0da28c5b8894998258e43f', NULL, '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-d770-7303-ae25-2980413e03dd', 'password.reset', '01a21f26-d45d-7255-9646-127bb8689ff7', E'\\xa5e362adac7ad95d841ce1da6dd14a65535b2228098bfaba464ae12d2de82b1e', NULL, '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-d7a1-702b-822c-04e140388f49', 'email.changed', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', E'\\x3b7fcc9a2c6599b3e30ce4f0e55a406a8b74d724e4ef0dd3a6bbeb8da72a7db0', NULL, '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-d7a9-7089-9420-26cd30fa22d2', 'email.changed', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', E'\\xa2a9a040fc4ea1c296bf7b8187739a7fabb71b471b758fa9e638c378af24199c', NULL, '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-d93d-768d-85fd-4f351c1d1e96', 'limit.approaching', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', E'\\x3b7fcc9a2c6599b3e30ce4f0e55a406a8b74d724e4ef0dd3a6bbeb8da72a7db0', NULL, '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-d93d-768e-951d-479b281a349b', 'limit.approaching', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', E'\\xe29c45425aa7996a386dbc7e2eb9ff33508a8a997c0da28c5b8894998258e43f', NULL, '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-d946-7ed2-b2d4-fe98b31ce2e0', 'limit.reached', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', E'\\x3b7fcc9a2c6599b3e30ce4f0e55a406a8b74d724e4ef0dd3a6bbeb8da72a7db0', NULL, '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-d946-7ed3-a9ea-df5d66e2a086', 'limit.reached', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', E'\\xe29c45425aa7996a386dbc7e2eb9ff33508a8a997c0da28c5b8894998258e43f', NULL, '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-e369-7431-8274-a34be1b0e34b', 'api_key.leaked', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', E'\\x3b7fcc9a2c6599b3e30ce4f0e55a406a8b74d724e4ef0dd3a6bbeb8da72a7db0', NULL, '2026-03-14 15:19:36.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-e369-7432-9692-bf9145eef04e', 'api_key.leaked', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', E'\\xe29c45425aa7996a386dbc7e2eb9ff33508a8a997c0da28c5b8894998258e43f', NULL, '2026-03-14 15:19:36.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-e476-7ef8-9a34-2c727fb3e2d3', 'api_key.generated', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', E'\\x3b7fcc9a2c6599b3e30ce4f0e55a406a8b74d724e4ef0dd3a6bbeb8da72a7db0', NULL, '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-e476-7ef9-ad6e-5efa51740db2', 'api_key.generated', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', E'\\xe29c45425aa7996a386dbc7e2eb9ff33508a8a997c0da28c5b8894998258e43f', NULL, '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-e4cf-7e05-90ed-647a19a4e1e2', 'session.created', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', E'\\xb5fc85e55755f9e0d030a10ab4429b6b2944855f9a0d60077fe832becbc41d72', E'\\x3257cb8b2e8d7ed3ed16cdf4976ef0f426e503d2fc283b65cec90978ede4721f', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-e4ec-7124-ba13-b641b0c6e3e1', 'passkey.added', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', E'\\xb5fc85e55755f9e0d030a10ab4429b6b2944855f9a0d60077fe832becbc41d72', NULL, '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-e51b-759b-b6f4-c1b748d3fd8a', 'authenticator.enabled', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', E'\\xb5fc85e55755f9e0d030a10ab4429b6b2944855f9a0d60077fe832becbc41d72', NULL, '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-e52d-704f-a225-77e05fc9825d', 'invitation.created', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', E'\\x338473188a5893584259dc58aac5274eb59c0e137bcfe743550b2d031aeaf907', NULL, '2026-03-14 15:20:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-e534-7f13-93f4-4e723b15687e', 'api_key.generated', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', E'\\xb5fc85e55755f9e0d030a10ab4429b6b2944855f9a0d60077fe832becbc41d72', NULL, '2026-03-14 15:20:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-e534-7f15-b636-64529018ce69', 'api_key.generated', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', E'\\xe29c45425aa7996a386dbc7e2eb9ff33508a8a997c0da28c5b8894998258e43f', NULL, '2026-03-14 15:20:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO recovery_codes (code_hash, user_id) VALUES (E'\\x27f37205cbdbf003cd55a30fecc0e5b7d52c6f65ca21481747ea22af2c2f57d6', '01a21f26-d09c-7bdf-853f-1c1d75174c51') ON CONFLICT DO NOTHING;
INSERT INTO recovery_codes (code_hash, user_id) VALUES (E'\\x2356684d320ff37f3dec676863cb1e6c14f0367eb47b5c95aa0c32da11501f42', '01a21f26-d09c-7bdf-853f-1c1d75174c51') ON CONFLICT DO NOTHING;
INSERT INTO recovery_codes (code_hash, user_id) VALUES (E'\\xa7ae3b55c679efda733dcf7555e9ef77102ef99b75f67513a8358f06d6b39443', '01a21f26-d09c-7bdf-853f-1c1d75174c51') ON CONFLICT DO NOTHING;
INSERT INTO recovery_codes (code_hash, user_id) VALUES (E'\\x1de90d2836a1d729099dad784be823c9ab05aaf43c9cb60a61a0169c78e5b8c7', '01a21f26-d09c-7bdf-853f-1c1d75174c51') ON CONFLICT DO NOTHING;
INSERT INTO recovery_codes (code_hash, user_id) VALUES (E'\\x0a6413f18f98056423dfed74f4ddb5af110120e9d75d0a74fa3a7c732e6117fd', '01a21f26-d09c-7bdf-853f-1c1d75174c51') ON CONFLICT DO NOTHING;
INSERT INTO recovery_codes (code_hash, user_id) VALUES (E'\\xccc6fad38389abfd0bfb62eb7e9fb58d8cf911423741397e4d44483494945459', '01a21f26-d09c-7bdf-853f-1c1d75174c51') ON CONFLICT DO NOTHING;
INSERT INTO recovery_codes (code_hash, user_id) VALUES (E'\\xfda72a6c2ea73f263425f24b05c57a0c1506c9374f0882c3f279db4a47682d58', '01a21f26-d09c-7bdf-853f-1c1d75174c51') ON CONFLICT DO NOTHING;
INSERT INTO recovery_codes (code_hash, user_id) VALUES (E'\\xf78050c94b9bcd9b03e8b5122de1b8011f1a8eccedf1a82c7c0b170f4b861aa8', '01a21f26-d09c-7bdf-853f-1c1d75174c51') ON CONFLICT DO NOTHING;
INSERT INTO recovery_codes (code_hash, user_id) VALUES (E'\\xd36ca6f5b8b0a5973206de50226f2e455bff51ffba0c806689d647de385a9bf6', '01a21f26-d09c-7bdf-853f-1c1d75174c51') ON CONFLICT DO NOTHING;
INSERT INTO recovery_codes (code_hash, user_id) VALUES (E'\\x265181999fd4f15d297bb169f33566c494fdec1d2d5a594582317a3096c5fa09', '01a21f26-d09c-7bdf-853f-1c1d75174c51') ON CONFLICT DO NOTHING;
INSERT INTO secret_check (only_row, current, previous) VALUES ('1', E'\\x00d1101a4e4ca10e16cdd543b9f1d2e7bd32a5a921a983fffd5c823cdbc37d0c', NULL) ON CONFLICT DO NOTHING;
INSERT INTO sessions (id, user_id, token_hash, created_at, last_seen_at, expires_at, authenticated_at, first_address, last_address, user_agent) VALUES ('01a21f26-d3e8-7438-a504-571adf43ea0a', '01a21f26-d3e7-747d-b66f-282aa97c9280', E'\\xfc87dffda9178d87accb650122c003806c61fefa09bbdf573c457b4a98171f92', '2026-03-14 15:19:26.535897+00', '2026-03-14 15:19:26.535897+00', '2026-04-13 15:19:26.535897+00', '2026-03-14 15:19:26.535897+00', '203.0.113.7', '203.0.113.7', 'Mozilla/5.0') ON CONFLICT DO NOTHING;
INSERT INTO sessions (id, user_id, token_hash, created_at, last_seen_at, expires_at, authenticated_at, first_address, last_address, user_agent) VALUES ('01a21f26-e4f0-7c02-b206-b269ece6c11d', '01a21f26-d09c-7bdf-853f-1c1d75174c51', E'\\x4a948ede41ac51e083ebc04e7372b82a2e4baee9f9feab9067642043be0c180b', '2026-03-14 15:19:26.535897+00', '2026-03-14 15:19:26.535897+00', '2026-04-13 15:19:26.535897+00', '2026-03-14 15:19:26.535897+00', '203.0.113.7', '203.0.113.7', 'Mozilla/5.0') ON CONFLICT DO NOTHING;
INSERT INTO sign_in_failures (id, subject, at) VALUES ('01a21f26-d27c-76d7-82e2-af09f7860108', E'\\xc989c2a29ca5c1dc1c62cbae52cb39388699487f994377abbc89c3c51f64815f', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO sign_in_failures (id, subject, at) VALUES ('01a21f26-d468-7c5d-bdc1-8d688c417533', E'\\x927e555dbc8d45b63ec6f0566045b83f76fae44e106308262723ae1fa9067e24', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO sign_in_failures (id, subject, at) VALUES ('01a21f26-d468-7c5f-8c91-d937d74902ef', E'\\xf3c3f14b6c2270d04eaa2350068e0ca4ff0f404af9cb6d4a1c4f9c7cc3ec09a5', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO sign_in_failures (id, subject, at) VALUES ('01a21f26-d5ad-7494-bd08-811298029b37', E'\\xc989c2a29ca5c1dc1c62cbae52cb39388699487f994377abbc89c3c51f64815f', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO sign_in_links (token_hash, user_id, expires_at) VALUES (E'\\x2412544946179c1c4bcf9a2436ba00605ec2ea544084062fe5b648ebbefd6520', '01a21f26-d2ee-7030-8985-af10a95c5a42', '2026-03-14 15:24:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO used_challenges (challenge_hash, expires_at) VALUES (E'\\x44b8dad427e3aec4c6f4e8471178d4f309b479cdb999ac277e2ff460ecc0ac23', '2026-03-14 15:29:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO users (id, account_id, role, email, email_hash, email_proven_at, password_hash, known_browsers, created_at, last_sign_in_at, disabled_at, removed_at) VALUES ('01a21f26-d2ee-7030-8985-af10a95c5a42', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'member', 'ac67e555-ebbd-4254-9baa-156708b72fe4@example.com', E'\\xdb9ee6c298ecac36280ebf73aaa3b9f1de067acf121786674201eb352f37d63f', '2026-03-14 15:19:26.535897+00', '$argon2id$v=19$m=47104,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA', '0', '2026-03-14 15:19:26.535897+00', NULL, NULL, NULL) ON CONFLICT DO NOTHING;
INSERT INTO users (id, account_id, role, email, email_hash, email_proven_at, password_hash, known_browsers, created_at, last_sign_in_at, disabled_at, removed_at) VALUES ('01a21f26-d3e7-747d-b66f-282aa97c9280', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'owner', '4d42cdc3-7e22-4fa9-8974-94929e491184@example.com', E'\\xe29c45425aa7996a386dbc7e2eb9ff33508a8a997c0da28c5b8894998258e43f', NULL, '$argon2id$v=19$m=47104,t=1,p=1$uAsEOjVpE0k4ILQcyjGclw$0fsF+mvyrc7eWCKju3OILHfaMrj7xKkpNI6zvaim1mw', '0', '2026-03-14 15:19:26.535897+00', '2026-03-14 15:19:26.535897+00', NULL, NULL) ON CONFLICT DO NOTHING;
INSERT INTO users (id, account_id, role, email, email_hash, email_proven_at, password_hash, known_browsers, created_at, last_sign_in_at, disabled_at, removed_at) VALUES ('01a21f26-d45d-7261-905b-b1ae13b37490', '01a21f26-d45d-7255-9646-127bb8689ff7', 'owner', 'Ada.01a21f26-d45d-7255-9646-127bb8689ff7@Example.com', E'\\xa5e362adac7ad95d841ce1da6dd14a65535b2228098bfaba464ae12d2de82b1e', '2026-03-14 15:19:26.535897+00', '$argon2id$v=19$m=47104,t=1,p=1$XwDDJz76HqaxOmwpnf2CtA$SoZUsElpQvvJuHaWKLPupCxfw9R2vhKpndLLzEvfvEE', '1', '2026-03-14 15:19:26.535897+00', NULL, NULL, NULL) ON CONFLICT DO NOTHING;
INSERT INTO users (id, account_id, role, email, email_hash, email_proven_at, password_hash, known_browsers, created_at, last_sign_in_at, disabled_at, removed_at) VALUES ('01a21f26-d29c-738d-a1e3-c6df2d85922f', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'member', '151d6f65-269a-44e5-a5f8-e64b79f821dc@example.com', E'\\x4d8383b6a7af7ef57081c78a4212bee6a8b8379e2c2e0e10fe1387dafb165c13', '2026-03-14 15:19:26.535897+00', '$argon2id$v=19$m=47104,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA', '0', '2026-03-14 15:19:26.535897+00', '2026-03-14 15:19:26.535897+00', '2026-03-14 15:19:26.535897+00', '2026-03-14 15:19:26.535897+00') ON CONFLICT DO NOTHING;
INSERT INTO users (id, account_id, role, email, email_hash, email_proven_at, password_hash, known_browsers, created_at, last_sign_in_at, disabled_at, removed_at) VALUES ('01a21f26-d09c-7bdf-853f-1c1d75174c51', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'owner', 'ada@example.com', E'\\xb5fc85e55755f9e0d030a10ab4429b6b2944855f9a0d60077fe832becbc41d72', '2026-03-14 15:09:26.535897+00', '$argon2id$v=19$m=8,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$XdTJKPvVpEdCNu922dgwQXj+XfOITS04PpG3cDMn5sE', '2', '2026-03-14 15:09:26.535897+00', '2026-03-14 15:19:26.535897+00', NULL, NULL) ON CONFLICT DO NOTHING;
INSERT INTO webhook_deliveries (endpoint_id, event_id, event, account_id, created_at, due_at, attempts, final, delivered_at, status, response) VALUES ('01a21f26-e51c-7d4f-9259-875fd71182b5', '01a21f26-e525-718a-811e-77e0dd6dde90', 'invitation.created', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', '2026-03-14 15:20:26.535897+00', '2026-03-14 15:20:26.535897+00', '0', 'false', NULL, '0', '') ON CONFLICT DO NOTHING;
INSERT INTO webhook_deliveries (endpoint_id, event_id, event, account_id, created_at, due_at, attempts, final, delivered_at, status, response) VALUES ('01a21f26-e51c-7d4f-9259-875fd71182b5', '01a21f26-e530-7c3f-8997-d6291be7ca4a', 'api_key.generated', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', '2026-03-14 15:20:26.535897+00', '2026-03-14 15:20:26.535897+00', '0', 'false', NULL, '0', '') ON CONFLICT DO NOTHING;
INSERT INTO webhook_endpoints (id, account_id, url, event_groups, secret, key_id, previous, previous_key_id, previous_until, created_at, disabled_at, removed_at, failing_since, failures, failure_mailed_at) VALUES ('01a21f26-e51c-7d4f-9259-875fd71182b5', '01a21f26-d09c-7bd6-9a6c-875d1d308a04', 'https://example.com/', '["keys","calls","people"]', E'\\xf1abdb56ff2e10738e171b6aeceedfaa46e1d9bd25987345264493b62c6f9f9f6cc8781744b70fb7ec1223c6f7639bebc3226241b4be179701a9b497', E'\\x7619eef430707544', NULL, NULL, NULL, '2026-03-14 15:20:26.535897+00', NULL, NULL, NULL, '0', NULL) ON CONFLICT DO NOTHING;
