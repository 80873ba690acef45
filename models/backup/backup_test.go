package backup_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/backup"
	"portal/models/database"
	"portal/models/modelstest"
)

func TestMain(m *testing.M) { modelstest.Main(m) }

// deployment is a database with an account, and a store that stays open as in a running portal.
type deployment struct {
	*models.Store

	url     string
	account models.Account
}

func deploy(t *testing.T, url string) deployment {
	t.Helper()
	store := modelstest.Open(t, url, models.Options{})
	account, err := store.Accounts.Create(t.Context(), models.NewAccount{Name: "Ada", Email: "ada@example.com", Password: "correct horse battery"})
	if err != nil {
		t.Fatal(err)
	}
	return deployment{store, url, account}
}

// generate returns a key that the store has used, and therefore remembers.
func (d deployment) generate(t *testing.T, label string) (id uuid.UUID, secret string) {
	t.Helper()
	key, secret, err := d.Keys.Generate(t.Context(), d.account.ID, models.NewKey{Label: label, FormID: uuid.New()}, models.Operator())
	if err != nil {
		t.Fatal(err)
	}
	d.accepts(t, label, secret)
	return key.ID, secret
}

func (d deployment) accepts(t *testing.T, label, secret string) {
	t.Helper()
	if _, err := d.API.Authenticate(t.Context(), secret, models.Source{}); err != nil {
		t.Errorf("%s: %v", label, err)
	}
}

func (d deployment) refuses(t *testing.T, label, secret string, want error) {
	t.Helper()
	if _, err := d.API.Authenticate(t.Context(), secret, models.Source{}); !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", label, err, want)
	}
}

func (d deployment) revoke(t *testing.T, id uuid.UUID) {
	t.Helper()
	if _, err := d.Keys.Revoke(t.Context(), d.account.ID, id, models.Operator()); err != nil {
		t.Fatal(err)
	}
}

func (d deployment) backUp(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "backup")
	if err := backup.Create(t.Context(), d.url, file); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, want 0600: %v", info.Mode(), err)
	}
	return file
}

func (d deployment) actions(t *testing.T, action models.Action) []models.Activity {
	t.Helper()
	activities, err := d.Activity.List(t.Context(), d.account.ID, models.ActivityPage{Limit: 100, Actions: []models.Action{action}})
	if err != nil {
		t.Fatal(err)
	}
	return activities
}

// session signs the first user of the deployment in with the password and returns the session.
func (d deployment) session(t *testing.T) models.Session {
	t.Helper()
	user, err := d.SignIn.VerifyPassword(t.Context(), "ada@example.com", "correct horse battery", models.Client{})
	if err != nil {
		t.Fatal(err)
	}
	signedIn, err := d.SignIn.Start(t.Context(), user, models.WithPassword, models.Client{})
	if err != nil {
		t.Fatal(err)
	}
	session, err := d.Sessions.Peek(t.Context(), signedIn.Token)
	if err != nil {
		t.Fatal(err)
	}
	return session
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
		user, err := d.SignIn.VerifyPassword(t.Context(), "ada@example.com", "correct horse battery", models.Client{Address: "192.0.2.1"})
		if err != nil {
			t.Fatal(err)
		}
		file := d.backUp(t)

		_, later := d.generate(t, "generated after the backup")
		if _, err := other.API.Authenticate(t.Context(), later, models.Source{}); err != nil {
			t.Fatal(err)
		}
		session, err := d.Sessions.Create(t.Context(), user, models.Client{})
		if err != nil {
			t.Fatal(err)
		}
		d.revoke(t, revokedID)
		report := []models.LeakedText{models.NewLeakedText(leaked, "https://example.com/.env")}
		if _, err := d.Keys.ReportLeaked(t.Context(), report, models.LeakGitHub, ""); err != nil {
			t.Fatal(err)
		}
		if err := d.Credentials.ResetPassword(t.Context(), "ada@example.com", "another horse battery"); err != nil {
			t.Fatal(err)
		}

		count, err := backup.Restore(t.Context(), url, file, backup.KeepUnrevokedKeys)
		if err != nil || count != 2 {
			t.Fatalf("revoked %d, want 2: %v", count, err)
		}
		d.accepts(t, "kept", kept)
		d.refuses(t, "leaked", leaked, models.ErrKeyRevoked)
		if key, err := d.Keys.Find(t.Context(), d.account.ID, leakedID); err != nil || key.Leaked() != "Reported as leaked by GitHub: https://example.com/.env" {
			t.Errorf("leaked: %q, %v", key.Leaked(), err)
		}
		d.refuses(t, "revoked", revoked, models.ErrKeyRevoked)
		d.refuses(t, "later", later, models.ErrKeyUnknown)
		deployment{other, url, d.account}.refuses(t, "later, on another instance", later, models.ErrKeyUnknown)
		if _, err := d.Sessions.Find(t.Context(), session, models.Client{}); !errors.Is(err, models.ErrSessionNotFound) {
			t.Errorf("the session has not ended: %v", err)
		}
		if _, err := d.SignIn.VerifyPassword(t.Context(), "ada@example.com", "another horse battery", models.Client{Address: "192.0.2.1"}); err != nil {
			t.Errorf("the restore undid the change of password: %v", err)
		}
		restored := d.actions(t, models.ActionDatabaseRestored)
		if len(restored) != 1 || restored[0].ActorName != "Operator" {
			t.Errorf("want one activity of the operator, got %+v", restored)
		}
		if closed := d.actions(t, models.ActionKeyRevoked); len(closed) != 2 || closed[0].SubjectID == nil || *closed[0].SubjectID != revokedID && *closed[1].SubjectID != revokedID {
			t.Errorf("want the revocation recorded, got %+v", closed)
		}
		queued := modelstest.OpenDatabase(t, url).NewSelect().Table("hang_ups").Where("subject_id = ?", revokedID)
		if n, err := queued.Count(t.Context()); err != nil || n != 1 {
			t.Errorf("the end of the key's calls is queued %d times, want 1: %v", n, err)
		}
		// The restored database works.
		id, secret := d.generate(t, "new")
		d.revoke(t, id)
		d.refuses(t, "new", secret, models.ErrKeyRevoked)
	})
}

// Other users of the machine must not read a restored database, whatever the mode of its folder.
func TestRestoredSQLiteFilesArePrivate(t *testing.T) {
	t.Parallel()
	file := deploy(t, modelstest.SQLiteURL(t)).backUp(t)
	dir := filepath.Join(t.TempDir(), "data")
	modelstest.Must(t, os.Mkdir(dir, 0o755))
	url := "sqlite:" + filepath.Join(dir, "portal.db")
	if _, err := backup.Restore(t.Context(), url, file, backup.RevokeAllKeys); err != nil {
		t.Fatal(err)
	}
	modelstest.Open(t, url, models.Options{}) // with the -wal and -shm files
	files, err := os.ReadDir(dir)
	modelstest.Must(t, err)
	if len(files) != 3 {
		t.Errorf("want the database, -wal and -shm: %v", files)
	}
	for _, file := range files {
		if info, err := file.Info(); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: mode %v, want 0600: %v", file.Name(), info.Mode(), err)
		}
	}
}

func TestRestoreOfALostDatabaseNeedsAChoice(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		d := deploy(t, url)
		_, secret := d.generate(t, "prod")
		file := d.backUp(t)
		restore := func(url string, keys backup.RestoredKeys) (int, error) {
			return backup.Restore(t.Context(), url, file, keys)
		}

		target := empty(t, url)
		if _, err := restore(target, backup.KeepUnrevokedKeys); !errors.Is(err, backup.ErrNothingToCompare) {
			t.Errorf("without a database: %v", err)
		}
		if count, err := restore(target, backup.KeepUnknownKeys); err != nil || count != 0 {
			t.Fatalf("revoked %d: %v", count, err)
		}
		deployment{modelstest.Open(t, target, models.Options{}), target, d.account}.accepts(t, "kept by choice", secret)

		target = empty(t, url)
		fresh := modelstest.Open(t, target, models.Options{}) // a schema without accounts
		if _, err := restore(target, backup.KeepUnrevokedKeys); !errors.Is(err, backup.ErrNothingToCompare) {
			t.Errorf("without accounts: %v", err)
		}
		if count, err := restore(target, backup.RevokeAllKeys); err != nil || count != 1 {
			t.Fatalf("revoked %d: %v", count, err)
		}
		deployment{fresh, target, d.account}.refuses(t, "revoked by choice", secret, models.ErrKeyRevoked)
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
				_, err := d.Keys.Revoke(t.Context(), d.account.ID, id, models.Operator())
				if err == nil || errors.Is(err, models.ErrKeyAlreadyRevoked) {
					revoked = append(revoked, id)
				} else if !errors.Is(err, models.ErrUnavailable) {
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
			d.refuses(t, "confirmed", secrets[id], models.ErrKeyRevoked)
		}
	})
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
		modelstest.Exec(t, url, "DELETE FROM api_keys WHERE label = 'missing'")
		if count, err := backup.Restore(t.Context(), url, file, backup.KeepUnknownKeys); err != nil || count != 1 {
			t.Fatalf("revoked %d: %v", count, err)
		}
		d.refuses(t, "revoked", revoked, models.ErrKeyRevoked)
		d.accepts(t, "missing", missing)
		if count, err := backup.Restore(t.Context(), url, file, backup.RevokeAllKeys); err != nil || count != 2 {
			t.Fatalf("revoked %d: %v", count, err)
		}
		d.refuses(t, "missing", missing, models.ErrKeyRevoked)
	})
}

func TestRestrictionsSurviveARestore(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		d := deploy(t, url)
		id, _ := d.generate(t, "prod")
		file := d.backUp(t)
		expiry := time.Now().Add(models.Day)
		want, err := d.Keys.Restrict(t.Context(), d.account.ID, id, models.Restrictions{
			ExpiresAt: &expiry, Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
		}, "", models.Operator())
		if err != nil {
			t.Fatal(err)
		}
		// Nobody is told twice about the expiry.
		db := modelstest.OpenDatabase(t, url)
		if _, err := db.ExecContext(t.Context(), "UPDATE api_keys SET expiry_warned_at = created_at WHERE id = ?", id); err != nil {
			t.Fatal(err)
		}
		if _, err := backup.Restore(t.Context(), url, file, backup.KeepUnrevokedKeys); err != nil {
			t.Fatal(err)
		}
		key, err := d.Keys.Find(t.Context(), d.account.ID, id)
		if err != nil || key.ExpiryWarnedAt == nil || key.ExpiresAt == nil || !key.ExpiresAt.Equal(*want.ExpiresAt) || !slices.Equal(key.Networks, want.Networks) {
			t.Errorf("%+v, %v", key, err)
		}
		if n := modelstest.Value(db.NewSelect().Table("hang_ups").Where("activity_id = ?", id).Count(t.Context()))(t); n != 1 {
			t.Errorf("%d entries end the calls of the key", n)
		}
	})
}

func TestDisabledAccountStaysDisabledAfterRestore(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		d := deploy(t, url)
		_, secret := d.generate(t, "prod")
		file := d.backUp(t)
		modelstest.Exec(t, url, "UPDATE accounts SET disabled_at = '2026-01-02 03:04:05+00:00'")
		if _, err := backup.Restore(t.Context(), url, file, backup.KeepUnrevokedKeys); err != nil {
			t.Fatal(err)
		}
		d.refuses(t, "prod", secret, models.ErrAccountDisabled)
	})
}

// The current database may lack a user because the user was removed after the backup.
func TestRemovedUserCannotSignInAfterRestore(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		d := deploy(t, url)
		file := d.backUp(t)
		modelstest.Exec(t, url, "DELETE FROM users")
		if _, err := backup.Restore(t.Context(), url, file, backup.KeepUnrevokedKeys); err != nil {
			t.Fatal(err)
		}
		_, err := d.SignIn.VerifyPassword(t.Context(), "ada@example.com", "correct horse battery", models.Client{Address: "192.0.2.1"})
		if !errors.Is(err, models.ErrSignInDisabled) {
			t.Errorf("%v, want %v", err, models.ErrSignInDisabled)
		}
	})
}

func TestRestoreKeepsRolesAndRemovals(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		d := deploy(t, url)
		add := func(email string) models.User {
			user, err := d.People.Add(t.Context(), d.account.ID, models.NewUser{Email: email, Role: models.RoleOwner}, models.Operator())
			if err != nil {
				t.Fatal(err)
			}
			return user
		}
		demoted, removed := add("bob@example.com"), add("eve@example.com")
		link, _, err := d.SignIn.CreateLink(t.Context(), d.account.ID, demoted.ID, models.Operator())
		if err != nil {
			t.Fatal(err)
		}
		invitation, token, err := d.Invitations.Create(t.Context(), d.account.ID, models.NewInvitation{Email: "guest@example.com", Role: models.RoleOwner}, models.Operator())
		if err != nil {
			t.Fatal(err)
		}
		file := d.backUp(t)
		if _, err := d.Invitations.Cancel(t.Context(), d.account.ID, invitation.ID, models.Operator()); err != nil {
			t.Fatal(err)
		}
		modelstest.Exec(t, url, "UPDATE users SET role = 'member' WHERE email = 'bob@example.com'")
		if err := d.People.Remove(t.Context(), d.account.ID, removed.ID, models.Operator()); err != nil {
			t.Fatal(err)
		}
		if _, err := backup.Restore(t.Context(), url, file, backup.KeepUnrevokedKeys); err != nil {
			t.Fatal(err)
		}
		users, err := d.People.List(t.Context(), d.account.ID, models.Page{Limit: 10})
		if err != nil || len(users.Items) != 2 || users.Items[1].ID != demoted.ID || users.Items[1].Role != models.RoleMember {
			t.Errorf("users %+v, %v", users, err)
		}
		if _, err := d.SignIn.LinkUser(t.Context(), link); !errors.Is(err, models.ErrLinkInvalid) {
			t.Errorf("the link: %v", err)
		}
		if _, err := d.Invitations.Find(t.Context(), token); !errors.Is(err, models.ErrInvitationInvalid) {
			t.Errorf("the cancelled invitation: %v", err)
		}
		add("eve@example.com")
	})
}

func TestRestoreKeepsIdentitiesDisconnected(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		d := deploy(t, url)
		session := d.session(t)
		actor := models.UserActor(session.UserID, "192.0.2.1")
		kept := models.Identity{Issuer: "https://kept.example", Subject: "ada"}
		ended := models.Identity{Issuer: "https://ended.example", Subject: "ada"}
		for _, identity := range []models.Identity{kept, ended} {
			if err := d.Credentials.ConnectIdentity(t.Context(), session, identity, "Example", actor); err != nil {
				t.Fatal(err)
			}
		}
		file := d.backUp(t)
		if err := d.Credentials.DisconnectIdentity(t.Context(), session, ended.Issuer, "Example", actor); err != nil {
			t.Fatal(err)
		}
		if _, err := backup.Restore(t.Context(), url, file, backup.KeepUnrevokedKeys); err != nil {
			t.Fatal(err)
		}
		if _, err := d.SignIn.WithIdentity(t.Context(), kept, false, models.Client{}); err != nil {
			t.Errorf("the connected identity: %v", err)
		}
		if _, err := d.SignIn.WithIdentity(t.Context(), ended, false, models.Client{}); !errors.Is(err, models.ErrIdentityNotFound) {
			t.Errorf("the disconnected identity: %v", err)
		}
	})
}

// An old email may belong to an abandoned mailbox, which "Forgot password?" would send a link to,
// or to another user by now.
func TestRestoreBringsBackNoOldEmail(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		d := deploy(t, url)
		for _, email := range []string{"bob@example.com", "carol@example.com", "dave@example.com"} {
			if _, err := d.People.Add(t.Context(), d.account.ID, models.NewUser{Email: email, Role: models.RoleOwner}, models.Operator()); err != nil {
				t.Fatal(err)
			}
		}
		file := d.backUp(t)
		modelstest.Exec(t, url, "DELETE FROM users WHERE email = 'dave@example.com'")
		for _, change := range [][2]string{
			{"ada@example.com", "new@example.com"}, {"bob@example.com", "ada@example.com"}, {"carol@example.com", "dave@example.com"},
		} {
			hash := sha256.Sum256([]byte(change[1]))
			if _, err := modelstest.OpenDatabase(t, url).ExecContext(t.Context(),
				"UPDATE users SET email = ?, email_hash = ? WHERE email = ?", change[1], hash[:], change[0]); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := backup.Restore(t.Context(), url, file, backup.KeepUnrevokedKeys); err != nil {
			t.Fatal(err)
		}
		if _, err := d.SignIn.VerifyPassword(t.Context(), "new@example.com", "correct horse battery", models.Client{Address: "192.0.2.1"}); err != nil {
			t.Errorf("with the new email: %v", err)
		}
		for _, email := range []string{"ada@example.com", "dave@example.com"} {
			_, err := d.SignIn.VerifyPassword(t.Context(), email, "correct horse battery", models.Client{Address: "192.0.2.1"})
			if !errors.Is(err, models.ErrWrongCredentials) {
				t.Errorf("%s: %v, want %v", email, err, models.ErrWrongCredentials)
			}
		}
	})
}

func TestRestoreBringsBackNoUsedFactor(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		d := deploy(t, url)
		modelstest.Exec(t, url, "INSERT INTO passkeys (id, user_id, credential_id, credential, sign_count, name, created_at) SELECT id, id, email_hash, '{}', 7, 'Phone', created_at FROM users")
		modelstest.Exec(t, url, "INSERT INTO authenticators (user_id, secret, key_id, created_at, enabled_at, last_step) SELECT id, email_hash, substr(email_hash, 1, 8), created_at, created_at, 1 FROM users")
		modelstest.Exec(t, url, "INSERT INTO recovery_codes (code_hash, user_id) SELECT email_hash, id FROM users")
		file := d.backUp(t)
		for _, change := range []string{
			"DELETE FROM recovery_codes", "UPDATE authenticators SET last_step = 2, refused_codes = 99", "UPDATE passkeys SET sign_count = 8",
			"UPDATE accounts SET second_factor_required = TRUE",
		} {
			modelstest.Exec(t, url, change)
		}
		if _, err := backup.Restore(t.Context(), url, file, backup.KeepUnrevokedKeys); err != nil {
			t.Fatal(err)
		}
		db := modelstest.OpenDatabase(t, url)
		for query, want := range map[string]int{
			"SELECT count(*) FROM recovery_codes": 0, "SELECT last_step FROM authenticators": 2, "SELECT refused_codes FROM authenticators": 99, "SELECT sign_count FROM passkeys": 8,
			"SELECT count(*) FROM accounts WHERE second_factor_required": 1,
		} {
			var got int
			if err := db.QueryRowContext(t.Context(), query).Scan(&got); err != nil || got != want {
				t.Errorf("%s: %d, %v, want %d", query, got, err, want)
			}
		}
	})
}

func TestFailedRestoreChangesNothing(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		d := deploy(t, url)
		file := d.backUp(t)
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, secret := d.generate(t, "after the backup")
		for name, damaged := range map[string][]byte{
			"empty": nil, "text": []byte("nothing of the kind"), "cut": content[:len(content)*9/10],
			"overwritten": append(slices.Clone(content[:len(content)/2]), bytes.Repeat([]byte{0x55}, len(content)-len(content)/2)...),
		} {
			path := filepath.Join(t.TempDir(), name)
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := backup.Restore(t.Context(), url, path, backup.RevokeAllKeys); err == nil {
				t.Errorf("%s: the restore succeeded", name)
			}
			d.accepts(t, name, secret)
		}
		if restored := d.actions(t, models.ActionDatabaseRestored); len(restored) > 0 {
			t.Errorf("failed restores left activities: %+v", restored)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := backup.Restore(ctx, url, file, backup.RevokeAllKeys); err == nil {
			t.Error("a canceled restore succeeded")
		}
		d.accepts(t, "after a canceled restore", secret)
	})
}

// TestRestoreDropsNothingElse restores a database in which a view depends on one of the tables.
func TestRestoreDropsNothingElse(t *testing.T) {
	t.Parallel()
	d := deploy(t, modelstest.PostgresURL(t))
	file := d.backUp(t)
	_, secret := d.generate(t, "prod")
	modelstest.Exec(t, d.url, "CREATE VIEW labels AS SELECT label FROM api_keys")
	if _, err := backup.Restore(t.Context(), d.url, file, backup.KeepUnrevokedKeys); err == nil || !strings.Contains(err.Error(), "labels") {
		t.Errorf("want an error that names the view, got %v", err)
	}
	d.accepts(t, "prod", secret)
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
