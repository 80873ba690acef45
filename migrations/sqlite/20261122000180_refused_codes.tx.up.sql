-- The wrong codes of an authenticator app since the first one within a day.
ALTER TABLE authenticators ADD COLUMN refused_codes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE authenticators ADD COLUMN refused_since TIMESTAMP;
