-- Emails that wait until they are sent. A sent email is deleted.
CREATE TABLE outbox (
    id          uuid PRIMARY KEY,
    -- The action of the activity that the email reports, or password.forgotten.
    kind        text NOT NULL,
    -- NULL: unknown until the email is sent.
    account_id  uuid REFERENCES accounts (id),
    activity_id uuid,
    -- Empty until the email is sent if only the hash is known.
    recipient   text NOT NULL,
    -- SHA-256 of the email address, as in users.
    email_hash  bytea CHECK (length(email_hash) = 32),
    created_at  timestamptz NOT NULL,
    -- When an instance may send the email: also the end of the lease of the one that sends it.
    due_at      timestamptz NOT NULL,
    attempts    integer NOT NULL DEFAULT 0
);
CREATE INDEX outbox_due ON outbox (due_at);
CREATE INDEX outbox_account ON outbox (account_id);
CREATE INDEX outbox_created ON outbox (created_at);
