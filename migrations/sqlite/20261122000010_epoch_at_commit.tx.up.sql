-- Inserts renew the epoch too. Two states of the database with the same epoch therefore hold the
-- same keys, agents and accounts, even after a restored backup. The new triggers also cover INSERT
-- OR REPLACE, which deletes rows without firing a delete trigger.
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
