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
