package main

import (
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

	otherPassword = "four words of another kind"
)

// accountWithKey is an account, one of its keys and the value of the key.
type accountWithKey struct {
	models.Account

	key     models.Key
	secret  string
	agentID uuid.UUID
	store   *models.Store
}

func createAccount(t *testing.T, store *models.Store) accountWithKey {
	t.Helper()
	account := models.NewAccount{Name: "Ada", Email: testEmail, Password: testPassword}
	a := accountWithKey{Account: modelstest.Value(store.Accounts.Create(t.Context(), account))(t), store: store}
	var err error
	a.key, a.secret, err = store.Keys.Generate(t.Context(), a.ID, models.NewKey{Label: "prod", FormID: uuid.New()}, models.Operator())
	modelstest.Must(t, err)
	agent := models.NewAgent{Name: "Reception"}
	a.agentID = modelstest.Value(store.Agents.Create(t.Context(), a.ID, agent, models.Operator()))(t).ID
	return a
}

// startWithAccount starts an instance on a database with an account.
func startWithAccount(t *testing.T, url string, env ...string) (*instance, accountWithKey) {
	t.Helper()
	account := createAccount(t, modelstest.Open(t, url, models.Options{}))
	return start(t, append(env, "DATABASE_URL="+url, testSecret, anyPort)), account
}

func databaseEnv(url string) []string { return []string{"DATABASE_URL=" + url} }

// succeeds checks that a command succeeded and printed only this. It returns standard error.
func (r result) succeeds(t *testing.T, stdout string) string {
	t.Helper()
	if r.status != 0 || r.stdout != stdout {
		t.Errorf("want %q, got %+v", stdout, r)
	}
	return r.stderr
}

func TestOperatorsCreateAccountsAndAgents(t *testing.T) {
	t.Parallel()
	url := modelstest.SQLiteURL(t)
	env, store := databaseEnv(url), modelstest.Open(t, url, models.Options{})
	account := mustPortal(t, env, testPassword+"\n", "account", "create", "--name", "Ada", "--email", testEmail)
	user := modelstest.Value(store.SignIn.VerifyPassword(t.Context(), testEmail, testPassword, models.Client{Address: "192.0.2.1"}))(t)
	if user.AccountID.String() != account {
		t.Errorf("the password signs in to %s, want %q", user.AccountID, account)
	}
	const id = "0198C2F4-7a31-7c6e-9d52-3f8be6a1c004"
	create := func(id string) result {
		return portal(t, env, "", "agent", "create", "--account", testEmail, "--name", "Sales", "--id="+id)
	}
	create(id).succeeds(t, strings.ToLower(id)+"\n")
	create(id).failsWith(t, "already exists")
	for _, other := range []string{ // the API accepts the same
		"{" + id + "}", "urn:uuid:" + id, strings.ReplaceAll(id, "-", ""), " " + id, id + "0", "0198C2F4-7a31-7c6e-9d52-3f8be6a1c00g", "",
	} {
		create(other).failsWith(t, "--id", "36 characters")
	}
	create(uuid.Nil.String()).failsWith(t, "--id", "nil UUID")
	made := mustPortal(t, env, "", "agent", "create", "--account", testEmail, "--name", "Reception")
	agents := modelstest.Value(store.Agents.List(t.Context(), user.AccountID, models.Page{Limit: 10}))(t)
	if len(agents.Items) != 2 || agents.Items[0].ID.String() != made {
		t.Errorf("the agents are %v", agents.Items)
	}
}

func TestKeyRevoke(t *testing.T) {
	t.Parallel()
	url := modelstest.SQLiteURL(t)
	env, store := databaseEnv(url), modelstest.Open(t, url, models.Options{})
	account := createAccount(t, store)
	id := account.key.ID.String() + "\n"
	half := len(account.secret) / 2
	for pasted, words := range map[string][]string{
		"": {"standard input", "empty"}, "\n": {"standard input", "empty"}, "pk_live_1234": {"nas_"},
		account.secret[:20]: {"malformed"}, account.secret[:half] + " " + account.secret[half:]: {"malformed"},
		`"` + account.secret + `"`: {"nas_"},
	} {
		portal(t, env, pasted, "key", "revoke", "--key", "-").failsWith(t, words...)
	}
	onTheLine := portal(t, env, "", "key", "revoke", "--key", account.secret)
	onTheLine.failsWith(t, "standard input")
	if modelstest.Value(store.API.Authenticate(t.Context(), account.secret))(t).AccountID != account.ID {
		t.Error("the key no longer works")
	}
	output := onTheLine.stderr
	for pasted, outcome := range map[string]string{account.secret + "\n": "revoked", "\n\n \t" + account.secret + " \t\r\n\n": "revoked"} {
		r := portal(t, env, pasted, "key", "revoke", "--key", "-")
		if output += r.succeeds(t, id); !strings.Contains(r.stderr, outcome) {
			t.Errorf("want %q, got %+v", outcome, r)
		}
	}
	output += portal(t, env, "", "key", "revoke", "--id", account.key.ID.String()).succeeds(t, id)
	if !strings.Contains(output, "was already revoked") || strings.Contains(output, account.secret) {
		t.Errorf("standard error is %s", output)
	}
	if _, err := store.API.Authenticate(t.Context(), account.secret); !errors.Is(err, models.ErrKeyRevoked) {
		t.Errorf("the key is not refused as revoked: %v", err)
	}
}

// session signs in and returns the session token.
func (a accountWithKey) session(t *testing.T) (token string) {
	t.Helper()
	user := modelstest.Value(a.store.SignIn.VerifyPassword(t.Context(), testEmail, testPassword, models.Client{Address: "192.0.2.1"}))(t)
	return modelstest.Value(a.store.Sessions.Create(t.Context(), user, models.Client{}))(t)
}

// expectOneLine checks that a command succeeded and printed one line to standard error, without a
// password.
func (a accountWithKey) expectOneLine(t *testing.T, r result) {
	t.Helper()
	if r.succeeds(t, ""); strings.Count(r.stderr, "\n") != 1 || strings.Contains(r.stderr, otherPassword) {
		t.Errorf("want one line on standard error, got %+v", r)
	}
}

func TestCommandsTakeEffectAtOnce(t *testing.T) {
	t.Parallel()
	url := modelstest.PostgresURL(t)
	env, store := databaseEnv(url), modelstest.Open(t, url, models.Options{})
	account := createAccount(t, store)
	for _, command := range [][]string{ // the second password line is the input of the last one
		{"user", "reset-second-factor", "--email", strings.ToUpper(testEmail)},
		{"account", "disable", "--account", testEmail},
		{"account", "reset-password", "--email", strings.ToUpper(testEmail)},
	} {
		token := account.session(t)
		for range 2 { // a repetition changes nothing
			account.expectOneLine(t, portal(t, env, otherPassword+"\n", command...))
		}
		if _, err := store.Sessions.Find(t.Context(), token, models.Client{}); !errors.Is(err, models.ErrSessionNotFound) {
			t.Errorf("%v: the session: %v", command, err)
		}
		if _, err := store.API.Authenticate(t.Context(), account.secret); command[1] == "disable" != errors.Is(err, models.ErrAccountDisabled) {
			t.Errorf("%v: the key: %v", command, err)
		}
		mustPortal(t, env, "", "account", "enable", "--account", account.ID.String())
	}
	client := models.Client{Address: "192.0.2.1"}
	if _, err := store.SignIn.VerifyPassword(t.Context(), testEmail, testPassword, client); !errors.Is(err, models.ErrWrongCredentials) {
		t.Errorf("the old password: %v", err)
	}
	modelstest.Value(store.SignIn.VerifyPassword(t.Context(), testEmail, otherPassword, client))(t)
	modelstest.Value(store.API.Authenticate(t.Context(), account.secret))(t)
}

func TestCommandsExplainInvalidInput(t *testing.T) {
	t.Parallel()
	url := modelstest.SQLiteURL(t)
	account := createAccount(t, modelstest.Open(t, url, models.Options{}))
	agents := make([]models.Agent, models.MaxAgents-1)
	for i := range agents {
		agents[i] = models.Agent{ID: uuid.New(), AccountID: account.ID, Name: "Reception", CreatedAt: time.Now()}
	}
	modelstest.Value(modelstest.OpenDatabase(t, url).NewInsert().Model(&agents).Exec(t.Context()))(t)
	const (
		createAccount = "account create --name Ada --email "
		addUser       = "user add --account " + testEmail + " --role member --email "
		resetPassword = "account reset-password --email "
	)
	for _, test := range []struct {
		password, command, words string
	}{
		{"", createAccount + "bob@example.com", "password|standard input"},
		{"short", createAccount + "bob@example.com", "assword"},
		{otherPassword, createAccount + "bob", "email"},
		{otherPassword, createAccount + strings.ToUpper(testEmail), "already exists"},
		{otherPassword, "account create --name Ada", "--email"},
		{otherPassword, "account create --password x", "unknown flag --password"},
		{"", addUser + "bob@example.com", "password|standard input"},
		{otherPassword, addUser + strings.ToUpper(testEmail), "already exists"},
		{otherPassword, "user add --account " + testEmail + " --email bob@example.com --role admin", "--role|owner"},
		{otherPassword, "user add --email bob@example.com", "--account"},
		{otherPassword, "user add --email bob@example.com --account nobody@example.com", "nobody@example.com|not found|portal account list"},
		{"", "user disable", "--email"},
		{"", "user disable --email nobody@example.com", "not found|portal user list"},
		{"", "user enable --email nobody@example.com", "not found|portal user list"},
		{"", "user reset-second-factor --email nobody@example.com", "nobody@example.com|not found|portal user list"},
		{"", "user remove", "portal --help"},
		{"\n", resetPassword + testEmail, "password|standard input"},
		{"short\n", resetPassword + testEmail, "at least 12"},
		{otherPassword, resetPassword + "nobody@example.com", "nobody@example.com|not found"},
		{otherPassword, "account reset-password", "--email"},
		{"", "account disable", "--account"},
		{"", "account disable --account nobody@example.com", "nobody@example.com|not found|portal account list"},
		{"", "agent create --name Sales --account nobody@example.com", "nobody@example.com|not found"},
		{"", "agent create --name  --account " + testEmail, "name"},
		{"", "agent create --name Sales --account " + testEmail, "limit of 1000 agents"},
		{"", "agent list", "--account"},
		{"", "key list --account nobody@example.com", "not found"},
		{"", "key revoke", "--id|--key"},
		{"", "key revoke --id " + uuid.NewString(), "not found"},
	} {
		r := portal(t, databaseEnv(url), test.password, strings.Split(test.command, " ")...)
		r.failsWith(t, strings.Split(test.words, "|")...)
		if secret := strings.TrimSpace(test.password); secret != "" && strings.Contains(r.stderr, secret) {
			t.Errorf("%s: standard error contains the password: %s", test.command, r.stderr)
		}
	}
	if account.session(t) == "" {
		t.Error("the password was changed")
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
