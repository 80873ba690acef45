package authn_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"portal/models"
	"portal/models/agents"
	"portal/models/authn"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
)

func TestMain(m *testing.M) { modelstest.Main(m) }

var must = modelstest.Must

// fixture is an authenticator, and a store that writes to the same database.
type fixture struct {
	*authn.Authenticator
	url     string
	store   *models.Store
	account people.Account
}

func eachDatabase(t *testing.T, run func(t *testing.T, f *fixture)) {
	t.Helper()
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) { run(t, newFixture(t, url)) })
}

func newFixture(t *testing.T, url string) *fixture {
	t.Helper()
	f := &fixture{url: url, store: modelstest.Open(t, url, models.Options{})}
	f.Authenticator = authn.New(newReader(t, url), 10*time.Second)
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	var err error
	f.account, err = f.store.Accounts.Create(t.Context(),
		people.NewAccount{Name: "Acme", Email: "ada@example.com", Password: "correct horse battery"})
	must(t, err)
	return f
}

func newReader(t *testing.T, url string) authn.Reader {
	t.Helper()
	path, isSQLite := strings.CutPrefix(url, "sqlite:")
	if !isSQLite {
		config, err := pgconn.ParseConfig(url + "&jit=off") // as the portal's own connections
		must(t, err)
		return authn.NewPostgres(
			func(ctx context.Context) (*pgconn.PgConn, error) { return pgconn.ConnectConfig(ctx, config) },
			func() error { return nil })
	}
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(path))
	must(t, err)
	reader, err := authn.NewSQLite(t.Context(), db)
	must(t, err)
	return reader
}

func (f *fixture) generate(t *testing.T) (keys.Key, authn.KeyHash) {
	t.Helper()
	key, secret, err := f.store.Keys.Generate(t.Context(), f.account.ID,
		keys.NewKey{Label: "test", FormID: uuid.New()}, record.Operator())
	must(t, err)
	return key, sha256.Sum256([]byte(secret))
}

func (f *fixture) revoke(t *testing.T, key keys.Key) {
	t.Helper()
	if _, err := f.store.Keys.Revoke(t.Context(), f.account.ID, key.ID, "", record.Operator()); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) restrict(t *testing.T, key keys.Key, r keys.Restrictions) {
	t.Helper()
	if _, err := f.store.Keys.Restrict(t.Context(), f.account.ID, key.ID, "", r, "", record.Operator()); err != nil {
		t.Fatal(err)
	}
}

// The key expires without another epoch, so memory has it as active.
func TestRememberedKeyExpires(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		key, hash := f.generate(t)
		expiresAt := time.Now().Add(time.Second).Truncate(time.Millisecond)
		f.restrict(t, key, keys.Restrictions{ExpiresAt: &expiresAt})
		_, first, err := f.Lookup(t.Context(), hash)
		must(t, err)
		for refused := false; !refused; {
			before := time.Now()
			found, epoch, err := f.Lookup(t.Context(), hash)
			byID, _, idErr := f.LookupID(t.Context(), key.ID)
			after := time.Now()
			must(t, errors.Join(err, idErr))
			if found.Active == found.Expired || byID.Active == byID.Expired || found.Revoked || epoch != first {
				t.Fatalf("%+v and %+v at %v", found, byID, epoch)
			}
			// The database's clock has milliseconds.
			if found.Active && before.After(expiresAt.Add(time.Millisecond)) || found.Expired && after.Before(expiresAt) {
				t.Fatalf("expired: %t, between %v and %v; it expires at %v", found.Expired, before, after, expiresAt)
			}
			refused = found.Expired && byID.Expired
		}
	})
}

func TestRestrictionsAreRead(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		agent, err := f.store.Agents.Create(t.Context(), f.account.ID, agents.NewAgent{Name: "Reception"}, record.Operator())
		must(t, err)
		key, hash := f.generate(t)
		expiresAt := time.Now().Add(time.Hour).Truncate(time.Millisecond)
		want := keys.Restrictions{ExpiresAt: &expiresAt, Agents: []uuid.UUID{agent.ID}, Networks: []netip.Prefix{netip.MustParsePrefix("2001:db8::/32")}}
		f.restrict(t, key, want)
		for range 2 { // from the database, and from memory
			found, _, err := f.Lookup(t.Context(), hash)
			must(t, err)
			byID, _, err := f.LookupID(t.Context(), key.ID)
			must(t, err)
			for _, r := range []*authn.Restrictions{found.Restrictions, byID.Restrictions} {
				if r == nil || !r.ExpiresAt.Equal(expiresAt) || !slices.Equal(r.Agents, want.Agents) || !slices.Equal(r.Networks, want.Networks) {
					t.Errorf("%+v", r)
				}
			}
		}
		// By an operator's hand. A malformed list allows nothing.
		modelstest.Exec(t, f.url, "UPDATE api_keys SET expires_at = NULL, agents = 'x', networks = 'null'")
		found, _, err := f.Lookup(t.Context(), hash)
		must(t, err)
		r := found.Restrictions
		if r == nil {
			t.Fatal("malformed lists allow everything")
		}
		modelstest.Facts(t, r, map[string]bool{
			"active":     found.Active,
			"no agent":   r.Agents != nil && len(r.Agents) == 0,
			"no network": r.Networks != nil && len(r.Networks) == 0,
		})
	})
}

func TestLookup(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		active, activeHash := f.generate(t)
		revoked, revokedHash := f.generate(t)
		f.revoke(t, revoked)
		var first authn.Epoch
		for i := range 3 {
			key, epoch, err := f.Lookup(t.Context(), activeHash)
			if want := (authn.Key{ID: active.ID, AccountID: f.account.ID, Active: true}); err != nil || key != want {
				t.Errorf("active key: %+v, %v", key, err)
			}
			if i == 0 {
				first = epoch
			}
			if epoch != first || epoch == (authn.Epoch{}) {
				t.Errorf("the epoch is %x, was %x", epoch, first)
			}
			key, _, err = f.Lookup(t.Context(), revokedHash)
			if want := (authn.Key{ID: revoked.ID, AccountID: f.account.ID, Revoked: true}); err != nil || key != want {
				t.Errorf("revoked key: %+v, %v", key, err)
			}
			if key, _, err = f.Lookup(t.Context(), authn.KeyHash{}); !errors.Is(err, authn.ErrKeyUnknown) {
				t.Errorf("unknown key: %+v, %v", key, err)
			}
		}
		if keys, waiting := f.Held(); keys != 1 || waiting {
			t.Errorf("memory has %d keys, a batch waits: %t", keys, waiting)
		}
		f.revoke(t, active)
		if key, epoch, err := f.Lookup(t.Context(), activeHash); err != nil || key.Active || epoch == first {
			t.Errorf("after revocation: %+v, %v", key, err)
		}
	})
}

func TestLookupID(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		active, activeHash := f.generate(t)
		revoked, _ := f.generate(t)
		f.revoke(t, revoked)
		for range 3 {
			key, epoch, err := f.LookupID(t.Context(), active.ID)
			if want := (authn.Key{ID: active.ID, AccountID: f.account.ID, Active: true}); err != nil || key != want {
				t.Errorf("active key: %+v, %v", key, err)
			}
			byHash, same, err := f.Lookup(t.Context(), activeHash)
			if err != nil || byHash != key || same != epoch {
				t.Errorf("by its hash: %+v at %x, %v, want %+v at %x", byHash, same, err, key, epoch)
			}
			key, _, err = f.LookupID(t.Context(), revoked.ID)
			if want := (authn.Key{ID: revoked.ID, AccountID: f.account.ID, Revoked: true}); err != nil || key != want {
				t.Errorf("revoked key: %+v, %v", key, err)
			}
			if key, _, err = f.LookupID(t.Context(), uuid.New()); !errors.Is(err, authn.ErrKeyUnknown) {
				t.Errorf("unknown key: %+v, %v", key, err)
			}
		}
		modelstest.Exec(t, f.url, "UPDATE accounts SET disabled_at = created_at")
		if key, _, err := f.LookupID(t.Context(), active.ID); err != nil || key.Active || key.Revoked {
			t.Errorf("with a disabled account: %+v, %v", key, err)
		}
	})
}

// TestLookupDuringRevocations checks every lookup that starts after a restriction or a revocation
// was confirmed, while many others share its batch. Half of the lookups are by id.
func TestLookupDuringRevocations(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		const ofAccount, workers = 20, 16
		var hashes [ofAccount]authn.KeyHash
		var generated [ofAccount]keys.Key
		for i := range ofAccount {
			generated[i], hashes[i] = f.generate(t)
		}
		var restricted, confirmed atomic.Int64 // the numbers of restricted and revoked keys
		var stopped atomic.Bool
		var running sync.WaitGroup
		for worker := range workers {
			running.Go(func() {
				for i := worker; !stopped.Load(); i++ {
					before, restrictedBefore := confirmed.Load(), restricted.Load()
					var key authn.Key
					var err error
					if i/ofAccount%2 == 0 {
						key, _, err = f.Lookup(t.Context(), hashes[i%ofAccount])
					} else {
						key, _, err = f.LookupID(t.Context(), generated[i%ofAccount].ID)
					}
					if err != nil {
						t.Error(err)
						return
					}
					if key.ID != generated[i%ofAccount].ID {
						t.Error("the result is another key's")
					}
					if key.Active && int64(i%ofAccount) < before {
						t.Error("a revoked key is active")
					}
					if key.Restrictions == nil && int64(i%ofAccount) < restrictedBefore {
						t.Error("a restricted key has no restrictions")
					}
				}
			})
		}
		for _, key := range generated {
			f.restrict(t, key, keys.Restrictions{Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}})
			restricted.Add(1)
		}
		for _, key := range generated {
			f.revoke(t, key)
			confirmed.Add(1)
		}
		stopped.Store(true)
		running.Wait()
	})
}

func TestAgentIsRememberedForOneEpoch(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		key, hash := f.generate(t)
		lookup := func() authn.Epoch {
			t.Helper()
			_, epoch, err := f.Lookup(t.Context(), hash)
			must(t, err)
			return epoch
		}
		epoch, agent := lookup(), authn.Agent{AccountID: f.account.ID, ID: uuid.New()}
		other := authn.Agent{AccountID: uuid.New(), ID: agent.ID}
		f.RememberAgent(authn.EpochValue{1}, agent)
		if f.HasAgent(epoch, agent) || f.HasAgent(authn.Epoch{Value: authn.EpochValue{1}}, agent) {
			t.Error("an agent of another epoch is in memory")
		}
		f.RememberAgent(epoch.Value, agent)
		if !f.HasAgent(epoch, agent) || f.HasAgent(epoch, other) {
			t.Error("memory does not have exactly this agent")
		}
		f.revoke(t, key)
		if after := lookup(); f.HasAgent(after, agent) {
			t.Error("the agent outlived its epoch")
		}
		f.RememberAgent(epoch.Value, agent)
		if f.HasAgent(epoch, agent) {
			t.Error("an agent of an old epoch was added")
		}
	})
}

func TestLookupNeedsTheDatabase(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		_, hash := f.generate(t)
		if _, _, err := f.Lookup(t.Context(), hash); err != nil {
			t.Fatal(err)
		}
		late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
		defer cancel()
		if key, _, err := f.Lookup(late, hash); !errors.Is(err, context.DeadlineExceeded) || key.Active {
			t.Errorf("after the deadline: %+v, %v", key, err)
		}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if key, _, err := f.Lookup(canceled, hash); !errors.Is(err, context.Canceled) || key.Active {
			t.Errorf("canceled: %+v, %v", key, err)
		}
	})
}

func TestUnknownKeysTakeNoMemory(t *testing.T) {
	t.Parallel()
	f := newFixture(t, modelstest.SQLiteURL(t))
	const unknown, workers = 10_000, 256
	var running sync.WaitGroup
	for worker := range workers {
		running.Go(func() {
			var hash authn.KeyHash
			for i := worker; i < unknown; i += workers {
				binary.BigEndian.PutUint64(hash[:], uint64(i))
				_, _, err := f.Lookup(t.Context(), hash)
				if errors.Is(err, context.DeadlineExceeded) {
					i -= workers // the machine is busy: look it up again
					continue
				}
				if !errors.Is(err, authn.ErrKeyUnknown) {
					t.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
	if keys, waiting := f.Held(); keys > 0 || waiting {
		t.Errorf("memory has %d keys, a batch waits: %t", keys, waiting)
	}
}

// If the database hangs, requests beyond the bound fail at once.
func TestWaitingRequestsAreBounded(t *testing.T) {
	t.Parallel()
	url := modelstest.PostgresURL(t)
	f := newFixture(t, url)
	tx, err := modelstest.OpenDatabase(t, url).BeginTx(t.Context(), nil)
	must(t, err)
	_, err = tx.ExecContext(t.Context(), "LOCK TABLE api_keys IN ACCESS EXCLUSIVE MODE")
	must(t, err)
	const requests = 2 * authn.MaxBatch
	var busy, answered atomic.Int64
	var waiting sync.WaitGroup
	for i := range requests {
		waiting.Go(func() {
			_, _, err := f.Lookup(t.Context(), authn.KeyHash{byte(i), byte(i >> 8)})
			switch {
			case errors.Is(err, authn.ErrBusy):
				busy.Add(1)
			case errors.Is(err, authn.ErrKeyUnknown):
				answered.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	for deadline := time.Now().Add(time.Minute); busy.Load() < requests/2-1; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d requests were refused", busy.Load())
		}
	}
	must(t, tx.Rollback())
	waiting.Wait()
	// One batch runs, and it may be of one request, while the next one waits.
	if answered.Load() < authn.MaxBatch || busy.Load()+answered.Load() != requests {
		t.Errorf("%d requests were refused and %d answered", busy.Load(), answered.Load())
	}
}
