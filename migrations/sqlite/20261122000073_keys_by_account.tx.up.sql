-- For the list of all keys of an account, which is read page by page.
CREATE INDEX api_keys_account ON api_keys (account_id, id);
