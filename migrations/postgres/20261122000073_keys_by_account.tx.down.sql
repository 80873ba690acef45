DROP INDEX api_keys_account;
