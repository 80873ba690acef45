DROP TRIGGER api_keys_renew_epoch ON api_keys;
DROP TRIGGER agents_renew_epoch ON agents;
DROP TRIGGER accounts_renew_epoch ON accounts;
DROP TRIGGER api_keys_truncate_renews_epoch ON api_keys;
DROP TRIGGER agents_truncate_renews_epoch ON agents;
DROP TRIGGER accounts_truncate_renews_epoch ON accounts;

CREATE OR REPLACE FUNCTION renew_auth_epoch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE auth_epoch SET value = random_epoch();
    RETURN NULL;
END $$;

CREATE TRIGGER api_keys_renew_epoch
    AFTER UPDATE OF id, account_id, key_hash, revoked_at OR DELETE OR TRUNCATE ON api_keys
    FOR EACH STATEMENT EXECUTE FUNCTION renew_auth_epoch();
CREATE TRIGGER agents_renew_epoch
    AFTER UPDATE OF id, account_id OR DELETE OR TRUNCATE ON agents
    FOR EACH STATEMENT EXECUTE FUNCTION renew_auth_epoch();
CREATE TRIGGER accounts_renew_epoch
    AFTER UPDATE OF id, disabled_at OR DELETE OR TRUNCATE ON accounts
    FOR EACH STATEMENT EXECUTE FUNCTION renew_auth_epoch();
