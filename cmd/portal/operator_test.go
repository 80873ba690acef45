package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/modelstest"
)

const (
	testEmail    = "ada@example.com"
	testPassword = "correct horse battery"
)

// accountWithKey is an account, one of its keys and the value of the key.
type accountWithKey struct {
	models.Account

	key    models.Key
	secret string
}

func createAccount(t *testing.T, store *models.Store) accountWithKey {
	t.Helper()
	account, err := store.Accounts.Create(t.Context(), models.NewAccount{Name: "Ada", Email: testEmail, Password: testPassword})
	modelstest.Must(t, err)
	form := models.NewKey{Label: "prod", FormID: uuid.New()}
	key, secret, err := store.Keys.Generate(t.Context(), account.ID, form, models.Operator())
	modelstest.Must(t, err)
	return accountWithKey{account, key, secret}
}

func databaseEnv(url string) []string { return []string{"DATABASE_URL=" + url} }

func TestAccountCreatePrintsOnlyTheID(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		r := portal(t, databaseEnv(url), testPassword+"\n", "account", "create", "--name", "Ada", "--email", testEmail)
		id, err := uuid.Parse(strings.TrimSuffix(r.stdout, "\n"))
		if r.status != 0 || r.stderr != "" || err != nil {
			t.Fatalf("want an id and nothing else, got %+v", r)
		}
		store := modelstest.Open(t, url, models.Options{})
		user, err := store.SignIn.VerifyPassword(t.Context(), testEmail, testPassword, models.Client{Address: "192.0.2.1"})
		if err != nil || user.AccountID != id {
			t.Errorf("the password does not sign in to the account: %v", err)
		}
	})
}

func TestAccountCreateFails(t *testing.T) {
	t.Parallel()
	env := databaseEnv(modelstest.SQLiteURL(t))
	create := func(password, email string) result {
		return portal(t, env, password, "account", "create", "--name", "Ada", "--email", email)
	}
	create("", testEmail).failsWith(t, "password", "standard input")
	create("\n", testEmail).failsWith(t, "password", "standard input")
	create("short", testEmail).failsWith(t, "assword")
	create(testPassword, "ada").failsWith(t, "email")
	if r := create(testPassword, testEmail); r.status != 0 {
		t.Fatal(r.stderr)
	}
	create(testPassword, strings.ToUpper(testEmail)).failsWith(t, "already exists")
	portal(t, env, testPassword, "account", "create", "--name", "Ada").failsWith(t, "--email")
	portal(t, env, testPassword, "account", "create", "--password", "x").failsWith(t, "unknown flag --password")
}

func TestAgentCreatePrintsOnlyTheID(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		store := modelstest.Open(t, url, models.Options{})
		account := createAccount(t, store)
		env, id := databaseEnv(url), uuid.NewString()
		made := mustPortal(t, env, "", "agent", "create", "--account", testEmail, "--name", "Reception")
		if got := mustPortal(t, env, "", "agent", "create", "--account", testEmail, "--name", "Sales", "--id", id); got != id {
			t.Errorf("got id %s, asked for %s", got, id)
		}
		for _, want := range []string{made, id} {
			if _, err := store.Agents.Find(t.Context(), account.ID, uuid.MustParse(want)); err != nil {
				t.Errorf("agent %s: %v", want, err)
			}
		}
		portal(t, env, "", "agent", "create", "--account", testEmail, "--name", "Sales", "--id", id).failsWith(t, "already exists")
		portal(t, env, "", "agent", "create", "--account", "bob@example.com", "--name", "Sales").failsWith(t, "bob@example.com", "not found")
		portal(t, env, "", "agent", "create", "--account", testEmail, "--name", " ").failsWith(t, "name")
		portal(t, env, "", "agent", "create", "--account", testEmail, "--name", "Sales", "--id", "7").failsWith(t, "--id")
	})
}

func TestAgentCreateAcceptsTheSameIDsAsTheAPI(t *testing.T) {
	t.Parallel()
	url := modelstest.SQLiteURL(t)
	store := modelstest.Open(t, url, models.Options{})
	account := createAccount(t, store)
	create := func(id string) result {
		return portal(t, databaseEnv(url), "", "agent", "create", "--account", testEmail, "--name", "Reception", "--id="+id)
	}
	const id = "0198C2F4-7a31-7c6e-9d52-3f8be6a1c004"
	for _, other := range []string{
		"{" + id + "}", "urn:uuid:" + id, strings.ReplaceAll(id, "-", ""), " " + id, id + "0", "0198C2F4-7a31-7c6e-9d52-3f8be6a1c00g", "",
	} {
		create(other).failsWith(t, "--id", "36 characters")
	}
	create(uuid.Nil.String()).failsWith(t, "--id", "nil UUID")
	if agents, err := store.Agents.List(t.Context(), account.ID, models.Page{Limit: 10}); err != nil || len(agents.Items) > 0 {
		t.Errorf("agents were created: %v, error %v", agents, err)
	}
	if r := create(id); r.status != 0 || r.stdout != strings.ToLower(id)+"\n" {
		t.Errorf("want the id, got %+v", r)
	}
}

func TestKeyRevoke(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"its id", "the key"} {
		t.Run("by "+by, func(t *testing.T) {
			t.Parallel()
			modelstest.Databases(t, func(t *testing.T, url string) {
				store := modelstest.Open(t, url, models.Options{})
				account := createAccount(t, store)
				args, stdin := []string{"key", "revoke", "--id", account.key.ID.String()}, ""
				if by == "the key" {
					args, stdin = []string{"key", "revoke", "--key", "-"}, account.secret+"\n"
				}
				for _, outcome := range []string{"revoked", "was already revoked"} {
					r := portal(t, databaseEnv(url), stdin, args...)
					if r.status != 0 || r.stdout != account.key.ID.String()+"\n" || !strings.Contains(r.stderr, outcome) {
						t.Errorf("want the id and %q, got %+v", outcome, r)
					}
					if strings.Contains(r.stderr, account.secret) {
						t.Error("standard error contains the key")
					}
				}
				if _, err := store.API.Authenticate(context.Background(), account.secret); !errors.Is(err, models.ErrKeyRevoked) {
					t.Errorf("the key is not refused as revoked: %v", err)
				}
			})
		})
	}
}

func TestKeyRevokeIgnoresWhiteSpaceAroundTheKey(t *testing.T) {
	t.Parallel()
	url := modelstest.SQLiteURL(t)
	env, account := databaseEnv(url), createAccount(t, modelstest.Open(t, url, models.Options{}))
	revoke := func(pasted string) result { return portal(t, env, pasted, "key", "revoke", "--key", "-") }
	for _, pasted := range []string{" \t" + account.secret, account.secret + " \t", "\n\n  " + account.secret + " \r\n\n"} {
		if r := revoke(pasted); r.status != 0 || r.stdout != account.key.ID.String()+"\n" {
			t.Errorf("%q: %+v", strings.ReplaceAll(pasted, account.secret, "KEY"), r)
		}
	}
	half := len(account.secret) / 2
	revoke(account.secret[:half]+" "+account.secret[half:]).failsWith(t, "malformed")
	revoke(`"`+account.secret+`"`).failsWith(t, "nas_")
	revoke(" \t\n").failsWith(t, "standard input", "empty")
}

func TestKeyRevokeFails(t *testing.T) {
	t.Parallel()
	url := modelstest.SQLiteURL(t)
	env, account := databaseEnv(url), createAccount(t, modelstest.Open(t, url, models.Options{}))
	portal(t, env, "", "key", "revoke").failsWith(t, "--id", "--key")
	portal(t, env, "", "key", "revoke", "--id", uuid.NewString()).failsWith(t, "not found")
	portal(t, env, "", "key", "revoke", "--key", "-").failsWith(t, "standard input", "empty")
	portal(t, env, "pk_live_1234", "key", "revoke", "--key", "-").failsWith(t, "nas_")
	portal(t, env, account.secret[:20], "key", "revoke", "--key", "-").failsWith(t, "malformed")
	onTheLine := portal(t, env, "", "key", "revoke", "--key", account.secret)
	onTheLine.failsWith(t, "standard input")
	if strings.Contains(onTheLine.stderr, account.secret) {
		t.Error("standard error contains the key")
	}
	if _, err := modelstest.Open(t, url, models.Options{}).API.Authenticate(t.Context(), account.secret); err != nil {
		t.Errorf("the key no longer works: %v", err)
	}
}

func TestOperatorsNeedOnlyTheDatabase(t *testing.T) {
	t.Parallel()
	env := append(databaseEnv(modelstest.PostgresURL(t)), "PORTAL_WIDGET_TOKEN_TTL=forever", "PORTAL_ADDR=nowhere")
	mustPortal(t, env, testPassword, "account", "create", "--name", "Ada", "--email", testEmail)
	portal(t, databaseEnv("mysql://ada:hunter2@localhost/db"), "", "migrate").failsWith(t,
		"DATABASE_URL", "postgres://")
}

func TestADatabaseThatDoesNotAnswerIsReportedInOneLine(t *testing.T) {
	t.Parallel()
	r := portal(t, databaseEnv("postgres://ada:hunter2@127.0.0.1:1,127.0.0.1:2/portal"), "", "migrate")
	r.failsWith(t, "portal: open the database: the database does not answer: ")
	if strings.Contains(r.stderr, "hunter2") {
		t.Errorf("standard error contains the database password: %s", r.stderr)
	}
}

func TestMigrateCanBeRepeated(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{"sqlite": modelstest.EmptySQLiteURL(t), "postgres": modelstest.EmptyPostgresURL(t)} {
		for range 2 {
			if r := portal(t, databaseEnv(url), "", "migrate"); r.status != 0 || r.stdout != "" {
				t.Errorf("%s: %+v", name, r)
			}
		}
	}
}

func TestOnlyTheOwnerCanReadTheDatabaseDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "data")
	mustPortal(t, databaseEnv("sqlite:"+filepath.Join(dir, "portal.db")), "", "migrate")
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("want mode 0700, got %v, error %v", info.Mode(), err)
	}
}

func TestAnUnknownVariableOnlyWarns(t *testing.T) {
	t.Parallel()
	r := portal(t, append(databaseEnv(modelstest.SQLiteURL(t)), "PORTAL_SECRT=hunter2"), "", "migrate")
	if r.status != 0 || !strings.Contains(r.stderr, "PORTAL_SECRT") || strings.Contains(r.stderr, "hunter2") {
		t.Errorf("want a warning that names it, got %+v", r)
	}
}

func TestAgentLimitIsReported(t *testing.T) {
	t.Parallel()
	url := modelstest.SQLiteURL(t)
	account := createAccount(t, modelstest.Open(t, url, models.Options{}))
	agents := make([]models.Agent, models.MaxAgents)
	for i := range agents {
		agents[i] = models.Agent{ID: uuid.New(), AccountID: account.ID, Name: "Reception", CreatedAt: time.Now()}
	}
	modelstest.Value(modelstest.OpenDatabase(t, url).NewInsert().Model(&agents).Exec(t.Context()))(t)
	portal(t, databaseEnv(url), "", "agent", "create", "--account", testEmail, "--name", "One more").
		failsWith(t, "limit of 1000 agents")
}
