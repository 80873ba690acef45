-- Emails that wait until they are sent. A sent email is deleted.
CREATE TABLE outbox (
    id          TEXT PRIMARY KEY,
    -- The action of the activity that the email reports, or password.forgotten.
    kind        TEXT NOT NULL,
    -- NULL: unknown until the email is sent.
    account_id  TEXT REFERENCES accounts (id),
    activity_id TEXT,
    -- Empty until the email is sent if only the hash is known.
    recipient   TEXT NOT NULL,
    -- SHA-256 of the email address, as in users.
    email_hash  BLOB CHECK (length(email_hash) = 32),
    created_at  TIMESTAMP NOT NULL,
    -- When an instance may send the email: also the end of the lease of the one that sends it.
    due_at      TIMESTAMP NOT NULL,
    attempts    INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX outbox_due ON outbox (due_at);
CREATE INDEX outbox_account ON outbox (account_id);
CREATE INDEX outbox_created ON outbox (created_at);
