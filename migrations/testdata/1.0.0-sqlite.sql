-- The schema for SQLite. The file for PostgreSQL has the same tables in the same order, and the
-- same names of columns, indexes and triggers.
--
-- The program generates the ids (UUIDv7). Ids and times (UTC) are text. A hash is a SHA-256 unless
-- its comment says otherwise. Tables with triggers have no rowid, because a statement could replace
-- a row by its rowid without firing the triggers.

-- Customers.

CREATE TABLE accounts (
    id                     TEXT PRIMARY KEY,
    name                   TEXT NOT NULL,
    -- Whether every user of the account needs an authenticator app or a passkey.
    second_factor_required BOOLEAN NOT NULL DEFAULT false,
    -- Whether demo seed created it and may replace it.
    seeded                 BOOLEAN NOT NULL DEFAULT false,
    created_at             TIMESTAMP NOT NULL,
    disabled_at            TIMESTAMP,
    -- The limits of its calls as JSON. NULL: none.
    limits                 TEXT,
    -- The nanoseconds without a use after which keys are revoked. NULL: as the portal is
    -- configured.
    unused_lifetime        INTEGER
) WITHOUT ROWID;

-- For the question whether any limit is set.
CREATE INDEX accounts_limited ON accounts (id) WHERE limits IS NOT NULL;

CREATE TABLE users (
    id              TEXT PRIMARY KEY,
    account_id      TEXT NOT NULL REFERENCES accounts (id),
    -- Owners manage the users of their account, members do not.
    role            TEXT NOT NULL CHECK (role IN ('owner', 'member')),
    email           TEXT NOT NULL,
    -- Hash of the trimmed email in lower case. Users sometimes type a password into the email
    -- field, and it must not reach the database's log.
    email_hash      BLOB NOT NULL UNIQUE,
    -- Since when the user's emails are proven: a link mailed to the email was used, or an operator
    -- gave it. NULL: nobody has proved the email.
    email_proven_at TIMESTAMP,
    -- argon2id as a PHC string.
    password_hash   TEXT NOT NULL,
    -- The browsers that the user has signed in with are known until this changes.
    known_browsers  INTEGER NOT NULL DEFAULT 0,
    created_at      TIMESTAMP NOT NULL,
    last_sign_in_at TIMESTAMP,
    disabled_at     TIMESTAMP,
    -- A removed user stays for the account's activity log, but is disabled, and its email is free.
    removed_at      TIMESTAMP
);
CREATE INDEX users_account ON users (account_id);
-- For the purge of users who were removed long ago.
CREATE INDEX users_removed ON users (removed_at) WHERE removed_at IS NOT NULL;

CREATE TABLE agents (
    id         TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    name       TEXT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    -- While it is set, the agent is refused like one that was removed.
    paused_at  TIMESTAMP
) WITHOUT ROWID;
-- For the list of agents, which is read page by page.
CREATE INDEX agents_by_name ON agents (account_id, lower(name), name, id);

CREATE TABLE api_keys (
    id          TEXT PRIMARY KEY,
    account_id  TEXT NOT NULL REFERENCES accounts (id),
    label       TEXT NOT NULL,
    -- Hash of the whole key; the key itself is stored nowhere. NULL for a key without a secret.
    key_hash    BLOB UNIQUE CHECK (length(key_hash) = 32),
    last_four   TEXT NOT NULL,
    -- What the key is for, which never changes: agents and tokens, or only reports.
    access      TEXT NOT NULL DEFAULT 'agents' CHECK (access IN ('agents', 'reports')),
    -- The form that generated the key. Each form generates at most one key.
    form_id     TEXT NOT NULL,
    -- The key that this one replaces in a rotation.
    replaces_id TEXT REFERENCES api_keys (id) ON DELETE SET NULL,
    -- The user who generated the key; NULL for an operator.
    created_by  TEXT,
    created_at  TIMESTAMP NOT NULL,
    revoked_at  TIMESTAMP,
    -- Who reported the key as leaked, and where it was found; NULL for a key that nobody reported.
    leak_reporter TEXT,
    leak_url    TEXT,
    -- From then on the key is refused, by the database's clock. NULL: never.
    expires_at  TIMESTAMP,
    -- The nanoseconds until expires_at when it was last set, for a rotation.
    lifetime    INTEGER,
    -- When the owners were last told that the key expires; NULL if they were not, or if the expiry
    -- was set since.
    expiry_warned_at TIMESTAMP,
    -- The recorded activities about the expiry: 0 none, 1 that the key expires, 2 that it has
    -- expired.
    expiry_recorded INTEGER NOT NULL DEFAULT 0,
    -- The nanoseconds of PORTAL_KEY_UNUSED_LIFETIME when it was last looked whether the key is
    -- unused; negative if that is to be done anew. Then the time of the next look, NULL: never, the
    -- start of the 14 days before the revocation, when and how often mails about it were queued,
    -- and how many times somebody got them.
    unused_policy INTEGER NOT NULL DEFAULT -1,
    unused_check_at TIMESTAMP,
    unused_since TIMESTAMP,
    unused_warned_at TIMESTAMP,
    unused_warnings INTEGER NOT NULL DEFAULT 0,
    unused_mailed INTEGER NOT NULL DEFAULT 0,
    -- JSON lists: the ids of the agents that the key reaches, and the networks (CIDR) that it is
    -- accepted from. NULL: all of them.
    agents      TEXT,
    networks    TEXT,
    -- The limits of its calls as JSON. NULL: none.
    limits      TEXT,
    note        TEXT NOT NULL DEFAULT '',
    -- What the user wrote when the key was revoked.
    revocation_reason TEXT NOT NULL DEFAULT '',
    -- How a client proves that it may use the key: with its value, or with a token that the trust
    -- rule accepts. The rule is JSON. Its version changes whenever it is saved, which ends the
    -- access tokens from before. The pins, which are JSON too, are claims of the first token.
    credential  TEXT NOT NULL DEFAULT 'secret' CHECK (credential IN ('secret', 'workload')),
    trust       TEXT,
    trust_version TEXT,
    trust_pins  TEXT,
    CONSTRAINT api_keys_secret_check CHECK ((credential = 'secret') = (key_hash IS NOT NULL)),
    CONSTRAINT api_keys_workload_check CHECK ((credential = 'workload') = (trust IS NOT NULL AND trust_version IS NOT NULL)),
    UNIQUE (account_id, form_id)
) WITHOUT ROWID;
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
    id         TEXT PRIMARY KEY,
    api_key_id TEXT NOT NULL,
    at         TIMESTAMP NOT NULL,
    -- Why the token was refused; empty: accepted.
    reason     TEXT NOT NULL,
    address    TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX exchanges_of_key ON exchanges (api_key_id, id);

-- Tokens that are accepted once: a hash of issuer and jti, until the token expires.
CREATE TABLE used_tokens (
    token_hash BLOB PRIMARY KEY CHECK (length(token_hash) = 32),
    expires_at TIMESTAMP NOT NULL
) WITHOUT ROWID;
CREATE INDEX used_tokens_expiry ON used_tokens (expires_at);

-- Usage. It is written in the background into tables of its own, so that authentication and
-- revocation never wait for its locks. There are no foreign keys, so that the flush of many keys
-- does not fail when an operator deletes one of them.

-- The row of a key has its last use, and the counts of one hour, which is usually the current one.
-- A trigger moves the counts of a past hour to the tables of hours and days. So the background
-- write of a used key updates one row, and the other two tables once an hour.
CREATE TABLE api_key_last_uses (
    api_key_id TEXT PRIMARY KEY,
    used_at    TIMESTAMP,
    hour       TIMESTAMP,
    requests   INTEGER NOT NULL DEFAULT 0,
    refusals   INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

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

CREATE TRIGGER api_key_last_uses_keep_past_hour AFTER UPDATE OF hour ON api_key_last_uses
    WHEN OLD.hour <> NEW.hour
BEGIN
    INSERT INTO api_key_hourly_usage (api_key_id, hour, requests, refusals)
    VALUES (OLD.api_key_id, OLD.hour, OLD.requests, OLD.refusals)
    ON CONFLICT (api_key_id, hour) DO UPDATE SET
        requests = requests + excluded.requests, refusals = refusals + excluded.refusals;
    INSERT INTO api_key_daily_usage (api_key_id, day, requests, refusals)
    VALUES (OLD.api_key_id, substr(OLD.hour, 1, 10) || ' 00:00:00+00:00', OLD.requests, OLD.refusals)
    ON CONFLICT (api_key_id, day) DO UPDATE SET
        requests = requests + excluded.requests, refusals = refusals + excluded.refusals;
END;

-- Where the requests of each key come from, by day, also those that were refused for their address,
-- but not those with a key that is no longer active. A key has at most 20 sources on a day: for a
-- new one, a trigger adds the one of the others that has the fewest requests to a row with an empty
-- address and client. The addresses are personal data: the rows are deleted after 90 days.
CREATE TABLE api_key_sources (
    api_key_id TEXT NOT NULL,
    day        TIMESTAMP NOT NULL,
    -- An IPv4 address, an IPv6 network (/64) or "Unknown".
    address    TEXT NOT NULL,
    -- The first product of the User-Agent, or "Unknown".
    client     TEXT NOT NULL,
    requests   INTEGER NOT NULL,
    first_seen TIMESTAMP NOT NULL,
    last_seen  TIMESTAMP NOT NULL,
    PRIMARY KEY (api_key_id, day, address, client)
) WITHOUT ROWID;
CREATE INDEX api_key_sources_day ON api_key_sources (day);

CREATE TRIGGER api_key_sources_keep_most_used AFTER INSERT ON api_key_sources
    WHEN NEW.client <> ''
        AND 20 < (SELECT count(*) FROM api_key_sources WHERE api_key_id = NEW.api_key_id AND day = NEW.day AND client <> '')
BEGIN
    INSERT INTO api_key_sources (api_key_id, day, address, client, requests, first_seen, last_seen)
    SELECT api_key_id, day, '', '', requests, first_seen, last_seen FROM api_key_sources
    WHERE api_key_id = NEW.api_key_id AND day = NEW.day AND client <> '' AND (address, client) <> (NEW.address, NEW.client)
    ORDER BY requests, last_seen, address, client LIMIT 1
    ON CONFLICT (api_key_id, day, address, client) DO UPDATE SET requests = requests + excluded.requests,
        first_seen = min(first_seen, excluded.first_seen), last_seen = max(last_seen, excluded.last_seen);
    DELETE FROM api_key_sources WHERE (api_key_id, day, address, client) IN (
        SELECT api_key_id, day, address, client FROM api_key_sources
        WHERE api_key_id = NEW.api_key_id AND day = NEW.day AND client <> '' AND (address, client) <> (NEW.address, NEW.client)
        ORDER BY requests, last_seen, address, client LIMIT 1);
END;

-- The last 50 refused requests of each key of 7 days. The program deletes older ones when it
-- writes. The addresses are personal data.
CREATE TABLE api_key_refusals (
    api_key_id TEXT NOT NULL,
    id         TEXT NOT NULL,
    at         TIMESTAMP NOT NULL,
    reason     TEXT NOT NULL,
    -- The method and the pattern of the path.
    route      TEXT NOT NULL,
    -- As in api_key_sources.
    address    TEXT NOT NULL,
    client     TEXT NOT NULL,
    request_id TEXT NOT NULL,
    PRIMARY KEY (api_key_id, id)
) WITHOUT ROWID;
CREATE INDEX api_key_refusals_at ON api_key_refusals (at);

-- When each key last used an agent: issued a widget token for it or authorized a request to it.
CREATE TABLE api_key_agents (
    api_key_id TEXT NOT NULL,
    agent_id   TEXT NOT NULL,
    used_at    TIMESTAMP NOT NULL,
    PRIMARY KEY (api_key_id, agent_id)
) WITHOUT ROWID;
-- For the last use of an agent.
CREATE INDEX api_key_agents_agent ON api_key_agents (agent_id, used_at);
CREATE INDEX api_key_agents_used ON api_key_agents (used_at);

-- Sign-in.

CREATE TABLE sessions (
    id               TEXT PRIMARY KEY,
    user_id          TEXT NOT NULL REFERENCES users (id),
    -- Hash of the session token in the cookie.
    token_hash       BLOB NOT NULL UNIQUE CHECK (length(token_hash) = 32),
    created_at       TIMESTAMP NOT NULL,
    last_seen_at     TIMESTAMP NOT NULL,
    expires_at       TIMESTAMP NOT NULL,
    -- When the user last entered the password, or proved the identity in another way.
    authenticated_at TIMESTAMP NOT NULL,
    first_address    TEXT NOT NULL,
    last_address     TEXT NOT NULL,
    user_agent       TEXT NOT NULL
);
CREATE INDEX sessions_user ON sessions (user_id);
-- For the purge of expired and idle sessions.
CREATE INDEX sessions_expiry ON sessions (expires_at);
CREATE INDEX sessions_last_seen ON sessions (last_seen_at);

-- Wrong passwords of the last minute. The subject is a hash, because users sometimes type a
-- password into the email field.
CREATE TABLE sign_in_failures (
    id      TEXT PRIMARY KEY,
    subject BLOB NOT NULL,
    at      TIMESTAMP NOT NULL
);
CREATE INDEX sign_in_failures_subject ON sign_in_failures (subject, at);
CREATE INDEX sign_in_failures_at ON sign_in_failures (at);

-- Sign-ins after the first of two steps.
CREATE TABLE pending_sign_ins (
    -- Hash of the token in the browser's cookie.
    token_hash BLOB PRIMARY KEY CHECK (length(token_hash) = 32),
    user_id    TEXT NOT NULL REFERENCES users (id),
    expires_at TIMESTAMP NOT NULL
);
CREATE INDEX pending_sign_ins_user ON pending_sign_ins (user_id);
CREATE INDEX pending_sign_ins_expiry ON pending_sign_ins (expires_at);

-- Links that sign a user in once. A used link is deleted.
CREATE TABLE sign_in_links (
    -- Hash of the token in the link.
    token_hash BLOB PRIMARY KEY CHECK (length(token_hash) = 32),
    user_id    TEXT NOT NULL REFERENCES users (id),
    expires_at TIMESTAMP NOT NULL
);
CREATE INDEX sign_in_links_user ON sign_in_links (user_id);
CREATE INDEX sign_in_links_expiry ON sign_in_links (expires_at);

-- Links that set a new password once. Using one deletes all links of the user.
CREATE TABLE password_reset_links (
    -- Hash of the token in the link.
    token_hash BLOB PRIMARY KEY CHECK (length(token_hash) = 32),
    user_id    TEXT NOT NULL REFERENCES users (id),
    expires_at TIMESTAMP NOT NULL
);
CREATE INDEX password_reset_links_user ON password_reset_links (user_id);
CREATE INDEX password_reset_links_expiry ON password_reset_links (expires_at);

-- The new emails that users have asked for. A link in an email to the new address confirms it.
CREATE TABLE email_changes (
    user_id    TEXT PRIMARY KEY REFERENCES users (id),
    email      TEXT NOT NULL,
    -- The email in the outbox.
    mail_id    TEXT NOT NULL UNIQUE,
    -- Hash of the token in the link; NULL until the email is sent.
    token_hash BLOB UNIQUE CHECK (length(token_hash) = 32),
    expires_at TIMESTAMP NOT NULL
);
CREATE INDEX email_changes_expiry ON email_changes (expires_at);

-- The authenticator apps of users.
CREATE TABLE authenticators (
    user_id       TEXT PRIMARY KEY REFERENCES users (id),
    -- The secret shared with the app, encrypted with a key derived from PORTAL_SECRET.
    secret        BLOB NOT NULL,
    -- Identifies that key.
    key_id        BLOB NOT NULL CHECK (length(key_id) = 8),
    created_at    TIMESTAMP NOT NULL,
    -- NULL until the user has entered the first code.
    enabled_at    TIMESTAMP,
    -- The time step of the last accepted code. Each code works once.
    last_step     INTEGER NOT NULL DEFAULT 0,
    -- The wrong codes since the first one within a day.
    refused_codes INTEGER NOT NULL DEFAULT 0,
    refused_since TIMESTAMP
);
CREATE INDEX authenticators_unconfirmed ON authenticators (created_at) WHERE enabled_at IS NULL;

-- The unused recovery codes of users. A used code is deleted.
CREATE TABLE recovery_codes (
    -- Hash of the code, which has 120 random bits.
    code_hash BLOB PRIMARY KEY CHECK (length(code_hash) = 32),
    user_id   TEXT NOT NULL REFERENCES users (id)
);
CREATE INDEX recovery_codes_user ON recovery_codes (user_id);

-- The passkeys of users.
CREATE TABLE passkeys (
    id            TEXT PRIMARY KEY,
    user_id       TEXT NOT NULL REFERENCES users (id),
    credential_id BLOB NOT NULL UNIQUE,
    -- The credential record of WebAuthn as JSON, with the public key.
    credential    TEXT NOT NULL,
    sign_count    INTEGER NOT NULL,
    name          TEXT NOT NULL,
    created_at    TIMESTAMP NOT NULL,
    last_used_at  TIMESTAMP
);
CREATE INDEX passkeys_user ON passkeys (user_id);

-- The WebAuthn challenges that have been answered. Each works once.
CREATE TABLE used_challenges (
    challenge_hash BLOB PRIMARY KEY CHECK (length(challenge_hash) = 32),
    expires_at     TIMESTAMP NOT NULL
);
CREATE INDEX used_challenges_expiry ON used_challenges (expires_at);

-- The identities at an OpenID Connect provider that sign users in.
CREATE TABLE identities (
    issuer     TEXT NOT NULL,
    subject    TEXT NOT NULL CHECK (length(subject) BETWEEN 1 AND 255),
    user_id    TEXT NOT NULL REFERENCES users (id),
    -- The provider's email at that time, which helps the user to recognize the identity.
    email      TEXT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    PRIMARY KEY (issuer, subject)
);
CREATE UNIQUE INDEX identities_user ON identities (user_id, issuer);

-- Invitations and emails.

-- Invitations to join an account. A used or cancelled invitation is deleted.
CREATE TABLE invitations (
    id              TEXT PRIMARY KEY,
    account_id      TEXT NOT NULL REFERENCES accounts (id),
    email           TEXT NOT NULL,
    -- As in users.
    email_hash      BLOB NOT NULL CHECK (length(email_hash) = 32),
    role            TEXT NOT NULL CHECK (role IN ('owner', 'member')),
    -- Hash of the token in the link.
    token_hash      BLOB NOT NULL UNIQUE CHECK (length(token_hash) = 32),
    -- Hash of the token in the link of the email; NULL until the email is sent.
    mail_token_hash BLOB CHECK (length(mail_token_hash) = 32),
    -- The user who invites; NULL for an operator.
    inviter_id      TEXT REFERENCES users (id),
    created_at      TIMESTAMP NOT NULL,
    expires_at      TIMESTAMP NOT NULL,
    UNIQUE (account_id, email_hash)
);
CREATE INDEX invitations_inviter ON invitations (inviter_id);
CREATE INDEX invitations_expiry ON invitations (expires_at);
CREATE UNIQUE INDEX invitations_mail_token ON invitations (mail_token_hash);

-- Emails of the last hour, to limit them, with their ids. Older rows are purged.
CREATE TABLE recent_mails (
    id          TEXT PRIMARY KEY,
    kind        TEXT NOT NULL,
    account_id  TEXT NOT NULL REFERENCES accounts (id),
    -- As in users.
    email_hash  BLOB NOT NULL CHECK (length(email_hash) = 32),
    -- Hash of the address and the browser of a sign-in. Repeated sign-ins share an email.
    device_hash BLOB CHECK (length(device_hash) = 32),
    at          TIMESTAMP NOT NULL
);
CREATE INDEX recent_mails_account ON recent_mails (account_id, kind, at);
CREATE INDEX recent_mails_email ON recent_mails (email_hash, kind, at);
CREATE INDEX recent_mails_at ON recent_mails (at);

-- Emails that wait until they are sent. A sent email is deleted.
CREATE TABLE outbox (
    id          TEXT PRIMARY KEY,
    -- The action of the activity that the email reports, password.forgotten, email.confirmation,
    -- api_key.expiring or api_key.unused.
    kind        TEXT NOT NULL,
    -- NULL: unknown until the email is sent.
    account_id  TEXT REFERENCES accounts (id),
    activity_id TEXT,
    -- Empty until the email is sent if only the hash is known.
    recipient   TEXT NOT NULL,
    -- As in users.
    email_hash  BLOB CHECK (length(email_hash) = 32),
    created_at  TIMESTAMP NOT NULL,
    -- When an instance may send the email: also the end of the lease of the one that sends it.
    due_at      TIMESTAMP NOT NULL,
    attempts    INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX outbox_due ON outbox (due_at);
CREATE INDEX outbox_account ON outbox (account_id);
CREATE INDEX outbox_created ON outbox (created_at);

-- Activity.

-- What users and operators did. Only an erasure changes a row.
CREATE TABLE activities (
    id           TEXT PRIMARY KEY,
    account_id   TEXT NOT NULL REFERENCES accounts (id),
    actor_kind   TEXT NOT NULL,
    actor_id     TEXT,
    action       TEXT NOT NULL,
    subject_id   TEXT,
    -- The name of the subject at that time.
    label        TEXT NOT NULL,
    -- The name of a key, agent or account before it was renamed, or the email of a user before it
    -- was changed; NULL for other activities.
    former_label TEXT,
    -- The old and new restrictions of a key, or why it was revoked; NULL for other activities.
    detail       TEXT,
    -- The number of sessions or calls that were ended at once; 1 for other activities.
    count        INTEGER NOT NULL DEFAULT 1,
    address      TEXT NOT NULL,
    at           TIMESTAMP NOT NULL
) WITHOUT ROWID;
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
    account_id TEXT PRIMARY KEY
) WITHOUT ROWID;

CREATE TRIGGER activities_no_update BEFORE UPDATE ON activities
    WHEN NOT EXISTS (SELECT 1 FROM erasing WHERE account_id = OLD.account_id)
BEGIN
    SELECT RAISE(ABORT, 'activities is append-only');
END;
-- The portal deletes activities after 400 days. The trigger allows a DELETE after 399 days, because
-- the clocks of the portal and the database may differ.
CREATE TRIGGER activities_no_delete BEFORE DELETE ON activities
    WHEN OLD.at > strftime('%Y-%m-%d %H:%M:%f', 'now', '-399 days')
        AND NOT EXISTS (SELECT 1 FROM erasing WHERE account_id = OLD.account_id)
BEGIN
    SELECT RAISE(ABORT, 'activities is append-only');
END;
-- INSERT OR REPLACE deletes a row without firing its trigger for a delete.
CREATE TRIGGER activities_no_replace BEFORE INSERT ON activities
    WHEN EXISTS (SELECT 1 FROM activities WHERE id = NEW.id)
BEGIN
    SELECT RAISE(ABORT, 'activities is append-only');
END;

-- One activity records the wrong passwords or codes of one user in ten minutes. This table counts
-- them, because the rows of activities never change.
CREATE TABLE activity_repeats (
    account_id  TEXT NOT NULL,
    user_id     TEXT NOT NULL,
    action      TEXT NOT NULL,
    -- The start of the ten minutes.
    period      TIMESTAMP NOT NULL,
    activity_id TEXT NOT NULL UNIQUE,
    -- The address of the first one.
    address     TEXT NOT NULL,
    -- The number after the first one.
    repeats     INTEGER NOT NULL DEFAULT 0,
    -- Whether one of them came from another address than the first one.
    elsewhere   BOOLEAN NOT NULL DEFAULT false,
    -- The place of the activity in the list, which sorts by id, and its time: of the last one.
    last_id     TEXT NOT NULL,
    last_at     TIMESTAMP NOT NULL,
    PRIMARY KEY (user_id, action, period)
);
CREATE INDEX activity_repeats_period ON activity_repeats (period);
CREATE INDEX activity_repeats_account ON activity_repeats (account_id, last_id);

-- Calls.

-- The calls of visitors: LiveKit's rooms that tokens of the portal opened. The ids of visitors are
-- personal data: the rows are deleted after 90 days.
CREATE TABLE calls (
    id           TEXT PRIMARY KEY,
    account_id   TEXT NOT NULL REFERENCES accounts (id),
    agent_id     TEXT NOT NULL,
    api_key_id   TEXT NOT NULL,
    -- LiveKit's id of the room. A room that is opened again has another one, but the same name.
    room_id      TEXT NOT NULL UNIQUE,
    room_name    TEXT NOT NULL,
    -- The id of the visitor in the customer's system.
    user_id      TEXT,
    started_at   TIMESTAMP NOT NULL,
    ended_at     TIMESTAMP,
    end_reason   TEXT,
    -- Whether LiveKit has reported the start and, if there is one, the end.
    exact        BOOLEAN NOT NULL,
    -- Why the portal ends the call, before it does.
    ending       TEXT,
    -- The last list of rooms with somebody in the room, if a later one was without.
    unseen_since TIMESTAMP,
    -- What LiveKit has reported about each visitor, as JSON.
    visitors     TEXT,
    -- Whether the portal has ended the call and no activity counts it yet.
    unrecorded   BOOLEAN NOT NULL DEFAULT false
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
    subject_id TEXT NOT NULL,
    day        TIMESTAMP NOT NULL,
    calls      INTEGER NOT NULL,
    seconds    INTEGER NOT NULL,
    PRIMARY KEY (subject_id, day)
) WITHOUT ROWID;
CREATE INDEX call_totals_day ON call_totals (day);

-- The owners are told once a month that most of a limit's minutes, or all of them, are used.
CREATE TABLE limit_notices (
    -- The key or the account.
    subject_id TEXT NOT NULL,
    month      TIMESTAMP NOT NULL,
    percent    INTEGER NOT NULL,
    PRIMARY KEY (subject_id, month, percent)
) WITHOUT ROWID;
CREATE INDEX limit_notices_month ON limit_notices (month);

-- The rounds, in which one instance at a time lists LiveKit's rooms and ends calls: one row.
CREATE TABLE call_rounds (
    only_row     INTEGER PRIMARY KEY DEFAULT 1 CHECK (only_row = 1),
    -- The number of the round. An instance that begins a round increases it.
    round        INTEGER NOT NULL DEFAULT 0,
    -- When another instance may begin a round, although this one has not ended.
    lease_until  TIMESTAMP NOT NULL,
    -- When the next round is due, at the latest.
    due_at       TIMESTAMP NOT NULL,
    -- When LiveKit last answered with a list of rooms. NULL: never.
    listed_at    TIMESTAMP,
    -- The moment and the epoch of authentication that the last complete round saw.
    checked_at   TIMESTAMP NOT NULL,
    epoch        BLOB,
    -- Until then, a client can open a call with the token of a key that may have been revoked.
    watch_until  TIMESTAMP NOT NULL
);
INSERT INTO call_rounds (lease_until, due_at, checked_at, watch_until)
VALUES ('2000-01-01 00:00:00+00:00', '2000-01-01 00:00:00+00:00', '2000-01-01 00:00:00+00:00', '2000-01-01 00:00:00+00:00');

-- The accounts and users whose data were erased. A row stays, so that a restore of an older backup
-- erases them again.
CREATE TABLE erasures (
    -- The account or the user.
    id          TEXT PRIMARY KEY,
    account_id  TEXT NOT NULL,
    erased_at   TIMESTAMP NOT NULL,
    -- The emails of the user, one a line; empty when the erasure is complete.
    emails      TEXT NOT NULL DEFAULT '',
    -- NULL while rows are left.
    finished_at TIMESTAMP
) WITHOUT ROWID;
CREATE INDEX erasures_account ON erasures (account_id);
CREATE INDEX erasures_unfinished ON erasures (id) WHERE finished_at IS NULL;

-- When the newest backup was begun, for a metric. There is no row before the first.
CREATE TABLE last_backup (
    only_row INTEGER PRIMARY KEY DEFAULT 1 CHECK (only_row = 1),
    began_at TIMESTAMP NOT NULL
);

-- Webhooks.

-- The URLs that get an account's events.
CREATE TABLE webhook_endpoints (
    id             TEXT PRIMARY KEY,
    account_id     TEXT NOT NULL REFERENCES accounts (id),
    url            TEXT NOT NULL,
    -- The groups of events, as a JSON list.
    event_groups   TEXT NOT NULL,
    -- The secret that signs, encrypted with a key derived from PORTAL_SECRET, and the id of that
    -- key.
    secret         BLOB NOT NULL,
    key_id         BLOB NOT NULL CHECK (length(key_id) = 8),
    -- The secret before a rotation, which signs too until previous_until.
    previous       BLOB,
    previous_key_id BLOB CHECK (length(previous_key_id) = 8),
    previous_until TIMESTAMP,
    created_at     TIMESTAMP NOT NULL,
    disabled_at    TIMESTAMP,
    -- When it was removed. The purge deletes its deliveries, which can be many, and then it.
    removed_at     TIMESTAMP,
    -- The first failed attempt since the last one that succeeded, and the number of deliveries that
    -- have failed at least once since then.
    failing_since  TIMESTAMP,
    failures       INTEGER NOT NULL DEFAULT 0,
    -- When the owners were told that the endpoint fails.
    failure_mailed_at TIMESTAMP
);
CREATE INDEX webhook_endpoints_account ON webhook_endpoints (account_id, id);
CREATE INDEX webhook_endpoints_enabled ON webhook_endpoints (id) WHERE disabled_at IS NULL;
CREATE INDEX webhook_endpoints_removed ON webhook_endpoints (id) WHERE removed_at IS NOT NULL;

-- The events for each endpoint, kept for 30 days. A row is a job in the queue while it has due_at.
CREATE TABLE webhook_deliveries (
    endpoint_id TEXT NOT NULL REFERENCES webhook_endpoints (id) ON DELETE CASCADE,
    -- The activity, the call, or a new id for a test event. The content is read when it is sent.
    event_id    TEXT NOT NULL,
    event       TEXT NOT NULL,
    account_id  TEXT NOT NULL,
    created_at  TIMESTAMP NOT NULL,
    -- When an instance may send it: also the end of the lease of the one that sends it.
    due_at      TIMESTAMP,
    attempts    INTEGER NOT NULL DEFAULT 0,
    -- Whether the next attempt is the last one.
    final       BOOLEAN NOT NULL DEFAULT false,
    delivered_at TIMESTAMP,
    -- The status and the first characters of the last response, or why there was none.
    status      INTEGER NOT NULL DEFAULT 0,
    response    TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (endpoint_id, event_id, event)
);
CREATE INDEX webhook_deliveries_first ON webhook_deliveries (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (endpoint_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries (account_id, created_at) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_deliveries_created ON webhook_deliveries (created_at);
CREATE INDEX webhook_deliveries_list ON webhook_deliveries (endpoint_id, created_at);

-- The epoch of authentication: one row with one random value. An instance caches the facts that
-- grant access together with this value, and the cache is valid while the value is unchanged. Only
-- equality matters, so a restored backup cannot make an old cache look valid, as a counter could.

CREATE TABLE auth_epoch (
    only_row INTEGER PRIMARY KEY DEFAULT 1 CHECK (only_row = 1),
    value    BLOB NOT NULL CHECK (length(value) = 16)
);
INSERT INTO auth_epoch (value) VALUES (randomblob(16));

-- Hashes of a key derived from the secret, and from the previous one, of the instance that started
-- last. With another secret, an instance warns at its start.
CREATE TABLE secret_check (
    only_row INTEGER PRIMARY KEY DEFAULT 1 CHECK (only_row = 1),
    current  BLOB NOT NULL,
    previous BLOB
);

-- What commands need to know of the instance that started last: they have other settings.
CREATE TABLE last_start (
    only_row      INTEGER PRIMARY KEY DEFAULT 1 CHECK (only_row = 1),
    -- Whether nobody signs in with a password.
    passwords_off BOOLEAN NOT NULL
);

-- Triggers renew the epoch after every change of a key, an agent or an account, also by an
-- operator's own SQL. Labels and names are not cached. Inserts renew it too: two states of the
-- database with the same epoch therefore hold the same keys, agents and accounts.
--
-- INSERT OR REPLACE and UPDATE OR REPLACE delete rows without firing a trigger for a delete. The
-- triggers for inserts cover the first, and that for form_id, which is unique, the second.
CREATE TRIGGER accounts_insert_renews_epoch AFTER INSERT ON accounts
BEGIN
    UPDATE auth_epoch SET value = randomblob(16);
END;
CREATE TRIGGER accounts_update_renews_epoch AFTER UPDATE OF id, disabled_at, limits ON accounts
BEGIN
    UPDATE auth_epoch SET value = randomblob(16);
END;
CREATE TRIGGER accounts_delete_renews_epoch AFTER DELETE ON accounts
BEGIN
    UPDATE auth_epoch SET value = randomblob(16);
END;
CREATE TRIGGER agents_insert_renews_epoch AFTER INSERT ON agents
BEGIN
    UPDATE auth_epoch SET value = randomblob(16);
END;
CREATE TRIGGER agents_update_renews_epoch AFTER UPDATE OF id, account_id, paused_at ON agents
BEGIN
    UPDATE auth_epoch SET value = randomblob(16);
END;
CREATE TRIGGER agents_delete_renews_epoch AFTER DELETE ON agents
BEGIN
    UPDATE auth_epoch SET value = randomblob(16);
END;
CREATE TRIGGER api_keys_insert_renews_epoch AFTER INSERT ON api_keys
BEGIN
    UPDATE auth_epoch SET value = randomblob(16);
END;
CREATE TRIGGER api_keys_update_renews_epoch AFTER UPDATE
    OF id, account_id, key_hash, form_id, revoked_at, expires_at, access, agents, networks, limits, credential, trust, trust_version ON api_keys
BEGIN
    UPDATE auth_epoch SET value = randomblob(16);
END;
CREATE TRIGGER api_keys_delete_renews_epoch AFTER DELETE ON api_keys
BEGIN
    UPDATE auth_epoch SET value = randomblob(16);
END;
-- Whether a call cannot go on: nothing changes any more. While it is false, a visitor may come back
-- after ended_at. The end of the earlier calls was sent at once, so they are final.
-- The default is for instances of the previous version, which do not know the column.
ALTER TABLE calls ADD COLUMN final BOOLEAN NOT NULL DEFAULT false;
UPDATE calls SET final = true WHERE ended_at IS NOT NULL;
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
-- The endpoints whose last attempts failed, which operators count.
CREATE INDEX webhook_endpoints_failing ON webhook_endpoints (failing_since) WHERE failing_since IS NOT NULL;
CREATE TABLE applied_migrations (file varchar(255) PRIMARY KEY);
INSERT INTO accounts (id, name, second_factor_required, seeded, created_at, disabled_at, limits, unused_lifetime) VALUES ('01a21f26-aefd-7836-8eec-96ccdd1391f1', 'Acme', 0, 0, '2026-03-14 15:09:26.535897+00:00', NULL, '{"calls":5,"minutesPerMonth":1}', 7776000000000000) ON CONFLICT DO NOTHING;
INSERT INTO accounts (id, name, second_factor_required, seeded, created_at, disabled_at, limits, unused_lifetime) VALUES ('01a21f26-b455-7374-bc66-8078df286f43', 'Acme', 0, 0, '2026-03-14 15:19:26.535897+00:00', NULL, NULL, NULL) ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b057-7ae4-b501-0718f9062e45', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'webhook.added', '01a21f26-b057-73dc-9d89-52c7fba62934', 'https://example.com/', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:09:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b066-74dc-8dc6-25ba0447c77b', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'api_key.generated', '01a21f26-b05b-720a-a8bf-31a7ffd76070', 'production', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:09:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b071-778a-9281-a83c505a197a', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'api_key.generated', '01a21f26-b070-7da8-bccf-a61798590864', 'production', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:09:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b078-75c9-93a5-8e16eab078c2', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'api_key.generated', '01a21f26-b077-7d8a-84b4-911025bfeee3', 'production', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:09:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b081-7477-984a-b813d93e8741', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'agent.created', '01a21f26-b07e-7e76-ab2a-adddef77332b', 'Reception', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:09:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b08e-781d-8ce6-ffaf8544bf13', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'agent.created', '01a21f26-b08e-71e4-9ae8-2d78fd2c2e41', 'Reception', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:09:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b095-7c1d-a53d-6f28786d1d61', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'session.created', '01a21f26-b095-76ba-ae5e-f427e4f21c93', '', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:09:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b222-7efa-bf3f-3e48779d0c87', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'session.created', '01a21f26-b222-7c5b-92d4-1d920bca3399', '', NULL, NULL, 1, '', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b229-7e13-b144-93964603fd69', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'user.added', '01a21f26-b226-76ed-8bde-e53ed2bbfa21', '64eb9683-26a0-49e8-b32c-1d195e048bea@example.com', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b22d-7a8d-98f6-e1b2e7e6ea83', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'sign_in_link.created', '01a21f26-b226-76ed-8bde-e53ed2bbfa21', '64eb9683-26a0-49e8-b32c-1d195e048bea@example.com', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b22e-7bbd-8734-4806e5599074', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-b226-76ed-8bde-e53ed2bbfa21', 'session.created', '01a21f26-b22e-782f-80b8-cf716159bce8', 'a sign-in link', NULL, NULL, 1, '', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b231-7218-9017-3a21b81f18b8', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'user.added', '01a21f26-b231-7082-83b9-6a6e1c95e560', '2e0b9af1-f481-46e8-a354-7f9b4f4e7821@example.com', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b231-74cc-a2f1-3096d0877ec8', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'sign_in_link.created', '01a21f26-b231-7082-83b9-6a6e1c95e560', '2e0b9af1-f481-46e8-a354-7f9b4f4e7821@example.com', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b232-7369-a9e8-1e4864493961', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'invitation.created', '01a21f26-b231-7d82-b5e2-b71ec606e75e', '5369dae4-66b8-4872-bcae-995f9c79d43b@example.com', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b236-770d-ab67-171a3ba78650', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'invitation.created', '01a21f26-b233-7735-90c9-9442bcbd6937', '39a56733-39cc-4633-92a2-7f7211440f5e@example.com', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b42e-7d3f-8728-e238413aba0a', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-b42e-7b50-8fb3-f0bf45fe9c93', 'invitation.accepted', '01a21f26-b42e-7b50-8fb3-f0bf45fe9c93', '39a56733-39cc-4633-92a2-7f7211440f5e@example.com', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b42f-7239-88b4-36fe074368bf', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-b42e-7b50-8fb3-f0bf45fe9c93', 'session.created', '01a21f26-b42f-700a-8f1f-849211bd49d8', 'an invitation', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b43c-7999-8ed6-a795e3dd6c6c', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'user.made_owner', '01a21f26-b226-76ed-8bde-e53ed2bbfa21', '64eb9683-26a0-49e8-b32c-1d195e048bea@example.com', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b444-7c4c-92cd-3b8c06868769', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'user.made_member', '01a21f26-b226-76ed-8bde-e53ed2bbfa21', '64eb9683-26a0-49e8-b32c-1d195e048bea@example.com', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b44d-7f41-92cf-b4cc89e3073e', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'agent.renamed', '01a21f26-b07e-7e76-ab2a-adddef77332b', 'Renamed', 'Reception', NULL, 1, '203.0.113.7', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b454-7429-aca9-c1a9a97cbf92', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'agent.created', '072a6ff7-5798-4430-ae58-8146196c7a51', 'Front desk', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b599-7d9f-8ef3-5b5f1be305ea', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'account.unused_keys', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'Acme', NULL, 'Never → After 90 days', 1, '203.0.113.7', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b5a9-7140-8d81-5d18bdcb2964', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'system', NULL, 'api_key.expiring', '01a21f26-b077-7d8a-84b4-911025bfeee3', 'production', NULL, '14 Mar 2026, 16:09:26 UTC', 1, '', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b720-7838-89a8-85decb803843', '01a21f26-b455-7374-bc66-8078df286f43', 'user', '01a21f26-b455-737b-a786-195fb88a17e9', 'password.reset', '01a21f26-b455-737b-a786-195fb88a17e9', 'Ada.01a21f26-b455-7374-bc66-8078df286f43@Example.com', NULL, NULL, 1, '', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b742-75e1-8b2a-e7db8928ba54', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'email.changed', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'edbdeb6f-ad55-4f15-a079-c47f028e9b42@example.com', 'Ada.01a21f26-aefd-7836-8eec-96ccdd1391f1@Example.com', NULL, 1, '', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b751-78ba-8bd1-b3606b3ccd42', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'operator', NULL, 'email.changed', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'Ada.01a21f26-aefd-7836-8eec-96ccdd1391f1@Example.com', 'edbdeb6f-ad55-4f15-a079-c47f028e9b42@example.com', NULL, 1, '', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b7d7-73e3-a33d-e41ce7818b71', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'operator', NULL, 'account.limited', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'Acme', NULL, 'Limits: none → 5 calls at a time, 1 minute a month', 1, '', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b7f4-770a-8728-771bf9ce1b8f', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'system', NULL, 'limit.approaching', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'Acme', NULL, '80% of 1 minutes in March 2026', 1, '', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b826-701e-bf32-511d79360c23', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'visitor', NULL, 'api_key.leaked', '01a21f26-b070-7da8-bccf-a61798590864', 'production', NULL, NULL, 1, '', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b840-7996-8f98-efd110011b1d', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'api_key.renamed', '01a21f26-b05b-720a-a8bf-31a7ffd76070', 'renamed', 'production', NULL, 1, '203.0.113.7', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b848-7249-9b95-4e4d62217544', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'agent.created', '1263029c-9d72-5939-ab58-2c31f50afbcc', 'Front desk', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b84f-7b99-977d-b8b32d5fcb82', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'agent.removed', '01a21f26-b08e-71e4-9ae8-2d78fd2c2e41', 'Reception', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b85c-7dff-8c70-cc4a347945d0', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'invitation.cancelled', '01a21f26-b231-7d82-b5e2-b71ec606e75e', '5369dae4-66b8-4872-bcae-995f9c79d43b@example.com', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b87c-7a12-9250-350a59664f8e', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'webhook.disabled', '01a21f26-b057-73dc-9d89-52c7fba62934', 'https://example.com/', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b88c-7e66-aebc-6d617f9033ed', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'webhook.removed', '01a21f26-b057-73dc-9d89-52c7fba62934', 'https://example.com/', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b893-7e08-8644-5e5786800b4d', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'sessions.revoked', '01a21f26-aefd-7841-901c-b0d4ab2055a8', '', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b896-7be7-8f81-4e07e0ea4309', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'session.revoked', '01a21f26-b095-76ba-ae5e-f427e4f21c93', 'Mozilla/5.0', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b8a2-7535-acfa-145763089ba3', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'user.removed', '01a21f26-b226-76ed-8bde-e53ed2bbfa21', '64eb9683-26a0-49e8-b32c-1d195e048bea@example.com', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b8ca-7434-8a1c-fd4ac7de3d22', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'api_key.generated', '01a21f26-b8c9-7c6a-96bd-cb2abf94bed1', 'rotated', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b8ce-7760-8bc1-d15cca33c29d', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'api_key.revoked', '01a21f26-b05b-720a-a8bf-31a7ffd76070', 'renamed', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b8dd-75a0-9266-6c16bbbf7245', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'session.created', '01a21f26-b8dd-7161-ab14-bedbac4a68eb', '', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b8e1-7a53-8805-ef3b7b4c6b54', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'passkey.added', '01a21f26-b8e1-757d-9df3-f8abe33f289c', 'Phone', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b8eb-7061-8860-fe425f073241', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'session.created', '01a21f26-b8e6-717a-8b9d-d840d73097d9', '', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b901-7358-8e7e-9949f4dfd9a3', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'authenticator.enabled', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'ada@example.com', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b905-796a-99ab-e43b088f59d1', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'sessions.revoked', '01a21f26-aefd-7841-901c-b0d4ab2055a8', '', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b910-71d2-82f4-9e2193316f6a', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'webhook.added', '01a21f26-b90d-7692-9ad3-9cbc61a64297', 'https://example.com/', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:20:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b919-77e0-8360-9d6fca813db3', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'invitation.created', '01a21f26-b918-7d1c-9ce1-7fa3d6bd9483', '990a481b-30af-44db-913d-e87496c68fed@example.com', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:20:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, former_label, detail, count, address, at) VALUES ('01a21f26-b91f-7574-929d-94608e442d49', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'user', '01a21f26-aefd-7841-901c-b0d4ab2055a8', 'api_key.generated', '01a21f26-b91e-7a45-968b-80a18bc0d728', 'production', NULL, NULL, 1, '203.0.113.7', '2026-03-14 15:20:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO agents (id, account_id, name, created_at, paused_at) VALUES ('01a21f26-b07e-7e76-ab2a-adddef77332b', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'Renamed', '2026-03-14 15:09:26.535897+00:00', NULL) ON CONFLICT DO NOTHING;
INSERT INTO agents (id, account_id, name, created_at, paused_at) VALUES ('072a6ff7-5798-4430-ae58-8146196c7a51', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'Front desk', '2026-03-14 15:19:26.535897+00:00', NULL) ON CONFLICT DO NOTHING;
INSERT INTO agents (id, account_id, name, created_at, paused_at) VALUES ('1263029c-9d72-5939-ab58-2c31f50afbcc', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'Front desk', '2026-03-14 15:19:26.535897+00:00', NULL) ON CONFLICT DO NOTHING;
INSERT INTO api_key_agents (api_key_id, agent_id, used_at) VALUES ('01a21f26-b05b-720a-a8bf-31a7ffd76070', '01a21f26-b07e-7e76-ab2a-adddef77332b', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO api_key_days (account_id, day, api_key_id) VALUES ('01a21f26-aefd-7836-8eec-96ccdd1391f1', '2026-03-14 00:00:00+00:00', '01a21f26-b05b-720a-a8bf-31a7ffd76070') ON CONFLICT DO NOTHING;
INSERT INTO api_key_last_uses (api_key_id, used_at, hour, requests, refusals) VALUES ('01a21f26-b05b-720a-a8bf-31a7ffd76070', '2026-03-14 15:19:26.535897+00:00', '2026-03-14 15:00:00+00:00', 1, 0) ON CONFLICT DO NOTHING;
INSERT INTO api_key_sources (api_key_id, day, address, client, requests, first_seen, last_seen) VALUES ('01a21f26-b05b-720a-a8bf-31a7ffd76070', '2026-03-14 00:00:00+00:00', '', '', 1, '2026-03-14 15:19:26.535897+00:00', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO api_keys (id, account_id, label, key_hash, last_four, access, form_id, replaces_id, created_by, created_at, revoked_at, leak_reporter, leak_url, expires_at, lifetime, expiry_warned_at, expiry_recorded, unused_policy, unused_check_at, unused_since, unused_warned_at, unused_warnings, unused_mailed, agents, networks, limits, note, revocation_reason, credential, trust, trust_version, trust_pins) VALUES ('01a21f26-b05b-720a-a8bf-31a7ffd76070', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'renamed', X'C16F34D69D956A1BDB76C616722049DADE755E09AA21EED3F4FBAC45EF47AABE', 'yy4u', 'agents', 'dbae119a-173b-4e85-b8f9-6bd439079d1c', NULL, '01a21f26-aefd-7841-901c-b0d4ab2055a8', '2026-03-14 15:09:26.535897+00:00', '2026-03-14 15:19:26.535897+00:00', NULL, NULL, NULL, NULL, NULL, 0, 0, '2026-05-29 15:09:26.535897+00:00', NULL, NULL, 0, 0, NULL, NULL, NULL, '', '', 'secret', NULL, NULL, NULL) ON CONFLICT DO NOTHING;
INSERT INTO api_keys (id, account_id, label, key_hash, last_four, access, form_id, replaces_id, created_by, created_at, revoked_at, leak_reporter, leak_url, expires_at, lifetime, expiry_warned_at, expiry_recorded, unused_policy, unused_check_at, unused_since, unused_warned_at, unused_warnings, unused_mailed, agents, networks, limits, note, revocation_reason, credential, trust, trust_version, trust_pins) VALUES ('01a21f26-b070-7da8-bccf-a61798590864', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'production', X'8F32133B6312A2540CC15FEC152CFAB0B315C1224B33EF79433BF0FBBD6347EF', '5VII', 'agents', 'b1255ce0-20a9-487b-aaac-258ba2c1a969', NULL, '01a21f26-aefd-7841-901c-b0d4ab2055a8', '2026-03-14 15:09:26.535897+00:00', '2026-03-14 15:19:26.535897+00:00', 'github', NULL, NULL, NULL, NULL, 0, 0, '2026-05-29 15:09:26.535897+00:00', NULL, NULL, 0, 0, NULL, NULL, NULL, '', '', 'secret', NULL, NULL, NULL) ON CONFLICT DO NOTHING;
INSERT INTO api_keys (id, account_id, label, key_hash, last_four, access, form_id, replaces_id, created_by, created_at, revoked_at, leak_reporter, leak_url, expires_at, lifetime, expiry_warned_at, expiry_recorded, unused_policy, unused_check_at, unused_since, unused_warned_at, unused_warnings, unused_mailed, agents, networks, limits, note, revocation_reason, credential, trust, trust_version, trust_pins) VALUES ('01a21f26-b077-7d8a-84b4-911025bfeee3', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'production', X'578D2E5F311DAF6D9A85AFF97FFC4DAD3A969BCD72B5FB22E65B67B6B4286DBD', 'CXZP', 'agents', '772e16f1-6860-4f22-a87a-2ba198b6c4f0', NULL, '01a21f26-aefd-7841-901c-b0d4ab2055a8', '2026-03-14 15:09:26.535897+00:00', NULL, NULL, NULL, '2026-03-14 16:09:26.535897+00:00', 2592000000000000, '2026-03-14 15:19:26.535897+00:00', 1, 0, '2026-05-29 15:09:26.535897+00:00', NULL, NULL, 0, 0, NULL, NULL, NULL, '', '', 'secret', NULL, NULL, NULL) ON CONFLICT DO NOTHING;
INSERT INTO api_keys (id, account_id, label, key_hash, last_four, access, form_id, replaces_id, created_by, created_at, revoked_at, leak_reporter, leak_url, expires_at, lifetime, expiry_warned_at, expiry_recorded, unused_policy, unused_check_at, unused_since, unused_warned_at, unused_warnings, unused_mailed, agents, networks, limits, note, revocation_reason, credential, trust, trust_version, trust_pins) VALUES ('01a21f26-b8c9-7c6a-96bd-cb2abf94bed1', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'rotated', X'45B2397AC69E1359E75040D9042C233C584B1F02EF18EB20BAE3DB9C660A7EE6', '89KS', 'agents', 'b82ed372-1e9b-4f0b-a918-ed802ad3d552', '01a21f26-b05b-720a-a8bf-31a7ffd76070', '01a21f26-aefd-7841-901c-b0d4ab2055a8', '2026-03-14 15:19:26.535897+00:00', NULL, NULL, NULL, NULL, NULL, NULL, 0, -1, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, '', '', 'secret', NULL, NULL, NULL) ON CONFLICT DO NOTHING;
INSERT INTO api_keys (id, account_id, label, key_hash, last_four, access, form_id, replaces_id, created_by, created_at, revoked_at, leak_reporter, leak_url, expires_at, lifetime, expiry_warned_at, expiry_recorded, unused_policy, unused_check_at, unused_since, unused_warned_at, unused_warnings, unused_mailed, agents, networks, limits, note, revocation_reason, credential, trust, trust_version, trust_pins) VALUES ('01a21f26-b91e-7a45-968b-80a18bc0d728', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'production', X'B334049A44A6CFE2759F17DC0FBE63D508B2DD8E3A76166170AF3FC15CE99E86', 'hAvr', 'agents', '6f23fb40-1d36-4ff5-b1b3-5aa6e4a85e5e', NULL, '01a21f26-aefd-7841-901c-b0d4ab2055a8', '2026-03-14 15:20:26.535897+00:00', NULL, NULL, NULL, NULL, NULL, NULL, 0, -1, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, '', '', 'secret', NULL, NULL, NULL) ON CONFLICT DO NOTHING;
INSERT INTO applied_migrations (file) VALUES ('20261120000001_initial.sql') ON CONFLICT DO NOTHING;
INSERT INTO applied_migrations (file) VALUES ('20261127000001_final_calls.sql') ON CONFLICT DO NOTHING;
INSERT INTO applied_migrations (file) VALUES ('20261127000002_webhook_queue.sql') ON CONFLICT DO NOTHING;
INSERT INTO applied_migrations (file) VALUES ('20261127000003_key_days.sql') ON CONFLICT DO NOTHING;
INSERT INTO applied_migrations (file) VALUES ('20261127000004_failing_endpoints.sql') ON CONFLICT DO NOTHING;
INSERT INTO auth_epoch (only_row, value) VALUES (1, X'A003CD6ED619668987B050DDDCEDD933') ON CONFLICT DO NOTHING;
INSERT INTO authenticators (user_id, secret, key_id, created_at, enabled_at, last_step, refused_codes, refused_since) VALUES ('01a21f26-aefd-7841-901c-b0d4ab2055a8', X'923BF8CB74890CFCC22BCFD63716AFD6DEAC20B9558E9B473AB52FF9D0461A81B1A0604AF8FD6F12DE4F17E6B6D2228B', X'7619EEF430707544', '2026-03-14 15:19:26.535897+00:00', '2026-03-14 15:19:26.535897+00:00', 59116718, 0, NULL) ON CONFLICT DO NOTHING;
INSERT INTO call_rounds (only_row, round, lease_until, due_at, listed_at, checked_at, epoch, watch_until) VALUES (1, 3, '2026-03-14 15:19:26.535897+00:00', '2026-03-14 15:19:31.035897+00:00', '2026-03-14 15:19:26.571631+00:00', '2026-03-14 15:19:26.535897+00:00', X'42EB45A05E5C859EA72AC6CA74856D6F', '2000-01-01 00:00:00+00:00') ON CONFLICT DO NOTHING;
INSERT INTO call_totals (subject_id, day, calls, seconds) VALUES ('01a21f26-aefd-7836-8eec-96ccdd1391f1', '2026-03-14 00:00:00+00:00', 2, 59) ON CONFLICT DO NOTHING;
INSERT INTO call_totals (subject_id, day, calls, seconds) VALUES ('01a21f26-b05b-720a-a8bf-31a7ffd76070', '2026-03-14 00:00:00+00:00', 2, 59) ON CONFLICT DO NOTHING;
INSERT INTO calls (id, account_id, agent_id, api_key_id, room_id, room_name, user_id, started_at, ended_at, end_reason, exact, ending, unseen_since, visitors, unrecorded, final) VALUES ('01a21f26-b7bc-73bb-b69d-1df20c28c20f', '01a21f26-aefd-7836-8eec-96ccdd1391f1', '01a21f26-b07e-7e76-ab2a-adddef77332b', '01a21f26-b05b-720a-a8bf-31a7ffd76070', 'RM_01a21f26-b05b-720a-a8bf-31a7ffd76070_1', '01a21f26-b07e-7e76-ab2a-adddef77332b_01a21f26-b05b-720a-a8bf-31a7ffd76070_1', 'u-17', '2026-03-14 15:19:26.535897+00:00', '2026-03-14 15:20:26+00:00', 'visitor_left', 1, 'ended_in_portal', NULL, '[{"identity":"visitor","userId":"u-17","first":"2026-03-14T15:19:26.535897Z","joined":"2026-03-14T15:20:26Z","id":"PA_1","left":"2026-03-14T15:20:26Z","reason":"visitor_left"}]', 0, 1) ON CONFLICT DO NOTHING;
INSERT INTO calls (id, account_id, agent_id, api_key_id, room_id, room_name, user_id, started_at, ended_at, end_reason, exact, ending, unseen_since, visitors, unrecorded, final) VALUES ('01a21f26-b7ee-7634-a57e-97a2f37eecf6', '01a21f26-aefd-7836-8eec-96ccdd1391f1', '01a21f26-b07e-7e76-ab2a-adddef77332b', '01a21f26-b05b-720a-a8bf-31a7ffd76070', 'RM_01a21f26-b05b-720a-a8bf-31a7ffd76070_2', '01a21f26-b07e-7e76-ab2a-adddef77332b_01a21f26-b05b-720a-a8bf-31a7ffd76070_2', 'u-17', '2026-03-14 15:19:26.535897+00:00', NULL, NULL, 1, NULL, '2026-03-14 15:19:26.535897+00:00', '[{"identity":"visitor","userId":"u-17","first":"2026-03-14T15:19:26.535897Z","joined":"2026-03-14T15:19:26.535897Z","id":"PA_1"}]', 0, 0) ON CONFLICT DO NOTHING;
INSERT INTO invitations (id, account_id, email, email_hash, role, token_hash, mail_token_hash, inviter_id, created_at, expires_at) VALUES ('01a21f26-b918-7d1c-9ce1-7fa3d6bd9483', '01a21f26-aefd-7836-8eec-96ccdd1391f1', '990a481b-30af-44db-913d-e87496c68fed@example.com', X'C030BF3F5567063D720F607962E64B92E570E850280D58EBE72634B28B886E2E', 'member', X'94E8903DBCD1DB0440CEF350FD4F0C8865704EC8765161F8A2F3148322FE89E0', NULL, '01a21f26-aefd-7841-901c-b0d4ab2055a8', '2026-03-14 15:20:26.535897+00:00', '2026-03-21 15:20:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO limit_notices (subject_id, month, percent) VALUES ('01a21f26-aefd-7836-8eec-96ccdd1391f1', '2026-03-01 00:00:00+00:00', 80) ON CONFLICT DO NOTHING;
INSERT INTO outbox (id, kind, account_id, activity_id, recipient, email_hash, created_at, due_at, attempts) VALUES ('01a21f26-b7f4-7b72-aefa-da3fa0869612', 'limit.approaching', '01a21f26-aefd-7836-8eec-96ccdd1391f1', '01a21f26-b7f4-770a-8728-771bf9ce1b8f', 'Ada.01a21f26-aefd-7836-8eec-96ccdd1391f1@Example.com', NULL, '2026-03-14 15:19:26.535897+00:00', '2026-03-14 15:19:26.535897+00:00', 0) ON CONFLICT DO NOTHING;
INSERT INTO outbox (id, kind, account_id, activity_id, recipient, email_hash, created_at, due_at, attempts) VALUES ('01a21f26-b7f4-7b75-9eda-9b12f01e987b', 'limit.approaching', '01a21f26-aefd-7836-8eec-96ccdd1391f1', '01a21f26-b7f4-770a-8728-771bf9ce1b8f', '39a56733-39cc-4633-92a2-7f7211440f5e@example.com', NULL, '2026-03-14 15:19:26.535897+00:00', '2026-03-14 15:19:26.535897+00:00', 0) ON CONFLICT DO NOTHING;
INSERT INTO outbox (id, kind, account_id, activity_id, recipient, email_hash, created_at, due_at, attempts) VALUES ('01a21f26-b82c-74bf-b19c-66fe50bf9500', 'api_key.leaked', '01a21f26-aefd-7836-8eec-96ccdd1391f1', '01a21f26-b826-701e-bf32-511d79360c23', 'Ada.01a21f26-aefd-7836-8eec-96ccdd1391f1@Example.com', NULL, '2026-03-14 15:19:26.535897+00:00', '2026-03-14 15:19:36.535897+00:00', 0) ON CONFLICT DO NOTHING;
INSERT INTO outbox (id, kind, account_id, activity_id, recipient, email_hash, created_at, due_at, attempts) VALUES ('01a21f26-b82c-74c0-8276-5aa0e636b3bd', 'api_key.leaked', '01a21f26-aefd-7836-8eec-96ccdd1391f1', '01a21f26-b826-701e-bf32-511d79360c23', '39a56733-39cc-4633-92a2-7f7211440f5e@example.com', NULL, '2026-03-14 15:19:26.535897+00:00', '2026-03-14 15:19:36.535897+00:00', 0) ON CONFLICT DO NOTHING;
INSERT INTO outbox (id, kind, account_id, activity_id, recipient, email_hash, created_at, due_at, attempts) VALUES ('01a21f26-b8ca-76bf-a9e9-5bb2a2f89a96', 'api_key.generated', '01a21f26-aefd-7836-8eec-96ccdd1391f1', '01a21f26-b8ca-7434-8a1c-fd4ac7de3d22', 'Ada.01a21f26-aefd-7836-8eec-96ccdd1391f1@Example.com', NULL, '2026-03-14 15:19:26.535897+00:00', '2026-03-14 15:19:26.535897+00:00', 0) ON CONFLICT DO NOTHING;
INSERT INTO outbox (id, kind, account_id, activity_id, recipient, email_hash, created_at, due_at, attempts) VALUES ('01a21f26-b8ca-76c0-88e5-a05942c7426b', 'api_key.generated', '01a21f26-aefd-7836-8eec-96ccdd1391f1', '01a21f26-b8ca-7434-8a1c-fd4ac7de3d22', '39a56733-39cc-4633-92a2-7f7211440f5e@example.com', NULL, '2026-03-14 15:19:26.535897+00:00', '2026-03-14 15:19:26.535897+00:00', 0) ON CONFLICT DO NOTHING;
INSERT INTO outbox (id, kind, account_id, activity_id, recipient, email_hash, created_at, due_at, attempts) VALUES ('01a21f26-b8dd-7879-822c-d287df0491a2', 'session.created', '01a21f26-aefd-7836-8eec-96ccdd1391f1', '01a21f26-b8dd-75a0-9266-6c16bbbf7245', 'ada@example.com', NULL, '2026-03-14 15:19:26.535897+00:00', '2026-03-14 15:19:26.535897+00:00', 0) ON CONFLICT DO NOTHING;
INSERT INTO outbox (id, kind, account_id, activity_id, recipient, email_hash, created_at, due_at, attempts) VALUES ('01a21f26-b8e1-7c85-a10d-affacb28d02e', 'passkey.added', '01a21f26-aefd-7836-8eec-96ccdd1391f1', '01a21f26-b8e1-7a53-8805-ef3b7b4c6b54', 'ada@example.com', NULL, '2026-03-14 15:19:26.535897+00:00', '2026-03-14 15:19:26.535897+00:00', 0) ON CONFLICT DO NOTHING;
INSERT INTO outbox (id, kind, account_id, activity_id, recipient, email_hash, created_at, due_at, attempts) VALUES ('01a21f26-b905-74fd-86fe-2ef4cd9edc02', 'authenticator.enabled', '01a21f26-aefd-7836-8eec-96ccdd1391f1', '01a21f26-b901-7358-8e7e-9949f4dfd9a3', 'ada@example.com', NULL, '2026-03-14 15:19:26.535897+00:00', '2026-03-14 15:19:26.535897+00:00', 0) ON CONFLICT DO NOTHING;
INSERT INTO outbox (id, kind, account_id, activity_id, recipient, email_hash, created_at, due_at, attempts) VALUES ('01a21f26-b919-7b07-b27f-e51a83748824', 'invitation.created', '01a21f26-aefd-7836-8eec-96ccdd1391f1', '01a21f26-b919-77e0-8360-9d6fca813db3', '990a481b-30af-44db-913d-e87496c68fed@example.com', NULL, '2026-03-14 15:20:26.535897+00:00', '2026-03-14 15:20:26.535897+00:00', 0) ON CONFLICT DO NOTHING;
INSERT INTO outbox (id, kind, account_id, activity_id, recipient, email_hash, created_at, due_at, attempts) VALUES ('01a21f26-b91f-78d3-b826-316916ab445f', 'api_key.generated', '01a21f26-aefd-7836-8eec-96ccdd1391f1', '01a21f26-b91f-7574-929d-94608e442d49', 'ada@example.com', NULL, '2026-03-14 15:20:26.535897+00:00', '2026-03-14 15:20:26.535897+00:00', 0) ON CONFLICT DO NOTHING;
INSERT INTO outbox (id, kind, account_id, activity_id, recipient, email_hash, created_at, due_at, attempts) VALUES ('01a21f26-b91f-78d6-b600-229b90bef56c', 'api_key.generated', '01a21f26-aefd-7836-8eec-96ccdd1391f1', '01a21f26-b91f-7574-929d-94608e442d49', '39a56733-39cc-4633-92a2-7f7211440f5e@example.com', NULL, '2026-03-14 15:20:26.535897+00:00', '2026-03-14 15:20:26.535897+00:00', 0) ON CONFLICT DO NOTHING;
INSERT INTO passkeys (id, user_id, credential_id, credential, sign_count, name, created_at, last_used_at) VALUES ('01a21f26-b8e1-757d-9df3-f8abe33f289c', '01a21f26-aefd-7841-901c-b0d4ab2055a8', X'30616330323432372D636434662D346562372D623664622D356638396337336237316336', '{}', 1, 'Phone', '2026-03-14 15:19:26.535897+00:00', NULL) ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-b066-7b8e-8a6f-36245178912e', 'api_key.generated', '01a21f26-aefd-7836-8eec-96ccdd1391f1', X'65AB539EA82189389E4739DF2D3DBA3E90BAAABD1610E54D4FB4D4A38DB34199', NULL, '2026-03-14 15:09:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-b071-7b17-9cea-165dfb2e5a12', 'api_key.generated', '01a21f26-aefd-7836-8eec-96ccdd1391f1', X'65AB539EA82189389E4739DF2D3DBA3E90BAAABD1610E54D4FB4D4A38DB34199', NULL, '2026-03-14 15:09:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-b078-789f-b007-93296bfc6cac', 'api_key.generated', '01a21f26-aefd-7836-8eec-96ccdd1391f1', X'65AB539EA82189389E4739DF2D3DBA3E90BAAABD1610E54D4FB4D4A38DB34199', NULL, '2026-03-14 15:09:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-b095-7e77-a394-516a629592ab', 'session.created', '01a21f26-aefd-7836-8eec-96ccdd1391f1', X'65AB539EA82189389E4739DF2D3DBA3E90BAAABD1610E54D4FB4D4A38DB34199', X'3257CB8B2E8D7ED3ED16CDF4976EF0F426E503D2FC283B65CEC90978EDE4721F', '2026-03-14 15:09:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-b223-72d5-a50e-9768c2b4f228', 'session.created', '01a21f26-aefd-7836-8eec-96ccdd1391f1', X'65AB539EA82189389E4739DF2D3DBA3E90BAAABD1610E54D4FB4D4A38DB34199', X'92F7AFA9EE72A719060C91050B04A3B7929735F4111E56B7AECAAB8106187875', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-b22f-70dc-9243-180cbed3762e', 'session.created', '01a21f26-aefd-7836-8eec-96ccdd1391f1', X'00DD236DF0BF7754E09B074D336DD98275CC681F25EA9516A974858AC7D1FBB2', X'92F7AFA9EE72A719060C91050B04A3B7929735F4111E56B7AECAAB8106187875', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-b232-7610-bf35-f45e711b696c', 'invitation.created', '01a21f26-aefd-7836-8eec-96ccdd1391f1', X'972A302BECF67038F8256DFF311F067B1A939ECDFA764DB3BD218505D0D726D9', NULL, '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-b593-7a06-a8b9-d03b688dbc3c', 'email.confirmation', '01a21f26-aefd-7836-8eec-96ccdd1391f1', X'4F4ACD1F982345B2DD71BBCADF7EBF5CE8D096A8A6F297EBFBDAF2929F56C4D9', NULL, '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-b598-7639-aaf2-78b1c2109cf0', 'api_key.expiring', '01a21f26-aefd-7836-8eec-96ccdd1391f1', X'65AB539EA82189389E4739DF2D3DBA3E90BAAABD1610E54D4FB4D4A38DB34199', NULL, '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-b598-763a-86a9-35dd75f87f98', 'api_key.expiring', '01a21f26-aefd-7836-8eec-96ccdd1391f1', X'07160348B6116579FC828E7B9A54512478BA01DB5D57D94366DFF159FF830634', NULL, '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-b72b-786c-a1eb-9354758923f0', 'password.reset', '01a21f26-b455-7374-bc66-8078df286f43', X'013F1768B57EBE7D62170FC8EECC9FD4B6E3B4975FDAECDF17724C62BBF765B7', NULL, '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-b744-7e55-904e-a149d8f630d8', 'email.changed', '01a21f26-aefd-7836-8eec-96ccdd1391f1', X'65AB539EA82189389E4739DF2D3DBA3E90BAAABD1610E54D4FB4D4A38DB34199', NULL, '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-b751-7c2e-95f8-0b68f775df82', 'email.changed', '01a21f26-aefd-7836-8eec-96ccdd1391f1', X'4F4ACD1F982345B2DD71BBCADF7EBF5CE8D096A8A6F297EBFBDAF2929F56C4D9', NULL, '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-b7f4-7b72-aefa-da3fa0869612', 'limit.approaching', '01a21f26-aefd-7836-8eec-96ccdd1391f1', X'65AB539EA82189389E4739DF2D3DBA3E90BAAABD1610E54D4FB4D4A38DB34199', NULL, '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-b7f4-7b75-9eda-9b12f01e987b', 'limit.approaching', '01a21f26-aefd-7836-8eec-96ccdd1391f1', X'07160348B6116579FC828E7B9A54512478BA01DB5D57D94366DFF159FF830634', NULL, '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-b82c-74bf-b19c-66fe50bf9500', 'api_key.leaked', '01a21f26-aefd-7836-8eec-96ccdd1391f1', X'65AB539EA82189389E4739DF2D3DBA3E90BAAABD1610E54D4FB4D4A38DB34199', NULL, '2026-03-14 15:19:36.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-b82c-74c0-8276-5aa0e636b3bd', 'api_key.leaked', '01a21f26-aefd-7836-8eec-96ccdd1391f1', X'07160348B6116579FC828E7B9A54512478BA01DB5D57D94366DFF159FF830634', NULL, '2026-03-14 15:19:36.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-b8ca-76bf-a9e9-5bb2a2f89a96', 'api_key.generated', '01a21f26-aefd-7836-8eec-96ccdd1391f1', X'65AB539EA82189389E4739DF2D3DBA3E90BAAABD1610E54D4FB4D4A38DB34199', NULL, '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-b8ca-76c0-88e5-a05942c7426b', 'api_key.generated', '01a21f26-aefd-7836-8eec-96ccdd1391f1', X'07160348B6116579FC828E7B9A54512478BA01DB5D57D94366DFF159FF830634', NULL, '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-b8dd-7879-822c-d287df0491a2', 'session.created', '01a21f26-aefd-7836-8eec-96ccdd1391f1', X'B5FC85E55755F9E0D030A10AB4429B6B2944855F9A0D60077FE832BECBC41D72', X'3257CB8B2E8D7ED3ED16CDF4976EF0F426E503D2FC283B65CEC90978EDE4721F', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-b8e1-7c85-a10d-affacb28d02e', 'passkey.added', '01a21f26-aefd-7836-8eec-96ccdd1391f1', X'B5FC85E55755F9E0D030A10AB4429B6B2944855F9A0D60077FE832BECBC41D72', NULL, '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-b905-74fd-86fe-2ef4cd9edc02', 'authenticator.enabled', '01a21f26-aefd-7836-8eec-96ccdd1391f1', X'B5FC85E55755F9E0D030A10AB4429B6B2944855F9A0D60077FE832BECBC41D72', NULL, '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-b919-7b07-b27f-e51a83748824', 'invitation.created', '01a21f26-aefd-7836-8eec-96ccdd1391f1', X'C030BF3F5567063D720F607962E64B92E570E850280D58EBE72634B28B886E2E', NULL, '2026-03-14 15:20:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-b91f-78d3-b826-316916ab445f', 'api_key.generated', '01a21f26-aefd-7836-8eec-96ccdd1391f1', X'B5FC85E55755F9E0D030A10AB4429B6B2944855F9A0D60077FE832BECBC41D72', NULL, '2026-03-14 15:20:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO recent_mails (id, kind, account_id, email_hash, device_hash, at) VALUES ('01a21f26-b91f-78d6-b600-229b90bef56c', 'api_key.generated', '01a21f26-aefd-7836-8eec-96ccdd1391f1', X'07160348B6116579FC828E7B9A54512478BA01DB5D57D94366DFF159FF830634', NULL, '2026-03-14 15:20:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO recovery_codes (code_hash, user_id) VALUES (X'1DD02B6975C34E195EFF18969F9E2A3A58DA1577B7AE43ACCD650F4F4018788B', '01a21f26-aefd-7841-901c-b0d4ab2055a8') ON CONFLICT DO NOTHING;
INSERT INTO recovery_codes (code_hash, user_id) VALUES (X'6552524AA9785A0A7BE9A1ACC431A6D1F45C44C8A7633F19CF1BF1C2FEAA1ABA', '01a21f26-aefd-7841-901c-b0d4ab2055a8') ON CONFLICT DO NOTHING;
INSERT INTO recovery_codes (code_hash, user_id) VALUES (X'C27834B3FE981743B9AD750100875BB3EEECA7E9CCFD697FFFF3D1CD87074FD4', '01a21f26-aefd-7841-901c-b0d4ab2055a8') ON CONFLICT DO NOTHING;
INSERT INTO recovery_codes (code_hash, user_id) VALUES (X'0EE89A97EA11D934F13EB017AE7C1FB87F394E55E467B877183A0B96C7C84646', '01a21f26-aefd-7841-901c-b0d4ab2055a8') ON CONFLICT DO NOTHING;
INSERT INTO recovery_codes (code_hash, user_id) VALUES (X'20B8D5BC6308EE3CE315A6CD87A71E6E883880CA36B660A05865C272A29903DF', '01a21f26-aefd-7841-901c-b0d4ab2055a8') ON CONFLICT DO NOTHING;
INSERT INTO recovery_codes (code_hash, user_id) VALUES (X'F2750E27A655EA1AA6C14B54023476FC22FF1E12D43206E60A36898C3E7B216A', '01a21f26-aefd-7841-901c-b0d4ab2055a8') ON CONFLICT DO NOTHING;
INSERT INTO recovery_codes (code_hash, user_id) VALUES (X'5C7049AB94B0E6DB9514345C0E1A061B6A69C5FC06767D5F20D5AE089D5231C4', '01a21f26-aefd-7841-901c-b0d4ab2055a8') ON CONFLICT DO NOTHING;
INSERT INTO recovery_codes (code_hash, user_id) VALUES (X'9223505068FBE8C631D1C2583EADF0C5814FC4234EC9FD39BF3831E331A0ECE6', '01a21f26-aefd-7841-901c-b0d4ab2055a8') ON CONFLICT DO NOTHING;
INSERT INTO recovery_codes (code_hash, user_id) VALUES (X'12A1258C740AF86B424167C036C11508362AB3F7D75E64449CB9BE7EEB502A61', '01a21f26-aefd-7841-901c-b0d4ab2055a8') ON CONFLICT DO NOTHING;
INSERT INTO recovery_codes (code_hash, user_id) VALUES (X'9D2DFCA6B8D5F76676F0F771B0EACA14E0A5B62BF82DE8BF21B5647FC0E920A5', '01a21f26-aefd-7841-901c-b0d4ab2055a8') ON CONFLICT DO NOTHING;
INSERT INTO secret_check (only_row, current, previous) VALUES (1, X'00D1101A4E4CA10E16CDD543B9F1D2E7BD32A5A921A983FFFD5C823CDBC37D0C', NULL) ON CONFLICT DO NOTHING;
INSERT INTO sessions (id, user_id, token_hash, created_at, last_seen_at, expires_at, authenticated_at, first_address, last_address, user_agent) VALUES ('01a21f26-b42f-700a-8f1f-849211bd49d8', '01a21f26-b42e-7b50-8fb3-f0bf45fe9c93', X'F50BE47CBA939D0ACC164CD0F6B1E7F3FD4069125A34F347434E307EF7E9306E', '2026-03-14 15:19:26.535897+00:00', '2026-03-14 15:19:26.535897+00:00', '2026-04-13 15:19:26.535897+00:00', '2026-03-14 15:19:26.535897+00:00', '203.0.113.7', '203.0.113.7', 'Mozilla/5.0') ON CONFLICT DO NOTHING;
INSERT INTO sessions (id, user_id, token_hash, created_at, last_seen_at, expires_at, authenticated_at, first_address, last_address, user_agent) VALUES ('01a21f26-b8e6-717a-8b9d-d840d73097d9', '01a21f26-aefd-7841-901c-b0d4ab2055a8', X'1B52880D870FB52F118FE533BFF857043C0821D6000E27D752898826A8F148F4', '2026-03-14 15:19:26.535897+00:00', '2026-03-14 15:19:26.535897+00:00', '2026-04-13 15:19:26.535897+00:00', '2026-03-14 15:19:26.535897+00:00', '203.0.113.7', '203.0.113.7', 'Mozilla/5.0') ON CONFLICT DO NOTHING;
INSERT INTO sign_in_failures (id, subject, at) VALUES ('01a21f26-b222-73c2-967b-6e0a94de4beb', X'A89A877AF5747955881624AD06A8BE84746787B936208530AE7081BFE810993C', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO sign_in_failures (id, subject, at) VALUES ('01a21f26-b457-7c17-ada2-eb653a40bd65', X'B696CA42F216611BDC33ECC4B623E2C2384819E3C3FD2C7228F525120BA4F68E', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO sign_in_failures (id, subject, at) VALUES ('01a21f26-b457-7c18-aa44-cdaf12ce3d11', X'F3C3F14B6C2270D04EAA2350068E0CA4FF0F404AF9CB6D4A1C4F9C7CC3EC09A5', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO sign_in_failures (id, subject, at) VALUES ('01a21f26-b587-7aa0-8f21-337a2edcfb95', X'A89A877AF5747955881624AD06A8BE84746787B936208530AE7081BFE810993C', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO sign_in_links (token_hash, user_id, expires_at) VALUES (X'651E49FBFD982E5DE2E692B3B3BAEE6CA1A44B4405A7DE64F15C5160CD295D0F', '01a21f26-b231-7082-83b9-6a6e1c95e560', '2026-03-14 15:24:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO used_challenges (challenge_hash, expires_at) VALUES (X'322B7FE20100C92D7382EFE4CDE7DF1731841007F409973E61E25E90D95F008F', '2026-03-14 15:29:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO users (id, account_id, role, email, email_hash, email_proven_at, password_hash, known_browsers, created_at, last_sign_in_at, disabled_at, removed_at) VALUES ('01a21f26-aefd-7841-901c-b0d4ab2055a8', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'owner', 'ada@example.com', X'B5FC85E55755F9E0D030A10AB4429B6B2944855F9A0D60077FE832BECBC41D72', '2026-03-14 15:09:26.535897+00:00', '$argon2id$v=19$m=8,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$XdTJKPvVpEdCNu922dgwQXj+XfOITS04PpG3cDMn5sE', 2, '2026-03-14 15:09:26.535897+00:00', '2026-03-14 15:19:26.535897+00:00', NULL, NULL) ON CONFLICT DO NOTHING;
INSERT INTO users (id, account_id, role, email, email_hash, email_proven_at, password_hash, known_browsers, created_at, last_sign_in_at, disabled_at, removed_at) VALUES ('01a21f26-b226-76ed-8bde-e53ed2bbfa21', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'member', '64eb9683-26a0-49e8-b32c-1d195e048bea@example.com', X'7CD68CC193D4B3573C502E0230B58B97B233DA9C2D07FD180E58A2719FACD4B6', '2026-03-14 15:19:26.535897+00:00', '$argon2id$v=19$m=47104,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA', 0, '2026-03-14 15:19:26.535897+00:00', '2026-03-14 15:19:26.535897+00:00', '2026-03-14 15:19:26.535897+00:00', '2026-03-14 15:19:26.535897+00:00') ON CONFLICT DO NOTHING;
INSERT INTO users (id, account_id, role, email, email_hash, email_proven_at, password_hash, known_browsers, created_at, last_sign_in_at, disabled_at, removed_at) VALUES ('01a21f26-b231-7082-83b9-6a6e1c95e560', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'member', '2e0b9af1-f481-46e8-a354-7f9b4f4e7821@example.com', X'85BD5EB4F8E055CF52DBA46DB778068C1F830E99225579D964F61B7E5CB4437F', '2026-03-14 15:19:26.535897+00:00', '$argon2id$v=19$m=47104,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA', 0, '2026-03-14 15:19:26.535897+00:00', NULL, NULL, NULL) ON CONFLICT DO NOTHING;
INSERT INTO users (id, account_id, role, email, email_hash, email_proven_at, password_hash, known_browsers, created_at, last_sign_in_at, disabled_at, removed_at) VALUES ('01a21f26-b42e-7b50-8fb3-f0bf45fe9c93', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'owner', '39a56733-39cc-4633-92a2-7f7211440f5e@example.com', X'07160348B6116579FC828E7B9A54512478BA01DB5D57D94366DFF159FF830634', NULL, '$argon2id$v=19$m=47104,t=1,p=1$7ZRG/JLnKRWE7u7clp0UMw$K3kZ/0w52kE2UyrYZrrhHP1yo0M+7Qm3VJh5RQrhjEU', 0, '2026-03-14 15:19:26.535897+00:00', '2026-03-14 15:19:26.535897+00:00', NULL, NULL) ON CONFLICT DO NOTHING;
INSERT INTO users (id, account_id, role, email, email_hash, email_proven_at, password_hash, known_browsers, created_at, last_sign_in_at, disabled_at, removed_at) VALUES ('01a21f26-b455-737b-a786-195fb88a17e9', '01a21f26-b455-7374-bc66-8078df286f43', 'owner', 'Ada.01a21f26-b455-7374-bc66-8078df286f43@Example.com', X'013F1768B57EBE7D62170FC8EECC9FD4B6E3B4975FDAECDF17724C62BBF765B7', '2026-03-14 15:19:26.535897+00:00', '$argon2id$v=19$m=47104,t=1,p=1$r9xEtWIYXx2CEBAg5o0KxQ$IeL+s6Jxc7Px7AH1zdt6VeOE4taOEEP2a+G7nUVh5KY', 1, '2026-03-14 15:19:26.535897+00:00', NULL, NULL, NULL) ON CONFLICT DO NOTHING;
INSERT INTO webhook_deliveries (endpoint_id, event_id, event, account_id, created_at, due_at, attempts, final, delivered_at, status, response) VALUES ('01a21f26-b90d-7692-9ad3-9cbc61a64297', '01a21f26-b919-77e0-8360-9d6fca813db3', 'invitation.created', '01a21f26-aefd-7836-8eec-96ccdd1391f1', '2026-03-14 15:20:26.535897+00:00', '2026-03-14 15:20:26.535897+00:00', 0, 0, NULL, 0, '') ON CONFLICT DO NOTHING;
INSERT INTO webhook_deliveries (endpoint_id, event_id, event, account_id, created_at, due_at, attempts, final, delivered_at, status, response) VALUES ('01a21f26-b90d-7692-9ad3-9cbc61a64297', '01a21f26-b91f-7574-929d-94608e442d49', 'api_key.generated', '01a21f26-aefd-7836-8eec-96ccdd1391f1', '2026-03-14 15:20:26.535897+00:00', '2026-03-14 15:20:26.535897+00:00', 0, 0, NULL, 0, '') ON CONFLICT DO NOTHING;
INSERT INTO webhook_endpoints (id, account_id, url, event_groups, secret, key_id, previous, previous_key_id, previous_until, created_at, disabled_at, removed_at, failing_since, failures, failure_mailed_at) VALUES ('01a21f26-b90d-7692-9ad3-9cbc61a64297', '01a21f26-aefd-7836-8eec-96ccdd1391f1', 'https://example.com/', '["keys","calls","people"]', X'6256F52E8F084E157CD34C78A0B0888D51C42849C8D99364DA85C8BA8FB628EDAE8513F9B6543059B33C5C83D94750F38326A3357D841037FBE088C4', X'7619EEF430707544', NULL, NULL, NULL, '2026-03-14 15:20:26.535897+00:00', NULL, NULL, NULL, 0, NULL) ON CONFLICT DO NOTHING;
