DROP TABLE auth_epoch, activities, sign_in_failures, sessions, api_key_daily_usage, api_key_hourly_usage,
    api_key_last_uses, api_keys, agents, users, accounts;
DROP FUNCTION renew_auth_epoch, random_epoch, refuse_change;
