-- Invitations to join an account. A used or cancelled invitation is deleted.
CREATE TABLE invitations (
    id         uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts (id),
    email      text NOT NULL,
    -- SHA-256 of the trimmed email in lower case, as in users.
    email_hash bytea NOT NULL CHECK (length(email_hash) = 32),
    role       text NOT NULL CHECK (role IN ('owner', 'member')),
    -- SHA-256 of the token in the link.
    token_hash bytea NOT NULL UNIQUE CHECK (length(token_hash) = 32),
    -- The user who invites; NULL for an operator.
    inviter_id uuid REFERENCES users (id),
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    UNIQUE (account_id, email_hash)
);
CREATE INDEX invitations_inviter ON invitations (inviter_id);
CREATE INDEX invitations_expiry ON invitations (expires_at);
