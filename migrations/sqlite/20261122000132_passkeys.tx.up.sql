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
