-- The keys that were there before key_warnings. In a transaction of its own, this holds up no
-- revocation. Mails that wait have no id, so they are queued again.
INSERT INTO key_warnings (api_key_id, policy, check_at, since, ends_at, warnings, mailed)
SELECT id, CASE WHEN unused_mailed < unused_warnings THEN -1 ELSE unused_policy END, unused_check_at, unused_since,
    CASE unused_warnings WHEN 2 THEN unused_warned_at + interval '3 days' ELSE unused_since + interval '14 days' END,
    unused_warnings, unused_mailed
FROM api_keys WHERE revoked_at IS NULL
ON CONFLICT (api_key_id) DO NOTHING;

-- The columns unused_ of api_keys and their index are for instances of the previous version, which
-- read and write them. A later version can drop them.
