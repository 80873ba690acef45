-- When the user last entered the password in a session that had already begun.
ALTER TABLE sessions ADD COLUMN confirmed_at TIMESTAMP;
