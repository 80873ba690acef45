-- The identities at an OpenID Connect provider that sign users in.
CREATE TABLE identities (
    issuer     text NOT NULL,
    subject    text NOT NULL CHECK (length(subject) BETWEEN 1 AND 255),
    user_id    uuid NOT NULL REFERENCES users (id),
    -- The provider's email at that time, which helps the user to recognize the identity.
    email      text NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (issuer, subject)
);
CREATE UNIQUE INDEX identities_user ON identities (user_id, issuer);
