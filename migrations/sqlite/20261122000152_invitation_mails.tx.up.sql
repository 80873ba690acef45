-- SHA-256 of the token in the link of the email; NULL until the email is sent.
ALTER TABLE invitations ADD COLUMN mail_token_hash BLOB CHECK (length(mail_token_hash) = 32);
CREATE UNIQUE INDEX invitations_mail_token ON invitations (mail_token_hash);
-- Emails with invitations of the last hour, to limit them. Older rows are purged.
CREATE TABLE invitation_mails (
    id         TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    -- SHA-256 of the email address, as in users.
    email_hash BLOB NOT NULL CHECK (length(email_hash) = 32),
    at         TIMESTAMP NOT NULL
);
CREATE INDEX invitation_mails_account ON invitation_mails (account_id, at);
CREATE INDEX invitation_mails_email ON invitation_mails (email_hash, at);
CREATE INDEX invitation_mails_at ON invitation_mails (at);
