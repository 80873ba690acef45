package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"
	_ "modernc.org/sqlite"             // registers the driver "sqlite"

	"portal/models/modelstest/postgres"
)

// cluster is the private PostgreSQL server of a run, with a pool to the database "postgres".
type cluster struct {
	*postgres.Cluster
	*sql.DB

	postmaster int // process id
	version    string
}

// startCluster starts a server with the durability settings of production, and with enough memory
// for tables of a million keys.
func startCluster(ctx context.Context) (*cluster, error) {
	started, err := postgres.Start("", "fsync=on", "synchronous_commit=on", "full_page_writes=on", //nolint:contextcheck // it has its own time limit
		"shared_buffers=512MB", "max_wal_size=4GB")
	if err != nil {
		return nil, err
	}
	c := &cluster{Cluster: started}
	if c.DB, err = sql.Open("pgx", c.URL("postgres")); err == nil {
		err = c.QueryRowContext(ctx, "SELECT current_setting('server_version'), split_part(pg_read_file('postmaster.pid'), chr(10), 1)::int").
			Scan(&c.version, &c.postmaster)
	}
	if err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// The user of the first account of a tenant.
const benchEmail, benchPassword = "bench@example.com", "a password for the benchmark"

// maxKeys is the largest number of active keys of an account.
const maxKeys = 100

// tenant is a database with accounts that own keys.
type tenant struct {
	*sql.DB

	cluster   *cluster // nil: SQLite
	url       string
	accountID string // the first account, which has a user
	keys      []apiKey
}

type apiKey struct{ id, secret, accountID, agentID string }

// newTenant creates a database with n keys, on SQLite if the cluster is nil.
func (b *bench) newTenant(ctx context.Context, on *cluster, name string, n int) (_ *tenant, err error) {
	t := &tenant{cluster: on, url: "sqlite:" + filepath.Join(b.dir, name+".db")}
	if on == nil {
		t.DB, err = sql.Open("sqlite", strings.Replace(t.url, "sqlite:", "file:", 1)+"?_pragma=busy_timeout(5000)")
	} else {
		t.url = on.URL(name)
		if _, err := on.ExecContext(ctx, "CREATE DATABASE "+name); err != nil {
			return nil, err
		}
		// Without the trigger that renews the epoch, for each row.
		t.DB, err = sql.Open("pgx", t.url+"&options=-csession_replication_role%3Dreplica")
	}
	if err != nil {
		return nil, err
	}
	// Only the portals have connections.
	t.SetMaxIdleConns(0)
	for _, args := range []string{"migrate", "account create --name Bench --email " + benchEmail} {
		command := exec.CommandContext(ctx, b.portal, strings.Fields(args)...) //nolint:gosec // the program that we have built
		command.Env = []string{"DATABASE_URL=" + t.url}
		command.Stdin, command.Stderr = strings.NewReader(benchPassword), os.Stderr
		output, err := command.Output()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", args, err)
		}
		t.accountID = strings.TrimSpace(string(output))
	}
	return t, t.addKeys(ctx, n)
}

// addKeys adds n keys at once, where the portal would add them one by one. Each account has an
// agent and at most 100 keys.
func (t *tenant) addKeys(ctx context.Context, n int) error {
	var accounts, agents, keys []string
	blob := "x'%x'"
	if t.cluster != nil {
		blob = `'\x%x'`
	}
	now := time.Now().UTC().Format("2006-01-02 15:04:05-07:00")
	for i := range n {
		key := apiKey{id: newID(), secret: newSecret(), accountID: t.accountID, agentID: newID()}
		if i%maxKeys > 0 {
			key.accountID, key.agentID = t.keys[i-1].accountID, t.keys[i-1].agentID
		} else {
			if i > 0 {
				key.accountID = newID()
				accounts = append(accounts, fmt.Sprintf("('%s', 'Bench', '%s')", key.accountID, now))
			}
			agents = append(agents, fmt.Sprintf("('%s', '%s', 'Bench', '%s')", key.agentID, key.accountID, now))
		}
		t.keys = append(t.keys, key)
		keys = append(keys, fmt.Sprintf("('%s', '%s', 'Bench', "+blob+", '%s', '%s', '%s')",
			key.id, key.accountID, sha256.Sum256([]byte(key.secret)), key.secret[len(key.secret)-4:], newID(), now))
	}
	return t.exec(ctx, slices.Concat(
		insert("accounts (id, name, created_at)", accounts),
		insert("agents (id, account_id, name, created_at)", agents),
		insert("api_keys (id, account_id, label, key_hash, last_four, form_id, created_at)", keys))...)
}

// insert returns statements that insert the rows, a thousand at a time.
func insert(into string, rows []string) (statements []string) {
	for some := range slices.Chunk(rows, 1000) {
		statements = append(statements, "INSERT INTO "+into+" VALUES "+strings.Join(some, ", "))
	}
	return statements
}

// exec runs statements, and updates the statistics of the planner after them.
func (t *tenant) exec(ctx context.Context, statements ...string) error {
	for _, statement := range append(statements, "ANALYZE") {
		if _, err := t.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%.100s: %w", statement, err)
		}
	}
	return nil
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

// newSecret returns a well-formed API key that is in no database. Some characters are slightly more
// likely than others.
func newSecret() string {
	const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	var random [30]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	key := []byte("nas_")
	for _, b := range random {
		key = append(key, alphabet[int(b)%len(alphabet)])
	}
	sum := crc32.ChecksumIEEE(key)
	for divisor := uint32(62 * 62 * 62 * 62 * 62); divisor > 0; divisor /= 62 {
		key = append(key, alphabet[sum/divisor%62])
	}
	return string(key)
}
