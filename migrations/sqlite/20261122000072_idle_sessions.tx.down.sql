DROP INDEX sessions_last_seen;
