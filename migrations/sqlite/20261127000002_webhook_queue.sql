-- A claim begins with the deliveries that are due. It does not look at endpoints that get nothing.
DROP INDEX webhook_deliveries_first;
CREATE INDEX webhook_deliveries_first ON webhook_deliveries (due_at, endpoint_id, account_id) WHERE due_at IS NOT NULL;
DROP INDEX webhook_endpoints_enabled;
