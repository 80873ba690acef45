package models

// Parts of queries over API keys that lists of accounts need too.
const (
	// activeKey is the condition that a key is active at a time: neither revoked nor expired.
	activeKey = "(api_key.revoked_at IS NULL AND (api_key.expires_at IS NULL OR api_key.expires_at > ?))"
	// joinLastUses joins the last use of a key.
	joinLastUses = "LEFT JOIN api_key_last_uses AS last_use ON last_use.api_key_id = api_key.id"
)
