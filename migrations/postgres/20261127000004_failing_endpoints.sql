-- The endpoints whose last attempts failed, which operators count.
CREATE INDEX webhook_endpoints_failing ON webhook_endpoints (failing_since) WHERE failing_since IS NOT NULL;
