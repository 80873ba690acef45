-- For the list of agents, which is read page by page.
CREATE INDEX agents_by_name ON agents (account_id, lower(name), name, id);
DROP INDEX agents_account;
