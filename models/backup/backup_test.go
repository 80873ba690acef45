package backup_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/agents"
	"portal/models/backup"
	"portal/models/calls"
	"portal/models/database"
	"portal/models/erasure"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
	"portal/models/webhooks"
	"portal/models/widget"
	"portal/models/workload"
)

func TestMain(m *testing.M) { modelstest.Main(m) }

var must = modelstest.Must

const password = "correct horse battery"

// deployment is a database with an account, and a store that stays open as in a running portal.
type deployment struct {
	*models.Store

	url     string
	email   string // of the account's user
	account people.Account
}

func deploy(t *testing.T, url string) deployment {
	t.Helper()
	return deployment{Store: modelstest.Open(t, url, models.Options{Webhooks: &webhooks.Guard{}}), url: url}.as(t, "ada@example.com")
}

// as returns the deployment with a new account.
func (d deployment) as(t *testing.T, email string) deployment {
	t.Helper()
	d.email = email
	d.account = modelstest.Value(d.Accounts.Create(t.Context(), people.NewAccount{Name: "Ada", Email: email, Password: password}))(t)
	return d
}

// generate returns a key that the store has used, and therefore remembers.
func (d deployment) generate(t *testing.T, label string) (id uuid.UUID, secret string) {
	t.Helper()
	key, secret, err := d.Keys.Generate(t.Context(), d.account.ID, keys.NewKey{Label: label, FormID: uuid.New()}, record.Operator())
	must(t, err)
	d.answers(t, label, secret, nil)
	return key.ID, secret
}

// answers checks that a request with the key gets this error; nil means that it is accepted.
func (d deployment) answers(t *testing.T, label, secret string, want error) {
	t.Helper()
	if _, err := d.API.Authenticate(t.Context(), secret, keys.Source{}); !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", label, err, want)
	}
}

func (d deployment) revoke(t *testing.T, id uuid.UUID) {
	t.Helper()
	modelstest.Value(d.Keys.Revoke(t.Context(), d.account.ID, id, "", record.Operator()))(t)
}

func (d deployment) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	modelstest.Value(modelstest.OpenDatabase(t, d.url).ExecContext(t.Context(), statement, args...))(t)
}

// user returns the user who has this email and password.
func (d deployment) user(t *testing.T, email, password string) (people.User, error) {
	t.Helper()
	return d.SignIn.VerifyPassword(t.Context(), email, password, people.Client{Address: "192.0.2.1"})
}

func (d deployment) backUp(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "backup")
	must(t, backup.Create(t.Context(), d.url, file))
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, want 0600: %v", info.Mode(), err)
	}
	return file
}

// restore restores a backup, which must revoke this many keys.
func (d deployment) restore(t *testing.T, file string, keys backup.RestoredKeys, revoked int) {
	t.Helper()
	if restored, err := backup.Restore(t.Context(), d.url, file, keys); err != nil || restored.Revoked != revoked {
		t.Fatalf("revoked %d, want %d: %v", restored.Revoked, revoked, err)
	}
}

func (d deployment) actions(t *testing.T, action record.Action) []record.Activity {
	t.Helper()
	page := record.ActivityPage{Limit: 100, Actions: []record.Action{action}}
	return modelstest.Value(d.Activity.List(t.Context(), d.account.ID, page))(t)
}

// empty returns the URL of a database without a schema, of the same kind as url.
func empty(t *testing.T, url string) string {
	t.Helper()
	if _, ok := database.SQLitePath(url); ok {
		return modelstest.EmptySQLiteURL(t)
	}
	return modelstest.EmptyPostgresURL(t)
}

func TestRestoreUnderARunningStoreRevivesNoKey(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		d := deploy(t, url)
		other := modelstest.Open(t, url, models.Options{})
		_, kept := d.generate(t, "kept")
		revokedID, revoked := d.generate(t, "revoked after the backup")
		leakedID, leaked := d.generate(t, "reported as leaked after the backup")
		user := modelstest.Value(d.user(t, d.email, password))(t)
		file := d.backUp(t)

		_, later := d.generate(t, "generated after the backup")
		modelstest.Value(other.API.Authenticate(t.Context(), later, keys.Source{}))(t)
		session := modelstest.Value(d.SignIn.Start(t.Context(), user, people.Client{}))(t).Token
		d.revoke(t, revokedID)
		report := []keys.LeakedText{keys.NewLeakedText(leaked, "https://example.com/.env")}
		modelstest.Value(d.Leaks.Revoke(t.Context(), report, record.LeakGitHub, ""))(t)
		must(t, d.Credentials.ResetPassword(t.Context(), d.email, "another horse battery"))

		d.restore(t, file, backup.KeepUnrevokedKeys, 2)
		d.answers(t, "kept", kept, nil)
		d.answers(t, "leaked", leaked, value.ErrKeyRevoked)
		if key, err := d.Keys.Find(t.Context(), d.account.ID, leakedID); err != nil || key.Leak.String() != "Reported as leaked by GitHub: https://example.com/.env" {
			t.Errorf("leaked: %q, %v", key.Leak.String(), err)
		}
		d.answers(t, "revoked", revoked, value.ErrKeyRevoked)
		d.answers(t, "later", later, value.ErrKeyUnknown)
		deployment{Store: other}.answers(t, "later, on another instance", later, value.ErrKeyUnknown)
		if _, err := d.Sessions.Find(t.Context(), session, people.Client{}); !errors.Is(err, value.ErrSessionNotFound) {
			t.Errorf("the session has not ended: %v", err)
		}
		if _, err := d.user(t, d.email, "another horse battery"); err != nil {
			t.Errorf("the restore undid the change of password: %v", err)
		}
		restored := d.actions(t, record.ActionDatabaseRestored)
		if len(restored) != 1 || restored[0].ActorName != "Operator" {
			t.Errorf("want one activity of the operator, got %+v", restored)
		}
		if closed := d.actions(t, record.ActionKeyRevoked); len(closed) != 2 || closed[0].SubjectID == nil || *closed[0].SubjectID != revokedID && *closed[1].SubjectID != revokedID {
			t.Errorf("want the revocation recorded, got %+v", closed)
		}
		due := modelstest.OpenDatabase(t, url).NewSelect().TableExpr("call_rounds AS r, auth_epoch AS e").
			Where("r.epoch IS NULL OR r.epoch <> e.value")
		if n, err := due.Count(t.Context()); err != nil || n != 1 {
			t.Errorf("no round is due that ends the calls of the key: %v", err)
		}
		// The restored database works.
		id, secret := d.generate(t, "new")
		d.revoke(t, id)
		d.answers(t, "new", secret, value.ErrKeyRevoked)
	})
}

// PostgreSQL's programs connect by themselves, so they get the settings of the database.
func TestRestoreWithForeignSettingsSurvivesACrash(t *testing.T) {
	t.Parallel()
	cluster := modelstest.OwnCluster(t, "synchronous_commit=off", "wal_writer_delay=10s")
	url := cluster.URL("postgres")
	for name, value := range map[string]string{
		"bytea_output": "escape", "client_encoding": "LATIN1", "DateStyle": "German", "IntervalStyle": "sql_standard",
		"session_replication_role": "replica", "standard_conforming_strings": "off", "TimeZone": "Asia/Kolkata",
	} {
		modelstest.Exec(t, url, "ALTER DATABASE postgres SET "+name+" = '"+value+"'")
	}
	d := deploy(t, url+"&keepalives=1&gssencmode=prefer&application_name=backup")
	id, _ := d.generate(t, "東京")
	revokedID, revoked := d.generate(t, "Ω")
	before := modelstest.Value(d.Keys.Find(t.Context(), d.account.ID, id))(t)
	file := d.backUp(t)
	d.revoke(t, revokedID)
	modelstest.Exec(t, url, "CHECKPOINT")
	d.restore(t, file, backup.KeepUnrevokedKeys, 1)
	must(t, cluster.Halt())
	must(t, cluster.Resume())
	d.answers(t, "revoked", revoked, value.ErrKeyRevoked)
	if after := modelstest.Value(d.Keys.Find(t.Context(), d.account.ID, id))(t); after.Label != "東京" || !after.CreatedAt.Equal(before.CreatedAt) {
		t.Errorf("restored %+v, want %+v", after, before)
	}
	if restored := d.actions(t, record.ActionDatabaseRestored); len(restored) != 1 {
		t.Errorf("the crash undid the restore: %+v", restored)
	}
}

// A socket without a server is no lost database, whose keys would need a choice.
func TestRestoreSaysThatNoServerAnswers(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "backup")
	must(t, os.WriteFile(file, []byte("PGDMP"), 0o600))
	_, err := backup.Restore(t.Context(), "postgres:///portal?host="+t.TempDir(), file, backup.KeepUnrevokedKeys)
	if err == nil || !strings.Contains(err.Error(), "no PostgreSQL server answers") {
		t.Error(err)
	}
}

func TestRestoreOfALostDatabaseNeedsAChoice(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		d := deploy(t, url)
		_, secret := d.generate(t, "prod")
		file := d.backUp(t)
		needsAChoice := func(name, url string) {
			t.Helper()
			if _, err := backup.Restore(t.Context(), url, file, backup.KeepUnrevokedKeys); !errors.Is(err, backup.ErrNothingToCompare) {
				t.Errorf("%s: %v", name, err)
			}
		}

		d.url = empty(t, url)
		needsAChoice("without a database", d.url)
		d.restore(t, file, backup.KeepUnknownKeys, 0)
		deployment{Store: modelstest.Open(t, d.url, models.Options{})}.answers(t, "kept by choice", secret, nil)
		if path, ok := database.SQLitePath(d.url); ok {
			// Other users of the machine must not read it, whatever the mode of its
			// folder.
			for _, suffix := range []string{"", "-wal", "-shm"} {
				if info := modelstest.Value(os.Stat(path + suffix))(t); info.Mode() != 0o600 {
					t.Errorf("%s: mode %v, want 0600", info.Name(), info.Mode())
				}
			}
		}

		d.url = empty(t, url)
		d.Store = modelstest.Open(t, d.url, models.Options{}) // a schema without accounts
		needsAChoice("without accounts", d.url)
		d.restore(t, file, backup.RevokeAllKeys, 1)
		d.answers(t, "revoked by choice", secret, value.ErrKeyRevoked)
	})
}

// TestRevocationsDuringARestoreHold revokes keys one after the other while restores run.
func TestRevocationsDuringARestoreHold(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		d := deploy(t, url)
		secrets := map[uuid.UUID]string{}
		for range 40 {
			id, secret := d.generate(t, "prod")
			secrets[id] = secret
		}
		file := d.backUp(t)
		confirmed := make(chan []uuid.UUID)
		go func() {
			var revoked []uuid.UUID
			for id := range secrets {
				_, err := d.Keys.Revoke(t.Context(), d.account.ID, id, "", record.Operator())
				if err == nil || errors.Is(err, value.ErrKeyAlreadyRevoked) {
					revoked = append(revoked, id)
				} else if !errors.Is(err, value.ErrUnavailable) {
					t.Error(err)
				}
			}
			confirmed <- revoked
		}()
		for range 3 {
			if _, err := backup.Restore(t.Context(), url, file, backup.KeepUnrevokedKeys); err != nil {
				t.Error(err)
			}
		}
		for _, id := range <-confirmed {
			d.answers(t, "confirmed", secrets[id], value.ErrKeyRevoked)
		}
	})
}

// The isolation of the database must not hide a revocation that the restore has waited for.
func TestRestoreSeesARevocationThatItHasWaitedFor(t *testing.T) {
	t.Parallel()
	url := modelstest.PostgresURL(t)
	modelstest.Exec(t, url, "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = ''repeatable read''', current_database()); END $$")
	d := deploy(t, url)
	id, secret := d.generate(t, "prod")
	file := d.backUp(t)
	operator := modelstest.OpenDatabase(t, url)
	revocation := modelstest.Value(operator.BeginTx(t.Context(), nil))(t)
	modelstest.Value(revocation.ExecContext(t.Context(), "UPDATE api_keys SET revoked_at = now() WHERE id = ?", id))(t)
	restored := make(chan error, 1)
	go func() {
		_, err := backup.Restore(context.WithoutCancel(t.Context()), url, file, backup.KeepUnrevokedKeys)
		restored <- err
	}()
	d.awaitRestore(t)
	must(t, revocation.Commit())
	must(t, <-restored)
	d.answers(t, "revoked", secret, value.ErrKeyRevoked)
}

// awaitRestore returns when a restore waits for the lock of a table.
func (d deployment) awaitRestore(t *testing.T) {
	t.Helper()
	db := modelstest.OpenDatabase(t, d.url)
	modelstest.Eventually(t, "the restore waits", func() bool {
		var waiting int
		err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock' "+
			"AND database = (SELECT oid FROM pg_database WHERE datname = current_database())").Scan(&waiting)
		return err == nil && waiting > 0
	})
}

// Neither a restore nor the reader of two tables that it locks in the other order fails.
func TestARestoreAndAReaderDoNotDeadlock(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]bool{"compared": false, "lost": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := deploy(t, modelstest.PostgresURL(t))
			file := d.backUp(t)
			if lost {
				d.url = modelstest.PostgresURL(t) // without accounts
			}
			reader := modelstest.Value(modelstest.OpenDatabase(t, d.url).BeginTx(t.Context(), nil))(t)
			modelstest.Value(reader.ExecContext(t.Context(), "SELECT 1 FROM applied_migrations"))(t)
			restored := make(chan error, 1)
			go func() {
				_, err := backup.Restore(context.WithoutCancel(t.Context()), d.url, file, backup.RevokeAllKeys)
				restored <- err
			}()
			d.awaitRestore(t)
			modelstest.Value(reader.ExecContext(t.Context(), "SELECT 1 FROM accounts"))(t)
			must(t, reader.Commit())
			must(t, <-restored)
		})
	}
}

// A restore that gets no lock says who holds it, and changes nothing.
func TestTheWaitOfARestoreIsBounded(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]string{
		"another restore": fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", database.MigrationLock),
		"a reader":        "SELECT 1 FROM applied_migrations",
		"a vacuum":        "LOCK TABLE api_keys IN SHARE UPDATE EXCLUSIVE MODE",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := deploy(t, modelstest.PostgresURL(t))
			file := d.backUp(t)
			_, secret := d.generate(t, "after the backup")
			holder := modelstest.Value(modelstest.OpenDatabase(t, d.url+"&application_name=holder").BeginTx(t.Context(), nil))(t)
			t.Cleanup(func() { _ = holder.Rollback() })
			modelstest.Value(holder.ExecContext(t.Context(), hold))(t)
			err := backup.RestoreWithin(t.Context(), d.url, file, time.Second)
			if err == nil || !regexp.MustCompile(`waited 1s for a lock, held by process \d+ \(application "holder", since .+\): .*stop the instances`).MatchString(err.Error()) {
				t.Error(err)
			}
			d.answers(t, "after the backup", secret, nil)
		})
	}
}

// A key that is revoked in the current database stays revoked with each choice.
func TestKeepingUnknownKeysKeepsNoRevokedKey(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		d := deploy(t, url)
		revokedID, revoked := d.generate(t, "revoked")
		_, missing := d.generate(t, "missing")
		file := d.backUp(t)
		d.revoke(t, revokedID)
		d.exec(t, "DELETE FROM api_keys WHERE label = 'missing'")
		d.restore(t, file, backup.KeepUnknownKeys, 1)
		d.answers(t, "revoked", revoked, value.ErrKeyRevoked)
		d.answers(t, "missing", missing, nil)
		d.restore(t, file, backup.RevokeAllKeys, 2)
		d.answers(t, "missing", missing, value.ErrKeyRevoked)
	})
}

// changes are what customers and operators change after a backup. Each function prepares an account
// of its own, and returns the change and the check that a restore keeps it.
var changes = map[string]func(t *testing.T, d deployment) (change func(), check func(t *testing.T)){
	"restrictions": func(t *testing.T, d deployment) (change func(), check func(t *testing.T)) {
		id, _ := d.generate(t, "prod")
		expiry := time.Now().Add(value.Day).Truncate(time.Second)
		networks := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
		return func() {
				restrictions := keys.Restrictions{ExpiresAt: &expiry, Networks: networks, Limits: value.Limits{Calls: 5}}
				modelstest.Value(d.Keys.Restrict(t.Context(), d.account.ID, id, "", restrictions, "", record.Operator()))(t)
				// Nobody gets a second mail about the expiry.
				d.exec(t, "UPDATE api_keys SET expiry_warned_at = created_at WHERE id = ?", id)
			}, func(t *testing.T) {
				key := modelstest.Value(d.Keys.Find(t.Context(), d.account.ID, id))(t)
				if key.ExpiryWarnedAt == nil || key.ExpiresAt == nil || !key.ExpiresAt.Equal(expiry) {
					t.Errorf("the expiry: %+v", key)
				}
				if !slices.Equal(key.Networks, networks) || key.Limits.Calls != 5 {
					t.Errorf("the networks and limits: %+v", key)
				}
			}
	},
	"webhooks": func(t *testing.T, d deployment) (change func(), check func(t *testing.T)) {
		hooks := d.Webhooks
		var ids []uuid.UUID
		for _, name := range []string{"kept", "removed", "disabled"} {
			endpoint, _, err := hooks.Add(t.Context(), d.account.ID, "https://example.com/"+name, []record.EventGroup{record.GroupKeys}, record.Operator())
			modelstest.Must(t, err)
			ids = append(ids, endpoint.ID)
		}
		find := func(id uuid.UUID) (webhooks.Endpoint, error) { return hooks.Find(t.Context(), d.account.ID, id) }
		return func() {
				modelstest.Must(t, hooks.Remove(t.Context(), d.account.ID, ids[1], record.Operator()))
				modelstest.Must(t, hooks.Disable(t.Context(), d.account.ID, ids[2], record.Operator()))
				d.exec(t, "UPDATE webhook_endpoints SET event_groups = '[\"calls\"]' WHERE id = ?", ids[0])
			}, func(t *testing.T) {
				kept := modelstest.Value(find(ids[0]))(t)
				if !slices.Equal(kept.Groups, []record.EventGroup{record.GroupCalls}) {
					t.Errorf("the endpoint gets %q", kept.Groups)
				}
				if _, err := find(ids[1]); !errors.Is(err, value.ErrWebhookNotFound) {
					t.Errorf("the removed endpoint: %v", err)
				}
				if disabled := modelstest.Value(find(ids[2]))(t); kept.DisabledAt != nil || disabled.DisabledAt == nil {
					t.Errorf("%+v, %+v", kept, disabled)
				}
				deliveries := modelstest.Value(hooks.Deliveries(t.Context(), d.account.ID, ids[0]))(t)
				if len(deliveries) == 0 || slices.ContainsFunc(deliveries, func(d webhooks.Delivery) bool { return d.DueAt != nil }) {
					t.Errorf("deliveries of the backup wait: %+v", deliveries)
				}
			}
	},
	"paused agent, limits of the account": func(t *testing.T, d deployment) (change func(), check func(t *testing.T)) {
		agent := modelstest.Value(d.Agents.Create(t.Context(), d.account.ID, agents.NewAgent{Name: "Reception"}, record.Operator()))(t)
		return func() {
				modelstest.Value(d.Agents.SetPaused(t.Context(), d.account.ID, agent.ID, true, record.Operator()))(t)
				modelstest.Value(d.Accounts.SetLimits(t.Context(), d.account.ID, value.Limits{MinutesPerMonth: 7}, record.Operator()))(t)
			}, func(t *testing.T) {
				if agent := modelstest.Value(d.Agents.Find(t.Context(), d.account.ID, agent.ID))(t); agent.PausedAt == nil {
					t.Error("the agent is not paused")
				}
				if account := modelstest.Value(d.Accounts.Find(t.Context(), d.account.ID))(t); account.Limits.MinutesPerMonth != 7 {
					t.Errorf("limits: %s", account.Limits)
				}
			}
	},
	"disabled account": func(t *testing.T, d deployment) (change func(), check func(t *testing.T)) {
		_, secret := d.generate(t, "prod")
		return func() { must(t, d.Accounts.SetDisabled(t.Context(), d.account.ID, true, record.Operator())) },
			func(t *testing.T) { d.answers(t, "prod", secret, value.ErrAccountDisabled) }
	},
	// A widget token of a removed agent may still be valid.
	"removed agents": func(t *testing.T, d deployment) (change func(), check func(t *testing.T)) {
		ctx := t.Context()
		create := func(name string) agents.Agent {
			return modelstest.Value(d.Agents.Create(ctx, d.account.ID, agents.NewAgent{Name: name}, record.Operator()))(t)
		}
		remove := func(agent agents.Agent) {
			modelstest.Value(d.Agents.Remove(ctx, d.account.ID, agent.ID, record.Operator()))(t)
		}
		kept, removed, again, lost := create("kept"), create("removed"), create("again"), create("lost")
		return func() {
				remove(removed)
				remove(again)
				_, _, err := d.Agents.Put(ctx, d.account.ID, again.ID, "again", nil, record.Operator())
				must(t, err)
				// Nobody has removed it.
				d.exec(t, "DELETE FROM agents WHERE id = ?", lost.ID)
			}, func(t *testing.T) {
				for agent, want := range map[agents.Agent]error{kept: nil, removed: value.ErrAgentNotFound, again: nil, lost: nil} {
					if _, err := d.Agents.Find(ctx, d.account.ID, agent.ID); !errors.Is(err, want) {
						t.Errorf("%s: %v, want %v", agent.Name, err, want)
					}
				}
				recorded := d.actions(t, record.ActionAgentRemoved)
				if len(recorded) != 1 || *recorded[0].SubjectID != removed.ID || recorded[0].Label != "removed" {
					t.Errorf("recorded %+v", recorded)
				}
			}
	},
	// The current database may lack a user because the user was removed after the backup.
	"missing user": func(t *testing.T, d deployment) (change func(), check func(t *testing.T)) {
		return func() { d.exec(t, "DELETE FROM users WHERE account_id = ?", d.account.ID) }, func(t *testing.T) {
			if _, err := d.user(t, d.email, password); !errors.Is(err, value.ErrSignInDisabled) {
				t.Errorf("%v, want %v", err, value.ErrSignInDisabled)
			}
		}
	},
	"roles and removals": func(t *testing.T, d deployment) (change func(), check func(t *testing.T)) {
		demoted, removed := d.add(t, "bob@example.com"), d.add(t, "eve@example.com")
		link := modelstest.Value(d.SignIn.CreateLink(t.Context(), d.account.ID, demoted.ID, record.Operator()))(t)
		invitation, token, err := d.Invitations.Create(t.Context(), d.account.ID, "guest@example.com", people.RoleOwner, record.Operator())
		must(t, err)
		return func() {
				modelstest.Value(d.Invitations.Cancel(t.Context(), d.account.ID, invitation.ID, record.Operator()))(t)
				d.exec(t, "UPDATE users SET role = 'member' WHERE id = ?", demoted.ID)
				must(t, d.People.Remove(t.Context(), d.account.ID, removed.ID, record.Operator()))
			}, func(t *testing.T) {
				users, err := d.People.List(t.Context(), d.account.ID, value.Page{Limit: 10})
				if err != nil || len(users.Items) != 2 || users.Items[1].ID != demoted.ID || users.Items[1].Role != people.RoleMember {
					t.Errorf("users %+v, %v", users, err)
				}
				if _, err := d.SignIn.LinkUser(t.Context(), link.Token); !errors.Is(err, value.ErrLinkInvalid) {
					t.Errorf("the link: %v", err)
				}
				if _, err := d.Invitations.Find(t.Context(), token); !errors.Is(err, value.ErrInvitationInvalid) {
					t.Errorf("the cancelled invitation: %v", err)
				}
				d.add(t, "eve@example.com")
			}
	},
	"disconnected identity": func(t *testing.T, d deployment) (change func(), check func(t *testing.T)) {
		user := modelstest.Value(d.user(t, d.email, password))(t)
		signedIn := modelstest.Value(d.SignIn.Start(t.Context(), user, people.Client{}))(t)
		session := modelstest.Value(d.Sessions.Peek(t.Context(), signedIn.Token))(t)
		actor := record.UserActor(user.ID, "192.0.2.1")
		kept := people.Identity{Issuer: "https://kept.example", Subject: "ada"}
		ended := people.Identity{Issuer: "https://ended.example", Subject: "ada"}
		for _, identity := range []people.Identity{kept, ended} {
			must(t, d.Credentials.ConnectIdentity(t.Context(), session, identity, "Example", actor))
		}
		return func() {
				must(t, d.Credentials.DisconnectIdentity(t.Context(), session, ended.Issuer, "Example", actor))
			}, func(t *testing.T) {
				for identity, want := range map[people.Identity]error{kept: nil, ended: value.ErrIdentityNotFound} {
					if _, err := d.SignIn.WithIdentity(t.Context(), identity, false, people.Client{}); !errors.Is(err, want) {
						t.Errorf("%s: %v, want %v", identity.Issuer, err, want)
					}
				}
			}
	},
	// An old email may belong to an abandoned mailbox, which "Forgot password?" would send a
	// link to, or to another user by now.
	"emails": func(t *testing.T, d deployment) (change func(), check func(t *testing.T)) {
		for _, email := range []string{"carol@example.com", "dan@example.com", "dave@example.com"} {
			d.add(t, email)
		}
		return func() {
				d.exec(t, "DELETE FROM users WHERE email = 'dave@example.com'")
				for _, change := range [][2]string{
					{d.email, "new@example.com"}, {"carol@example.com", d.email}, {"dan@example.com", "dave@example.com"},
				} {
					hash := sha256.Sum256([]byte(change[1]))
					d.exec(t, "UPDATE users SET email = ?, email_hash = ? WHERE email = ?", change[1], hash[:], change[0])
				}
			}, func(t *testing.T) {
				for email, want := range map[string]error{
					"new@example.com": nil, d.email: value.ErrWrongCredentials, "dave@example.com": value.ErrWrongCredentials,
				} {
					if _, err := d.user(t, email, password); !errors.Is(err, want) {
						t.Errorf("%s: %v, want %v", email, err, want)
					}
				}
			}
	},
	"factors": func(t *testing.T, d deployment) (change func(), check func(t *testing.T)) {
		for _, insert := range []string{
			"passkeys (id, user_id, credential_id, credential, sign_count, name, created_at) SELECT id, id, email_hash, '{}', 7, 'Phone', created_at",
			"authenticators (user_id, secret, key_id, created_at, enabled_at, last_step) SELECT id, email_hash, substr(email_hash, 1, 8), created_at, created_at, 1",
			"recovery_codes (code_hash, user_id) SELECT email_hash, id",
		} {
			d.exec(t, "INSERT INTO "+insert+" FROM users WHERE account_id = ?", d.account.ID)
		}
		return func() {
				for _, change := range []string{
					"DELETE FROM recovery_codes", "UPDATE authenticators SET last_step = 2, refused_codes = 99", "UPDATE passkeys SET sign_count = 8",
				} {
					d.exec(t, change)
				}
				d.exec(t, "UPDATE accounts SET second_factor_required = TRUE WHERE id = ?", d.account.ID)
			}, func(t *testing.T) {
				db := modelstest.OpenDatabase(t, d.url)
				for query, want := range map[string]int{
					"SELECT count(*) FROM recovery_codes": 0, "SELECT last_step FROM authenticators": 2, "SELECT refused_codes FROM authenticators": 99, "SELECT sign_count FROM passkeys": 8,
					"SELECT count(*) FROM accounts WHERE second_factor_required": 1,
				} {
					var got int
					if err := db.QueryRowContext(t.Context(), query).Scan(&got); err != nil || got != want {
						t.Errorf("%s: %d, %v, want %d", query, got, err, want)
					}
				}
			}
	},
	// The access tokens of a restored rule end, also those of the rule that stays.
	"trust rule": func(t *testing.T, d deployment) (change func(), check func(t *testing.T)) {
		before := d.workload(t, trusted("main", "feature"))
		var after keys.Key
		return func() {
				after = modelstest.Value(d.Workload.SetTrust(t.Context(), d.account.ID, before.ID, "", trusted("main"), record.Operator()))(t)
			}, func(t *testing.T) {
				key := modelstest.Value(d.API.WorkloadKey(t.Context(), before.ID))(t)
				if !key.Trust.Equal(trusted("main")) {
					t.Errorf("the rule is %s", key.Trust)
				}
				for name, version := range map[string]uuid.UUID{"backup": *before.TrustVersion, "current": *after.TrustVersion} {
					claims := widget.AccessClaims{AccountID: d.account.ID, KeyID: key.ID, Rule: version}
					if _, err := d.API.AuthenticateAccessToken(t.Context(), claims, keys.Source{}); !errors.Is(err, value.ErrTrustChanged) {
						t.Errorf("an access token of the %s rule: %v", name, err)
					}
				}
			}
	},
	"exchanged token": func(t *testing.T, d deployment) (change func(), check func(t *testing.T)) {
		id := d.workload(t, trusted("main")).ID
		pins := map[string]string{"repository_id": "1"}
		exchange := func(t *testing.T) string {
			key := modelstest.Value(d.API.WorkloadKey(t.Context(), id))(t)
			return modelstest.Value(d.API.Exchange(t.Context(), key, keys.WorkloadToken{
				Issuer: key.Trust.Issuer, ID: "job 1", ExpiresAt: time.Now().Add(time.Hour), Pins: pins,
				Check: func(map[string]string) string { return "" },
			}))(t)
		}
		return func() {
				if reason := exchange(t); reason != "" {
					t.Error(reason)
				}
			}, func(t *testing.T) {
				if key := modelstest.Value(d.API.WorkloadKey(t.Context(), id))(t); !maps.Equal(key.TrustPins, pins) {
					t.Errorf("the pins are %v", key.TrustPins)
				}
				if reason := exchange(t); reason != "the token was used before" {
					t.Errorf("a replay: %q", reason)
				}
			}
	},
	"answered challenge": func(t *testing.T, d deployment) (change func(), check func(t *testing.T)) {
		return func() {
				// A purge on a slow machine keeps it.
				d.exec(t, "INSERT INTO used_challenges (challenge_hash, expires_at) SELECT email_hash, ? FROM users WHERE account_id = ?", time.Now().Add(time.Hour), d.account.ID)
			}, func(t *testing.T) {
				d.count(t, 1, "SELECT count(*) FROM used_challenges WHERE challenge_hash = (SELECT email_hash FROM users WHERE account_id = ?)", d.account.ID)
			}
	},
	// The backup is of the time when the key was about to be revoked.
	"used key": func(t *testing.T, d deployment) (change func(), check func(t *testing.T)) {
		id := d.workload(t, trusted("main")).ID
		long := time.Now().Add(-100 * value.Day)
		must(t, d.Unused.SetLifetime(t.Context(), d.account.ID, 30*value.Day, record.Operator()))
		d.exec(t, "UPDATE api_keys SET created_at = ? WHERE id = ?", long, id)
		d.exec(t, "UPDATE key_warnings SET policy = 0, check_at = ?0, since = ?0, ends_at = ?0, warnings = 2, mailed = 2 WHERE api_key_id = ?1", long, id)
		use := func(at time.Time) {
			d.exec(t, "INSERT INTO api_key_last_uses (api_key_id, used_at) VALUES (?, ?) ON CONFLICT (api_key_id) DO UPDATE SET used_at = excluded.used_at", id, at)
		}
		use(long)
		return func() { use(time.Now()) }, func(t *testing.T) {
			must(t, d.Unused.Revoke(t.Context()))
			key := modelstest.Value(d.Keys.Find(t.Context(), d.account.ID, id))(t)
			if key.RevokedAt != nil || key.LastUsedAt == nil || time.Since(*key.LastUsedAt) > time.Hour {
				t.Errorf("revoked %v, %q; last used %v", key.RevokedAt, key.RevocationReason, key.LastUsedAt)
			}
		}
	},
	"shorter lifetime of unused keys": unusedLifetimes(90*value.Day, 30*value.Day),
	"longer lifetime of unused keys":  unusedLifetimes(30*value.Day, 90*value.Day),
	"no lifetime of unused keys":      unusedLifetimes(30*value.Day, 0),
	// What the customer pays for and what limits count. A call that the portal has ended stays
	// so.
	"calls": func(t *testing.T, d deployment) (change func(), check func(t *testing.T)) {
		agent := modelstest.Value(d.Agents.Create(t.Context(), d.account.ID, agents.NewAgent{Name: "Reception"}, record.Operator()))(t)
		key, _ := d.generate(t, "prod")
		listed := time.Now().Add(-value.Day).Truncate(time.Second)
		call := func(room string) {
			d.exec(t, "INSERT INTO calls (id, account_id, agent_id, api_key_id, room_id, room_name, started_at, exact) VALUES (?, ?, ?, ?, ?, ?, ?, TRUE)",
				uuid.New(), d.account.ID, agent.ID, key, room, room, listed.Add(-time.Hour))
		}
		rooms := []string{"ended " + key.String(), "lost " + key.String(), "again " + key.String(), "new " + key.String()}
		for _, room := range rooms[:3] {
			call(room)
		}
		d.exec(t, "UPDATE call_rounds SET listed_at = ?", listed)
		d.exec(t, "INSERT INTO call_totals (subject_id, day, calls, seconds) VALUES (?, ?, 3, 60)", key, listed.Truncate(value.Day))
		return func() {
				d.exec(t, "UPDATE calls SET ended_at = ?, end_reason = 'ended_in_portal' WHERE room_id = ?", time.Now(), rooms[0])
				d.exec(t, "DELETE FROM calls WHERE room_id IN (?, ?)", rooms[1], rooms[2])
				call(rooms[2])
				call(rooms[3])
				d.exec(t, "UPDATE call_totals SET calls = 4, seconds = 10 WHERE subject_id = ?", key)
				d.exec(t, "INSERT INTO limit_notices (subject_id, month, percent) VALUES (?, ?, 80)", key, listed.Truncate(value.Day))
			}, func(t *testing.T) {
				d.count(t, 4, "SELECT count(*) FROM calls WHERE api_key_id = ?", key)
				d.count(t, 1, "SELECT count(*) FROM calls WHERE ended_at IS NOT NULL AND room_id = ?", rooms[0])
				// If it is not listed again, it has ended soon after the backup.
				d.count(t, 1, "SELECT count(*) FROM calls WHERE ended_at IS NULL AND unseen_since = ? AND room_id = ?", listed, rooms[1])
				d.count(t, 1, "SELECT count(*) FROM call_totals WHERE calls = 4 AND seconds = 60 AND subject_id = ?", key)
				d.count(t, 1, "SELECT count(*) FROM limit_notices WHERE subject_id = ?", key)
			}
	},
	"limits of mails and passwords": func(t *testing.T, d deployment) (change func(), check func(t *testing.T)) {
		return func() {
				d.exec(t, "INSERT INTO recent_mails (id, kind, account_id, email_hash, at) SELECT id, 'test', account_id, email_hash, created_at FROM users WHERE account_id = ?", d.account.ID)
				d.exec(t, "INSERT INTO sign_in_failures (id, subject, at) SELECT id, email_hash, created_at FROM users WHERE account_id = ?", d.account.ID)
			}, func(t *testing.T) {
				d.count(t, 1, "SELECT count(*) FROM recent_mails WHERE account_id = ?", d.account.ID)
				d.count(t, 1, "SELECT count(*) FROM sign_in_failures AS f JOIN users AS u ON u.id = f.id WHERE u.account_id = ?", d.account.ID)
			}
	},
	// The portal's own notes are about the servers that run, not about the state.
	"notes of the instances": func(t *testing.T, d deployment) (change func(), check func(t *testing.T)) {
		note := func(at time.Time, passwordsOff bool, secret string) {
			d.exec(t, "DELETE FROM last_start")
			d.exec(t, "DELETE FROM secret_check")
			d.exec(t, "INSERT INTO last_start (passwords_off) VALUES (?)", passwordsOff)
			d.exec(t, "INSERT INTO secret_check (current) VALUES (?)", []byte(secret))
			must(t, backup.Record(t.Context(), d.url, at))
		}
		now := time.Now().UTC().Truncate(time.Second)
		note(now.Add(-value.Day), true, "old")
		return func() { note(now, false, "new") }, func(t *testing.T) {
			d.count(t, 1, "SELECT count(*) FROM last_start WHERE NOT passwords_off")
			d.count(t, 1, "SELECT count(*) FROM secret_check WHERE current = ?", []byte("new"))
			d.count(t, 1, "SELECT count(*) FROM last_backup WHERE began_at = ?", now)
		}
	},
}

// unusedLifetimes is a change of the account's choice for unused keys. The stricter one stays.
func unusedLifetimes(before, after time.Duration) func(t *testing.T, d deployment) (change func(), check func(t *testing.T)) {
	return func(t *testing.T, d deployment) (change func(), check func(t *testing.T)) {
		set := func(lifetime time.Duration) {
			must(t, d.Unused.SetLifetime(t.Context(), d.account.ID, lifetime, record.Operator()))
		}
		set(before)
		return func() { set(after) }, func(t *testing.T) {
			account := modelstest.Value(d.Accounts.Find(t.Context(), d.account.ID))(t)
			if got := d.Unused.Lifetime(account); got != 30*value.Day {
				t.Errorf("%s", keys.UnusedText(got))
			}
		}
	}
}

// trusted returns a trust rule for jobs in these environments.
func trusted(environments ...string) workload.Rule {
	return workload.Rule{
		Provider: workload.GitHub, Issuer: "https://token.actions.githubusercontent.com", Audience: "https://portal.example.com",
		Claims: map[string][]string{"repository": {"acme/site"}, "environment": environments},
	}
}

func (d deployment) workload(t *testing.T, rule workload.Rule) keys.Key {
	t.Helper()
	key, _, err := d.Keys.Generate(t.Context(), d.account.ID, keys.NewKey{Label: "deploy", FormID: uuid.New(), Trust: &rule}, record.Operator())
	must(t, err)
	return key
}

// count checks the result of a query.
func (d deployment) count(t *testing.T, want int, query string, args ...any) {
	t.Helper()
	var got int
	if err := modelstest.OpenDatabase(t, d.url).NewRaw(query, args...).Scan(t.Context(), &got); err != nil || got != want {
		t.Errorf("%s: %d, %v, want %d", query, got, err, want)
	}
}

func (d deployment) add(t *testing.T, email string) people.User {
	t.Helper()
	return modelstest.Value(d.People.Add(t.Context(), d.account.ID, people.NewUser{Email: email, Role: people.RoleOwner}, record.Operator()))(t)
}

func TestRestoreKeepsLaterChanges(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		d := deploy(t, url)
		var apply []func()
		checks := map[string]func(t *testing.T){}
		for name, prepare := range changes {
			change, check := prepare(t, d.as(t, uuid.NewString()+"@example.com"))
			apply, checks[name] = append(apply, change), check
		}
		file := d.backUp(t)
		for _, change := range apply {
			change()
		}
		d.restore(t, file, backup.KeepUnrevokedKeys, 0)
		for name, check := range checks {
			t.Run(name, check)
		}
	})
}

// The state after the first restore does not have the agent, but the second backup does.
func TestRestoreOfTwoBackupsRevivesNoAgent(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		d := deploy(t, url)
		first := d.backUp(t)
		agent := modelstest.Value(d.Agents.Create(t.Context(), d.account.ID, agents.NewAgent{Name: "Reception"}, record.Operator()))(t)
		second := d.backUp(t)
		modelstest.Value(d.Agents.Remove(t.Context(), d.account.ID, agent.ID, record.Operator()))(t)
		d.restore(t, first, backup.KeepUnrevokedKeys, 0)
		for range 2 {
			d.restore(t, second, backup.KeepUnrevokedKeys, 0)
			if _, err := d.Agents.Find(t.Context(), d.account.ID, agent.ID); !errors.Is(err, value.ErrAgentNotFound) {
				t.Errorf("the agent: %v", err)
			}
		}
		if recorded := d.actions(t, record.ActionAgentRemoved); len(recorded) != 1 || recorded[0].Label != "Reception" {
			t.Errorf("recorded %+v", recorded)
		}
	})
}

func TestRestoreErasesAgain(t *testing.T) {
	modelstest.Databases(t, func(t *testing.T, url string) {
		ctx := t.Context()
		d := deploy(t, url)
		bob := modelstest.Value(d.People.Add(ctx, d.account.ID, people.NewUser{Email: "bob@example.com", Role: people.RoleMember}, record.Operator()))(t)
		modelstest.Value(d.SignIn.Start(ctx, bob, people.Client{}))(t)
		eve := d.as(t, "eve@example.com")
		before := d.backUp(t)
		must(t, d.Accounts.SetDisabled(ctx, eve.account.ID, true, record.Operator()))
		must(t, d.Erasures.BeginAccount(ctx, eve.account.ID))
		must(t, d.Erasures.BeginUser(ctx, d.account.ID, bob.ID, record.Operator()))
		must(t, d.Erasures.Finish(ctx))

		d.restore(t, before, backup.KeepUnrevokedKeys, 0)
		if _, err := d.Accounts.Find(ctx, eve.account.ID); !errors.Is(err, value.ErrAccountNotFound) {
			t.Errorf("the restore shows the erased account: %v", err)
		}
		if user := modelstest.Value(d.People.Find(ctx, d.account.ID, bob.ID))(t); user.Email != erasure.ErasedName || user.RemovedAt == nil || user.LastSignInAt != nil {
			t.Errorf("the restore shows the erased user: %+v", user)
		}
		must(t, d.Erasures.Finish(ctx))
		db := modelstest.OpenDatabase(t, url)
		for query, want := range map[string]int{
			"SELECT count(*) FROM accounts": 1,
			"SELECT count(*) FROM users":    2,
			"SELECT count(*) FROM activities WHERE label LIKE 'bob@%' OR account_id NOT IN (SELECT id FROM accounts)": 0,
			"SELECT count(*) FROM erasures WHERE finished_at IS NOT NULL AND emails = ''":                             2,
		} {
			var n int
			if must(t, db.NewRaw(query).Scan(ctx, &n)); n != want {
				t.Errorf("%s: %d, want %d", query, n, want)
			}
		}
		// A backup from after the erasures erases nothing.
		after := d.backUp(t)
		d.restore(t, after, backup.KeepUnrevokedKeys, 0)
		var unfinished int
		must(t, db.NewRaw("SELECT count(*) FROM erasures WHERE finished_at IS NULL").Scan(ctx, &unfinished))
		if unfinished != 0 {
			t.Errorf("%d erasures begin again", unfinished)
		}
	})
}

func TestFailedRestoreChangesNothing(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		d := deploy(t, url)
		file := d.backUp(t)
		content := modelstest.Value(os.ReadFile(file))(t)
		_, secret := d.generate(t, "after the backup")
		for name, damaged := range map[string][]byte{
			"empty": nil, "text": []byte("nothing of the kind"), "cut": content[:len(content)*9/10],
			"overwritten": append(slices.Clone(content[:len(content)/2]), bytes.Repeat([]byte{0x55}, len(content)-len(content)/2)...),
		} {
			path := filepath.Join(t.TempDir(), name)
			must(t, os.WriteFile(path, damaged, 0o600))
			if _, err := backup.Restore(t.Context(), url, path, backup.RevokeAllKeys); err == nil {
				t.Errorf("%s: the restore succeeded", name)
			}
			d.answers(t, name, secret, nil)
		}
		if restored := d.actions(t, record.ActionDatabaseRestored); len(restored) > 0 {
			t.Errorf("failed restores left activities: %+v", restored)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := backup.Restore(ctx, url, file, backup.RevokeAllKeys); err == nil {
			t.Error("a canceled restore succeeded")
		}
		d.answers(t, "after a canceled restore", secret, nil)
	})
}

// A restore updates the schema of the backup before it compares the calls, and their ends are not
// sent again.
func TestRestoreOfABackupWithTheFirstSchema(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		d := deployment{url: empty(t, url), account: people.Account{ID: uuid.New()}}
		modelstest.MigrateFirst(t, d.url)
		began := time.Now().UTC().Add(-time.Hour)
		d.exec(t, "INSERT INTO accounts (id, name, created_at) VALUES (?, 'Ada', ?)", d.account.ID, began)
		for room, ended := range map[string]*time.Time{"open": nil, "ended": &began} {
			d.exec(t, "INSERT INTO calls (id, account_id, agent_id, api_key_id, room_id, room_name, started_at, ended_at, end_reason, exact) "+
				"VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'unknown', TRUE)", uuid.New(), d.account.ID, uuid.New(), uuid.New(), room, room, began, ended)
		}
		files := []string{d.backUp(t)}
		if strings.HasPrefix(url, "postgres") {
			whole := filepath.Join(t.TempDir(), "whole")
			pgDump(t, d.url, "--format=custom", "--file="+whole)
			files = append(files, whole)
		}
		works := func(url string, file string, keys backup.RestoredKeys) {
			t.Helper()
			d.url = url
			d.restore(t, file, keys, 0)
			d.Store = modelstest.Open(t, url, models.Options{})
			for _, call := range modelstest.Value(d.Calls.List(t.Context(), calls.CallPage{Limit: 3, AccountID: d.account.ID}))(t) {
				if call.Final == call.Open() || call.Open() != (call.RoomName == "open") {
					t.Errorf("the %s call is %+v", call.RoomName, call)
				}
			}
			d.count(t, 2, "SELECT count(*) FROM calls")
			id, secret := d.generate(t, "new")
			d.revoke(t, id)
			d.answers(t, "new", secret, value.ErrKeyRevoked)
		}
		older := d.url
		for _, file := range files {
			works(older, file, backup.KeepUnrevokedKeys)
			works(empty(t, url), file, backup.KeepUnknownKeys)
		}
	})
}

// TestRestoreDropsNothingElse restores a database in which a view depends on one of the tables.
func TestRestoreDropsNothingElse(t *testing.T) {
	t.Parallel()
	d := deploy(t, modelstest.PostgresURL(t))
	file := d.backUp(t)
	_, secret := d.generate(t, "prod")
	d.exec(t, "CREATE VIEW labels AS SELECT label FROM api_keys")
	if _, err := backup.Restore(t.Context(), d.url, file, backup.KeepUnrevokedKeys); err == nil || !strings.Contains(err.Error(), "(view labels depends on table api_keys): save") {
		t.Errorf("want an error that names the view and what to do, got %v", err)
	}
	d.answers(t, "prod", secret, nil)
}

func TestBackupOverwritesNothing(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		d := deploy(t, url)
		file := d.backUp(t)
		if err := backup.Create(t.Context(), url, file); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%v", err)
		}
		left := filepath.Join(t.TempDir(), "backup")
		if err := backup.Create(t.Context(), empty(t, url), left); err == nil {
			t.Error("a database without a schema was backed up")
		}
		if entries, err := os.ReadDir(filepath.Dir(left)); err != nil || len(entries) > 0 {
			t.Errorf("a failed backup left %v: %v", entries, err)
		}
		if _, err := backup.Restore(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "portal.db"), "backup_test.go", backup.RevokeAllKeys); err == nil {
			t.Error("a text was restored")
		}
	})
}
