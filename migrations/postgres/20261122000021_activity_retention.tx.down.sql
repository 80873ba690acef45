DROP TRIGGER activities_kept ON activities;
DROP TRIGGER activities_append_only ON activities;
CREATE TRIGGER activities_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON activities
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
