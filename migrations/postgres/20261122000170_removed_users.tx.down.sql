DROP INDEX users_removed;
