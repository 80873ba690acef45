package authn

// Held returns the number of keys in memory and whether a batch waits.
func (a *Authenticator) Held() (keys int, waiting bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.memory.keys), a.next != nil
}

// MaxBatch is how many requests can wait for the next statement.
const MaxBatch = maxBatch

// The statements that read keys by their hashes and ids.
const (
	PostgresIDs = postgresIDs
	SQLiteIDs   = sqliteIDs
	Planner     = planner
)
