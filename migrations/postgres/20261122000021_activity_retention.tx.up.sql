-- The portal deletes activities after 400 days. The trigger allows a DELETE after 399 days, because
-- the clocks of the portal and the database may differ.
DROP TRIGGER activities_append_only ON activities;
CREATE TRIGGER activities_append_only BEFORE UPDATE OR TRUNCATE ON activities
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER activities_kept BEFORE DELETE ON activities
    FOR EACH ROW WHEN (OLD.at > now() - interval '399 days') EXECUTE FUNCTION refuse_change();
