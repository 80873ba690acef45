-- The portal deletes activities after 400 days. The trigger allows a DELETE after 399 days, because
-- the clocks of the portal and the database may differ.
DROP TRIGGER activities_no_delete;
CREATE TRIGGER activities_no_delete BEFORE DELETE ON activities
    WHEN OLD.at > strftime('%Y-%m-%d %H:%M:%f', 'now', '-399 days')
BEGIN
    SELECT RAISE(ABORT, 'activities is append-only');
END;
