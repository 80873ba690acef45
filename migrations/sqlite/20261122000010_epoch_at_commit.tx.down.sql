DROP TRIGGER api_keys_insert_renews_epoch;
DROP TRIGGER agents_insert_renews_epoch;
DROP TRIGGER accounts_insert_renews_epoch;

CREATE TRIGGER api_keys_replace_renews_epoch BEFORE INSERT ON api_keys
    WHEN EXISTS (SELECT 1 FROM api_keys WHERE id = NEW.id OR key_hash = NEW.key_hash
        OR (account_id = NEW.account_id AND form_id = NEW.form_id))
BEGIN
    UPDATE auth_epoch SET value = randomblob(16);
END;
CREATE TRIGGER agents_replace_renews_epoch BEFORE INSERT ON agents
    WHEN EXISTS (SELECT 1 FROM agents WHERE id = NEW.id)
BEGIN
    UPDATE auth_epoch SET value = randomblob(16);
END;
CREATE TRIGGER accounts_replace_renews_epoch BEFORE INSERT ON accounts
    WHEN EXISTS (SELECT 1 FROM accounts WHERE id = NEW.id)
BEGIN
    UPDATE auth_epoch SET value = randomblob(16);
END;
