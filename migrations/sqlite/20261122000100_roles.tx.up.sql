-- Owners manage the users of their account, members do not. Users from before roles are owners.
ALTER TABLE users ADD COLUMN role TEXT NOT NULL DEFAULT 'owner' CHECK (role IN ('owner', 'member'));
-- A removed user stays for the account's activity log, but is disabled, and its email is free.
ALTER TABLE users ADD COLUMN removed_at TIMESTAMP;
