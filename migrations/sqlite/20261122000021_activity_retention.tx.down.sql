DROP TRIGGER activities_no_delete;
CREATE TRIGGER activities_no_delete BEFORE DELETE ON activities
BEGIN
    SELECT RAISE(ABORT, 'activities is append-only');
END;
