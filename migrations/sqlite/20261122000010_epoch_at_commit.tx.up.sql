-- The epoch is now renewed by inserts too. Two states of the database with the same epoch then hold
-- the same keys, agents and accounts, whatever was restored or replaced in between. This also covers
-- INSERT OR REPLACE, which deletes rows without firing a delete trigger.
DROP TRIGGER api_keys_replace_renews_epoch;
DROP TRIGGER agents_replace_renews_epoch;
DROP TRIGGER accounts_replace_renews_epoch;

CREATE TRIGGER api_keys_insert_renews_epoch AFTER INSERT ON api_keys
BEGIN
    UPDATE auth_epoch SET value = randomblob(16);
END;
CREATE TRIGGER agents_insert_renews_epoch AFTER INSERT ON agents
BEGIN
    UPDATE auth_epoch SET value = randomblob(16);
END;
CREATE TRIGGER accounts_insert_renews_epoch AFTER INSERT ON accounts
BEGIN
    UPDATE auth_epoch SET value = randomblob(16);
END;
