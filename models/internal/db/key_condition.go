package db

// Parts of queries over API keys that lists of accounts need too.
const (
	// ActiveKey is the condition that a key is active at a time: neither revoked nor expired.
	ActiveKey = "(api_key.revoked_at IS NULL AND (api_key.expires_at IS NULL OR api_key.expires_at > ?))"
	// JoinLastUses joins the last use of a key.
	JoinLastUses = "LEFT JOIN api_key_last_uses AS last_use ON last_use.api_key_id = api_key.id"
)
