-- For the purge of idle sessions.
CREATE INDEX sessions_last_seen ON sessions (last_seen_at);
