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
