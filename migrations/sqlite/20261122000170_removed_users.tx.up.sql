-- For the purge of users who were removed long ago.
CREATE INDEX users_removed ON users (removed_at) WHERE removed_at IS NOT NULL;
