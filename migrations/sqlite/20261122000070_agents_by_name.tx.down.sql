DROP INDEX agents_by_name;
CREATE INDEX agents_account ON agents (account_id);
