-- Work: end the calls that were opened with the tokens of a revoked key, a removed agent or a
-- disabled account. A call can begin as long as a token is valid, so the work is repeated until
-- then.
CREATE TABLE hang_ups (
    -- The activity of the revocation, removal or disabling.
    activity_id uuid PRIMARY KEY,
    -- The key, agent or account.
    subject_id  uuid NOT NULL,
    -- An instance that begins the work moves this time, so that no other one does the same.
    due_at      timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    -- The number of calls that were ended and are in no activity yet.
    ended       bigint NOT NULL DEFAULT 0,
    -- When the last activity about ended calls was recorded.
    recorded_at timestamptz
);
CREATE INDEX hang_ups_subject ON hang_ups (subject_id);
CREATE INDEX hang_ups_due ON hang_ups (due_at);
CREATE INDEX hang_ups_expiry ON hang_ups (expires_at);
