-- The authenticator apps of users.
CREATE TABLE authenticators (
    user_id    TEXT PRIMARY KEY REFERENCES users (id),
    -- The secret shared with the app, encrypted with a key derived from PORTAL_SECRET.
    secret     BLOB NOT NULL,
    -- Identifies that key.
    key_id     BLOB NOT NULL CHECK (length(key_id) = 8),
    created_at TIMESTAMP NOT NULL,
    -- Null until the user has entered the first code.
    enabled_at TIMESTAMP,
    -- The time step of the last accepted code. Each code works once.
    last_step  INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX authenticators_unconfirmed ON authenticators (created_at) WHERE enabled_at IS NULL;

-- The unused recovery codes of users. A used code is deleted.
CREATE TABLE recovery_codes (
    -- SHA-256 of the code, which has 120 random bits.
    code_hash BLOB PRIMARY KEY CHECK (length(code_hash) = 32),
    user_id   TEXT NOT NULL REFERENCES users (id)
);
CREATE INDEX recovery_codes_user ON recovery_codes (user_id);

-- Sign-ins after the first of two steps.
CREATE TABLE pending_sign_ins (
    -- SHA-256 of the token in the browser's cookie.
    token_hash BLOB PRIMARY KEY CHECK (length(token_hash) = 32),
    user_id    TEXT NOT NULL REFERENCES users (id),
    expires_at TIMESTAMP NOT NULL
);
CREATE INDEX pending_sign_ins_user ON pending_sign_ins (user_id);
CREATE INDEX pending_sign_ins_expiry ON pending_sign_ins (expires_at);
