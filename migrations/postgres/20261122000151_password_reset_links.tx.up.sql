-- Links that set a new password once. Using one deletes all links of the user.
CREATE TABLE password_reset_links (
    -- SHA-256 of the token in the link.
    token_hash bytea PRIMARY KEY CHECK (length(token_hash) = 32),
    user_id    uuid NOT NULL REFERENCES users (id),
    expires_at timestamptz NOT NULL
);
CREATE INDEX password_reset_links_user ON password_reset_links (user_id);
CREATE INDEX password_reset_links_expiry ON password_reset_links (expires_at);
