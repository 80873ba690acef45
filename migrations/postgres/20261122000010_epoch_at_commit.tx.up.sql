-- Inserts renew the epoch too. Two states of the database with the same epoch therefore hold the
-- same keys, agents and accounts, even after a failover or a restored backup.
--
-- The triggers are deferred: they run inside COMMIT. A transaction that stays open, in a frozen
-- instance or in an operator's psql, therefore does not lock the row that every revocation needs.
-- A transaction that changes these tables and then alters them must first run
-- SET CONSTRAINTS ALL IMMEDIATE.
DROP TRIGGER api_keys_renew_epoch ON api_keys;
DROP TRIGGER agents_renew_epoch ON agents;
DROP TRIGGER accounts_renew_epoch ON accounts;

CREATE OR REPLACE FUNCTION renew_auth_epoch() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    this_transaction text := pg_current_xact_id();
BEGIN
    -- The trigger runs for each row. One renewal in a transaction is enough.
    IF current_setting('portal.epoch_renewed_in', true) IS DISTINCT FROM this_transaction THEN
        UPDATE auth_epoch SET value = random_epoch();
        PERFORM set_config('portal.epoch_renewed_in', this_transaction, true);
    END IF;
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER api_keys_renew_epoch
    AFTER INSERT OR UPDATE OF id, account_id, key_hash, revoked_at OR DELETE ON api_keys
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION renew_auth_epoch();
CREATE CONSTRAINT TRIGGER agents_renew_epoch
    AFTER INSERT OR UPDATE OF id, account_id OR DELETE ON agents
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION renew_auth_epoch();
CREATE CONSTRAINT TRIGGER accounts_renew_epoch
    AFTER INSERT OR UPDATE OF id, disabled_at OR DELETE ON accounts
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION renew_auth_epoch();

-- PostgreSQL cannot defer a trigger for TRUNCATE.
CREATE TRIGGER api_keys_truncate_renews_epoch
    AFTER TRUNCATE ON api_keys FOR EACH STATEMENT EXECUTE FUNCTION renew_auth_epoch();
CREATE TRIGGER agents_truncate_renews_epoch
    AFTER TRUNCATE ON agents FOR EACH STATEMENT EXECUTE FUNCTION renew_auth_epoch();
CREATE TRIGGER accounts_truncate_renews_epoch
    AFTER TRUNCATE ON accounts FOR EACH STATEMENT EXECUTE FUNCTION renew_auth_epoch();
