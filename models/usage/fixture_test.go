package usage_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	connect "portal/models/database"
	"portal/models/modelstest"
	"portal/models/usage"
)

func TestMain(m *testing.M) { modelstest.Main(m) }

var must = modelstest.Must

// account is the account of all keys of a test that is not about accounts.
var account = uuid.New()

// backend is the source of all requests of a test that is not about sources.
var backend = usage.NewSource(netip.MustParseAddr("192.0.2.7"), "backend/1.0 (test)")

// noon is a time in the middle of a day and of an hour.
var noon = time.Date(2026, time.March, 14, 12, 30, 0, 1000, time.UTC)

// database is a database with the portal's schema.
type database struct {
	*bun.DB
	url string
}

// eachDatabase runs a test on SQLite and on PostgreSQL.
func eachDatabase(t *testing.T, run func(t *testing.T, db database)) {
	t.Helper()
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) { run(t, open(t, url)) })
}

func open(t testing.TB, url string) database {
	t.Helper()
	db := database{modelstest.OpenDatabase(t, url), url}
	_, err := db.ExecContext(t.Context(), "INSERT INTO accounts (id, name, created_at) VALUES (?, 'Acme', ?)", account, noon)
	must(t, err)
	return db
}

// writer returns a writer for the database.
func (d database) writer(t testing.TB) usage.Writer {
	t.Helper()
	connections, err := connect.Open(d.url, connect.Timeout)
	must(t, err)
	must(t, connections.Close()) // the writer has a connection of its own
	if connections.IsPostgres() {
		return usage.NewPostgres(connections.Single())
	}
	return usage.NewSQLite(connections.Single())
}

// recorder returns a recorder that is closed at the end of the test.
func (d database) recorder(t testing.TB) *usage.Recorder {
	t.Helper()
	return recorder(t, d.writer(t))
}

func recorder(t testing.TB, writer usage.Writer) *usage.Recorder {
	t.Helper()
	r := usage.New(writer, false, 0)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = r.Close(ctx)
	})
	return r
}

// stored returns the requests of a key in all hours.
func (d database) stored(t testing.TB, key uuid.UUID) (requests int64) {
	t.Helper()
	must(t, d.NewRaw(`SELECT COALESCE(sum(requests), 0) FROM (
			SELECT requests FROM api_key_hourly_usage WHERE api_key_id = ?
			UNION ALL SELECT requests FROM api_key_last_uses WHERE api_key_id = ?) AS counts`, key, key).Scan(t.Context(), &requests))
	return requests
}

// total returns the requests of all keys, by the hours and by the days.
func (d database) total(t testing.TB) (byHour, byDay int64) {
	t.Helper()
	for table, sum := range map[string]*int64{"api_key_hourly_usage": &byHour, "api_key_daily_usage": &byDay} {
		must(t, d.NewRaw("SELECT COALESCE((SELECT sum(requests) FROM "+table+"), 0) + COALESCE((SELECT sum(requests) FROM api_key_last_uses), 0)").
			Scan(t.Context(), sum))
	}
	return byHour, byDay
}

// newKeys stores keys of the account, and returns their ids, which sort in a random order.
func (d database) newKeys(t testing.TB, n int) []uuid.UUID {
	t.Helper()
	type apiKey struct {
		bun.BaseModel `bun:"table:api_keys"`

		ID, AccountID, FormID uuid.UUID
		Label, LastFour       string
		KeyHash               []byte
		CreatedAt             time.Time
	}
	keys, rows := make([]uuid.UUID, n), make([]apiKey, n)
	for i := range keys {
		keys[i] = uuid.New()
		hash := sha256.Sum256(keys[i][:])
		rows[i] = apiKey{ID: keys[i], AccountID: account, FormID: keys[i], KeyHash: hash[:], CreatedAt: noon}
	}
	for chunk := range slices.Chunk(rows, 1000) {
		_, err := d.NewInsert().Model(&chunk).Exec(t.Context())
		must(t, err)
	}
	return keys
}

// newKey is newKeys for one key.
func (d database) newKey(t testing.TB) uuid.UUID {
	t.Helper()
	return d.newKeys(t, 1)[0]
}

// sorted returns keys in the order in which a flush writes them.
func sorted(keys []uuid.UUID) []uuid.UUID {
	return slices.SortedFunc(slices.Values(keys), func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
}

// countEach counts a request with each key.
func countEach(r *usage.Recorder, keys []uuid.UUID, at time.Time) {
	for _, key := range keys {
		r.Count(account, key, backend, at, 1, 0)
	}
}

var errLost = errors.New("the answer is lost")

// lossy loses the answers of some writes.
type lossy struct{ usage.Writer }

func (l lossy) Write(ctx context.Context, hour time.Time, entries []usage.Entry, sources []usage.SourceEntry) error {
	err := l.Writer.Write(ctx, hour, entries, sources)
	if err == nil && rand.N(2) == 0 {
		err = errLost
	}
	return err
}
