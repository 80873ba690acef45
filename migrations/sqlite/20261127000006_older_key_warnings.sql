-- The keys that were there before key_warnings. In a transaction of its own, this holds up no
-- revocation. Mails that wait have no id, so they are queued again.
INSERT INTO key_warnings (api_key_id, policy, check_at, since, ends_at, warnings, mailed)
SELECT id, CASE WHEN unused_mailed < unused_warnings THEN -1 ELSE unused_policy END, unused_check_at, unused_since,
    CASE unused_warnings WHEN 2 THEN strftime('%Y-%m-%d %H:%M:%f', unused_warned_at, '+3 days')
        ELSE strftime('%Y-%m-%d %H:%M:%f', unused_since, '+14 days') END || '+00:00',
    unused_warnings, unused_mailed
FROM api_keys WHERE revoked_at IS NULL
ON CONFLICT (api_key_id) DO NOTHING;

-- The columns unused_ of api_keys and their index are for instances of the previous version, which
-- read and write them. A later version can drop them.
