package main

import (
	"errors"
	"io/fs"
	"maps"
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
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

const (
	testEmail    = "ada@example.com"
	testPassword = "correct horse battery"

	otherPassword = "four words of another kind"
)

// accountWithKey is an account, one of its keys and the value of the key.
type accountWithKey struct {
	people.Account

	key     keys.Key
	secret  string
	agentID uuid.UUID
	store   *models.Store
}

func createAccount(t *testing.T, store *models.Store) accountWithKey {
	t.Helper()
	account := people.NewAccount{Name: "Ada", Email: testEmail, Password: testPassword}
	a := accountWithKey{Account: modelstest.Value(store.Accounts.Create(t.Context(), account))(t), store: store}
	var err error
	a.key, a.secret, err = store.Keys.Generate(t.Context(), a.ID, keys.NewKey{Label: "prod", FormID: uuid.New()}, record.Operator())
	modelstest.Must(t, err)
	agent := agents.NewAgent{Name: "Reception"}
	a.agentID = modelstest.Value(store.Agents.Create(t.Context(), a.ID, agent, record.Operator()))(t).ID
	return a
}

// startWithAccount starts an instance on a database with an account.
func startWithAccount(t *testing.T, url string, env ...string) (*instance, accountWithKey) {
	t.Helper()
	account := createAccount(t, modelstest.Open(t, url, models.Options{}))
	return start(t, append(env, "DATABASE_URL="+url, testSecret, anyPort)), account
}

func databaseEnv(url string) []string { return []string{"DATABASE_URL=" + url} }

// succeeds checks that a command succeeded and printed only this, and returns standard error.
func (r result) succeeds(t *testing.T, stdout string) string {
	t.Helper()
	if r.status != 0 || r.stdout != stdout {
		t.Errorf("want %q, got %+v", stdout, r)
	}
	return r.stderr
}

// They need no configuration but the database.
func TestOperatorsCreateAccountsAndAgents(t *testing.T) {
	t.Parallel()
	url := modelstest.SQLiteURL(t)
	env, store := append(databaseEnv(url), "PORTAL_WIDGET_TOKEN_TTL=forever", "PORTAL_ADDR=nowhere"), modelstest.Open(t, url, models.Options{})
	account := mustPortal(t, env, testPassword+"\n", "account", "create", "--name", "Ada", "--email", testEmail)
	user := modelstest.Value(store.SignIn.VerifyPassword(t.Context(), testEmail, testPassword, people.Client{Address: "192.0.2.1"}))(t)
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
		"{" + id + "}", "urn:uuid:" + id, strings.ReplaceAll(id, "-", ""), " " + id, id + "0", "0198C2F4-7a31-7c6e-9d52-3f8be6a1c00g",
	} {
		create(other).failsWith(t, "--id", "36 characters")
	}
	create(uuid.Nil.String()).failsWith(t, "--id", "nil UUID")
	made := portal(t, append(env, "PORTAL_SECRT=hunter2"), "", "agent", "create", "--account", testEmail, "--name", "Reception")
	agents := modelstest.Value(store.Agents.List(t.Context(), user.AccountID, value.Page{Limit: 10}))(t)
	if len(agents.Items) != 2 || agents.Items[0].ID.String()+"\n" != made.stdout {
		t.Errorf("the agents are %v", agents.Items)
	}
	if !strings.Contains(made.stderr, "PORTAL_SECRT") || strings.Contains(made.stderr, "hunter2") {
		t.Errorf("want a warning that names the unknown variable, got %+v", made)
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
	if modelstest.Value(store.API.Authenticate(t.Context(), account.secret, keys.Source{}))(t).AccountID != account.ID {
		t.Error("the key no longer works")
	}
	output := onTheLine.stderr
	for pasted, outcome := range map[string]string{account.secret + "\n": "revoked", "\n\n \t" + account.secret + " \t\r\n\n": "revoked"} {
		r := portal(t, env, pasted, "key", "revoke", "--key", "-")
		if output += r.succeeds(t, id); !strings.Contains(r.stderr, outcome) {
			t.Errorf("want %q, got %+v", outcome, r)
		}
	}
	output += portal(t, env, "", "key", "revoke", "--id", account.key.ID.String(), "--reason", "On a slide").succeeds(t, id)
	if !strings.Contains(output, "was already revoked") || strings.Contains(output, account.secret) {
		t.Errorf("standard error is %s", output)
	}
	if _, err := store.API.Authenticate(t.Context(), account.secret, keys.Source{}); !errors.Is(err, value.ErrKeyRevoked) {
		t.Errorf("the key is not refused as revoked: %v", err)
	}
	expired, _, err := store.Keys.Generate(t.Context(), account.ID, keys.NewKey{Label: "expired", FormID: uuid.New()}, record.Operator())
	modelstest.Must(t, err)
	modelstest.Exec(t, url, "UPDATE api_keys SET expires_at = '2026-01-01 00:00:00+00:00' WHERE id = '"+expired.ID.String()+"'")
	if r := portal(t, env, "", "key", "revoke", "--id", expired.ID.String()); !strings.Contains(r.succeeds(t, expired.ID.String()+"\n"), "expired at 2026-01-01T00:00:00Z") {
		t.Errorf("standard error is %s", r.stderr)
	}
}

// session signs in and returns the session token.
func (a accountWithKey) session(t *testing.T) (token string) {
	t.Helper()
	user := modelstest.Value(a.store.SignIn.VerifyPassword(t.Context(), testEmail, testPassword, people.Client{Address: "192.0.2.1"}))(t)
	return modelstest.Value(a.store.SignIn.Start(t.Context(), user, people.Client{}))(t).Token
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
		if _, err := store.Sessions.Find(t.Context(), token, people.Client{}); !errors.Is(err, value.ErrSessionNotFound) {
			t.Errorf("%v: the session: %v", command, err)
		}
		if _, err := store.API.Authenticate(t.Context(), account.secret, keys.Source{}); command[1] == "disable" != errors.Is(err, value.ErrAccountDisabled) {
			t.Errorf("%v: the key: %v", command, err)
		}
		mustPortal(t, env, "", "account", "enable", "--account", account.ID.String())
	}
	client := people.Client{Address: "192.0.2.1"}
	if _, err := store.SignIn.VerifyPassword(t.Context(), testEmail, testPassword, client); !errors.Is(err, value.ErrWrongCredentials) {
		t.Errorf("the old password: %v", err)
	}
	modelstest.Value(store.SignIn.VerifyPassword(t.Context(), testEmail, otherPassword, client))(t)
	modelstest.Value(store.API.Authenticate(t.Context(), account.secret, keys.Source{}))(t)
}

// A password is what people can type, whichever program has written the file that it comes from.
func TestPasswordsOnStandardInput(t *testing.T) {
	for _, input := range []string{" a b ", " a b \n", " a b \r\n", " a b \n\n", "\ufeff a b \r\n"} {
		if password, err := readPassword(t.Context(), terminal{in: strings.NewReader(input)}); password != " a b " {
			t.Errorf("%q is %q, %v", input, password, err)
		}
	}
	if key, err := readKey(t.Context(), terminal{in: strings.NewReader("\ufeffnas_x\r\n")}); key != "nas_x" {
		t.Errorf("the key is %q, %v", key, err)
	}
}

// A user whose access the provider decides needs something else than a password.
func TestResetPasswordOfAUserOfTheProvider(t *testing.T) {
	t.Parallel()
	url := modelstest.SQLiteURL(t)
	createAccount(t, modelstest.Open(t, url, models.Options{}))
	env := append(databaseEnv(url), "PORTAL_OIDC_ISSUER=https://login.example.com")
	reset := func(env []string) string {
		return portal(t, env, otherPassword, "account", "reset-password", "--email", testEmail).succeeds(t, "")
	}
	const hint = "signs in with https://login.example.com alone"
	claims := append(slices.Clone(env), "PORTAL_OIDC_ACCOUNTS=claims")
	if output := reset(claims); strings.Contains(output, hint) {
		t.Errorf("a user without an identity: %s", output)
	}
	modelstest.Exec(t, url, "INSERT INTO identities (issuer, subject, user_id, email, created_at) "+
		"SELECT 'https://login.example.com', 'ada', id, email, created_at FROM users")
	if output := reset(env); strings.Contains(output, hint) {
		t.Errorf("without claims: %s", output)
	}
	if output := reset(claims); !strings.Contains(output, hint) || !strings.Contains(output, "operator API") {
		t.Errorf("with claims: %s", output)
	}
}

func TestOperatorsRenameAndRemove(t *testing.T) {
	t.Parallel()
	url := modelstest.SQLiteURL(t)
	env, store := databaseEnv(url), modelstest.Open(t, url, models.Options{})
	account := createAccount(t, store)
	mustPortal(t, env, otherPassword, "user", "add", "--account", testEmail, "--email", "bob@example.com")
	agent := account.agentID.String()
	for _, step := range []struct{ command, says string }{
		{"account rename --name Acme --account " + testEmail, `account "Ada" is renamed to "Acme"`},
		{"agent rename --name Lobby --account " + testEmail + " --id " + agent, `agent "Reception" is renamed to "Lobby"`},
		{"agent pause --account " + testEmail + " --id " + agent, `agent "Lobby" is paused: its widget tokens are refused, and its calls end`},
		{"agent pause --account " + testEmail + " --id " + agent, `agent "Lobby" is paused`}, // a repetition changes nothing
		{"agent resume --account " + testEmail + " --id " + agent, `agent "Lobby" is resumed`},
		{"agent remove --account " + testEmail + " --id " + agent, `agent "Lobby" is removed`},
		{"user change-email --new-email eve@example.com --email BOB@example.com", "the email of BOB@example.com is now eve@example.com"},
		{"user set-role --role owner --email EVE@example.com", "the role of eve@example.com is owner"},
		{"user remove --email " + testEmail, testEmail + " is removed"},
	} {
		r := portal(t, env, "", strings.Split(step.command, " ")...)
		if account.expectOneLine(t, r); !strings.Contains(r.stderr, step.says) {
			t.Errorf("%s: want %q, got %q", step.command, step.says, r.stderr)
		}
	}
	if found := modelstest.Value(store.Accounts.Find(t.Context(), account.ID))(t); found.Name != "Acme" {
		t.Errorf("the account is %+v", found)
	}
	agents := modelstest.Value(store.Agents.List(t.Context(), account.ID, value.Page{Limit: 10}))(t)
	members := modelstest.Value(store.People.List(t.Context(), account.ID, value.Page{Limit: 10}))(t)
	if len(agents.Items) != 0 || len(members.Items) != 1 || members.Items[0].Email != "eve@example.com" || members.Items[0].Role != people.RoleOwner {
		t.Errorf("agents %v, users %v", agents.Items, members.Items)
	}
	var actions []record.Action
	for _, activity := range modelstest.Value(store.Activity.List(t.Context(), account.ID, record.ActivityPage{Limit: 8}))(t) {
		if actions = append(actions, activity.Action); activity.ActorKind != record.ActorOperator {
			t.Errorf("%s was recorded for %s", activity.Action, activity.ActorName)
		}
	}
	slices.Reverse(actions)
	if want := []record.Action{
		record.ActionAccountRenamed, record.ActionAgentRenamed, record.ActionAgentPaused, record.ActionAgentResumed, record.ActionAgentRemoved,
		record.ActionEmailChanged, record.ActionUserMadeOwner, record.ActionUserRemoved,
	}; !slices.Equal(actions, want) {
		t.Errorf("recorded %v, want %v", actions, want)
	}
}

// The environment of a command has only the database.
func TestCommandsKnowTheSettingsOfThePortal(t *testing.T) {
	t.Parallel()
	url := modelstest.SQLiteURL(t)
	env := databaseEnv(url)
	i, account := startWithAccount(t, url, "PORTAL_PASSWORD_SIGN_IN=off", "PORTAL_OPERATOR_TOKEN="+strings.Repeat("operator-token", 3))
	added := portal(t, env, otherPassword, "user", "add", "--account", testEmail, "--email", "bob@example.com", "--role", "owner")
	if added.status != 0 || !strings.Contains(added.stderr, "nobody can sign in with this password") {
		t.Errorf("%+v", added)
	}
	modelstest.Exec(t, url, "INSERT INTO identities (issuer, subject, user_id, email, created_at) "+
		"SELECT 'https://login.example.com', 'ada', id, '', created_at FROM users WHERE email = '"+testEmail+"'")
	// The other owner has only a password, with which nobody signs in.
	portal(t, env, "", "user", "remove", "--email", testEmail).failsWith(t, "last owner")
	i.stop(t)
	start(t, []string{"DATABASE_URL=" + url, testSecret, anyPort})
	mustPortal(t, env, "", "key", "revoke", "--id", account.key.ID.String())
	if n, err := account.store.Outbox.Waiting(t.Context()); err != nil || n != 2 {
		t.Errorf("%d emails about the revocation wait, want 2, %v", n, err)
	}
	mustPortal(t, env, "", "user", "remove", "--email", testEmail)
}

func TestOperatorsErase(t *testing.T) {
	t.Parallel()
	url := modelstest.SQLiteURL(t)
	env := databaseEnv(url)
	account := createAccount(t, modelstest.Open(t, url, models.Options{}))
	bob := mustPortal(t, env, otherPassword, "user", "add", "--account", testEmail, "--email", "bob@example.com")
	mustPortal(t, env, "", "user", "erase", "--email", "BOB@example.com")
	erasedBefore := func(name, id string, command ...string) {
		t.Helper()
		r := portal(t, env, "", append(command, id)...)
		if r.succeeds(t, ""); !regexp.MustCompile(`^portal: ` + name + ` ` + id + ` was erased at 20\d\d-\d\d-\d\dT[\d:]+Z\n$`).MatchString(r.stderr) {
			t.Errorf("%q: %q", command, r.stderr)
		}
	}
	erasedBefore("user", bob, "user", "erase", "--email")
	portal(t, env, "", "user", "erase", "--email", "bob@example.com").failsWith(t, "not found", "erased user", "id")
	backup := filepath.Join(t.TempDir(), "portal.backup")
	mustPortal(t, env, "", "backup", backup)
	mustPortal(t, env, "", "account", "disable", "--account", testEmail)
	mustPortal(t, env, "", "account", "erase", "--account", account.ID.String(), "--name", "Ada")
	if left := mustPortal(t, env, "", "account", "list", "--json"); left != "[]" {
		t.Errorf("left %s", left)
	}
	erasedBefore("account", account.ID.String(), "account", "erase", "--name", "Ada", "--account")
	portal(t, env, "", "account", "erase", "--name", "Ada", "--account", uuid.NewString()).failsWith(t, "not found")
	// An erasure that was interrupted is finished.
	modelstest.Exec(t, url, "UPDATE erasures SET finished_at = NULL")
	erasedBefore("account", account.ID.String(), "account", "erase", "--name", "Ada", "--account")
	unfinished := modelstest.OpenDatabase(t, url).NewSelect().Table("erasures").Where("finished_at IS NULL")
	if n := modelstest.Value(unfinished.Count(t.Context()))(t); n != 0 {
		t.Errorf("%d erasures are not finished", n)
	}
	mustPortal(t, env, "", "restore", backup)
	if left := mustPortal(t, env, "", "account", "list", "--json"); left != "[]" {
		t.Errorf("the restore left %s", left)
	}
}

func TestCommandsExplainInvalidInput(t *testing.T) {
	t.Parallel()
	url := modelstest.SQLiteURL(t)
	account := createAccount(t, modelstest.Open(t, url, models.Options{}))
	list := make([]agents.Agent, value.MaxAgents-1)
	for i := range list {
		list[i] = agents.Agent{ID: uuid.New(), AccountID: account.ID, Name: "Reception", CreatedAt: time.Now()}
	}
	modelstest.Value(modelstest.OpenDatabase(t, url).NewInsert().Model(&list).Exec(t.Context()))(t)
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
		{otherPassword, createAccount + "bob", "portal: --email: Enter an email"},
		{otherPassword, "account create --email bob@example.com --name ", "portal: --name: the value is empty"},
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
		{"", "user change-email --email nobody@example.com --new-email new@example.com", "nobody@example.com|not found|portal user list"},
		{"", "user change-email --email " + testEmail + " --new-email new", "portal: --new-email: Enter an email"},
		{"", "user reset-second-factor --email nobody@example.com", "nobody@example.com|not found|portal user list"},
		{"", "user delete", "unexpected argument delete; run portal user --help"},
		{"", "user remov", `did you mean "remove"? Run portal user --help`},
		{"", "user remove --email nobody@example.com", "nobody@example.com|not found|portal user list"},
		{"", "user remove --email " + testEmail, "last owner|portal user add --role owner"},
		{"", "user set-role --role member --email " + testEmail, "last owner|portal user add --role owner"},
		{"", "user disable --email " + testEmail, "last owner|portal user add --role owner"},
		{"", "user set-role --email " + testEmail, "--role"},
		{"", "account rename --name  --account " + testEmail, "portal: --name: the value is empty"},
		{"", "agent rename --name Lobby --account " + testEmail + " --id " + account.ID.String(), "not found|portal agent list --account " + testEmail},
		{"", "agent remove --account " + testEmail + " --id " + account.ID.String(), "not found|portal agent list --account " + testEmail},
		{"", "accont list", `unexpected argument accont, did you mean "account"? Run portal --help`},
		{"", "srve --demo", `did you mean "serve"?`},
		{"", "--dmo", `unknown flag --dmo, did you mean "--demo"? Run portal serve --help`},
		{"", "key revoke --id", "portal: --id: a value is missing; run portal key revoke --help"},
		{"", "key revoke --id 0198c2f4", "--id: write a UUID of 36 characters"},
		{"", "agent remove --account " + testEmail + " --id", "portal: --id: a value is missing; run"},
		{"", "account rename --account --name Ada", "portal: --account: a value is missing; run"},
		{"\n", resetPassword + testEmail, "password|standard input"},
		{"short\n", resetPassword + testEmail, "at least 12"},
		{otherPassword, resetPassword + "nobody@example.com", "nobody@example.com|not found"},
		{otherPassword, "account reset-password", "--email"},
		{"", "account disable", "--account"},
		{"", "account disable --account nobody@example.com", "nobody@example.com|not found|portal account list"},
		{"", "agent create --name Sales --account nobody@example.com", "nobody@example.com|not found"},
		{"", "agent create --name  --account " + testEmail, "portal: --name: the value is empty"},
		{"", "agent create --name Sales --account " + testEmail, "limit of 1000 agents"},
		{"", "agent list", "--account"},
		{"", "key list --account nobody@example.com", "not found"},
		{"", "key list --unused= --account " + testEmail, "portal: --unused: the value is empty"},
		{"", "key list --unused  --account " + testEmail, "portal: --unused: the value is empty"},
		{"", "key list --account ", "portal: --account: the value is empty"},
		{"", "key revoke --id ", "portal: --id: the value is empty"},
		{"", "key revoke --reason  --id " + uuid.NewString(), "portal: --reason: the value is empty"},
		{"", "account set-limits --calls  --account " + testEmail, "--calls"},
		{"", "key list --unused 90 --account " + testEmail, "--unused: invalid lifetime|90d"},
		{"", "account erase --name Ada --account " + testEmail, "not disabled|portal account disable --account " + testEmail},
		{"", "account erase --name Bob --account " + testEmail, `--name: the name of the account is "Ada"`},
		{"", "account erase --account " + testEmail, "--name"},
		{"", "user erase --email nobody@example.com", "not found|portal user list"},
		{"", "user erase --email " + testEmail, "last owner|portal account erase"},
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

// files returns the files of a directory with their contents.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	contents := map[string]string{}
	modelstest.Must(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		content, _ := os.ReadFile(path) // a directory has none
		contents[path] = string(content)
		return err
	}))
	return contents
}

func TestOperatorsCommandsCreateNoDatabase(t *testing.T) {
	t.Parallel()
	id := uuid.NewString()
	for _, command := range []string{
		"account create --name Ada --email ada@example.com", "account list", "account rename --account ada@example.com --name Ada",
		"account disable --account ada@example.com", "account enable --account ada@example.com",
		"account reset-password --email ada@example.com", "user list --account ada@example.com",
		"user add --account ada@example.com --email bob@example.com", "user disable --email ada@example.com",
		"user enable --email ada@example.com", "user reset-second-factor --email ada@example.com",
		"user remove --email ada@example.com", "user set-role --email ada@example.com --role owner",
		"agent create --account ada@example.com --name Sales", "agent list --account ada@example.com",
		"agent pause --account ada@example.com --id " + id, "agent resume --account ada@example.com --id " + id,
		"agent rename --account ada@example.com --name Sales --id " + id, "agent remove --account ada@example.com --id " + id,
		"account erase --account ada@example.com --name Ada", "user erase --email ada@example.com",
		"key list --account ada@example.com", "key revoke --id " + id, "key revoke --key -", "backup portal.backup", "status",
	} {
		run := portalCommand(t, nil, strings.Split(command, " ")...)
		path := filepath.Join(run.Dir, "data", "portal.db")
		output := waitFor(t, run, "nas_"+testPassword)
		output.failsWith(t, "portal: there is no database at "+path+": ", "set DATABASE_URL", "--env-file FILE")
		if strings.Contains(output.stderr, "migrate") {
			t.Errorf("%s: migrate would create a second database: %s", command, output.stderr)
		}
		if left := files(t, run.Dir); len(left) != 1 {
			t.Errorf("%s: left %v", command, left)
		}
	}
}

func TestOperatorsCommandsExplainAWrongDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{"notes.txt": strings.Repeat("this is no database ", 100), "empty.db": ""} {
		modelstest.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	other := filepath.Join(dir, "other.db")
	modelstest.Exec(t, "sqlite:"+other, "CREATE TABLE notes (text TEXT)")
	empty := modelstest.EmptyPostgresURL(t)
	name := regexp.MustCompile(`test_[0-9_]+`).FindString(empty)
	for url, words := range map[string]string{
		"sqlite:" + dir: dir + " is a directory",
		"sqlite:" + filepath.Join(dir, "notes.txt"):         filepath.Join(dir, "notes.txt") + " is not a SQLite database",
		"sqlite:" + filepath.Join(dir, "notes.txt", "p.db"): "cannot be opened: not a directory",
		"sqlite:" + filepath.Join(dir, "empty.db"):          filepath.Join(dir, "empty.db") + " has no tables of the portal|portal migrate",
		"sqlite:" + filepath.Join(dir, "missing.db"):        "there is no database at " + filepath.Join(dir, "missing.db") + ": correct DATABASE_URL|portal migrate",
		"sqlite:" + other:                       other + " has no tables of the portal|portal migrate",
		empty:                                   "database " + name + " has no tables of the portal|portal migrate",
		strings.Replace(empty, name, "nodb", 1): "portal: database nodb does not exist: createdb nodb\n",
		strings.Replace(empty, "portal@", "ada:hunter2@", 1):        `portal: role "ada" does not exist: correct |DATABASE_URL`,
		"mysql://ada:hunter2@localhost/db":                          "DATABASE_URL|postgres://",
		"postgres://ada:hunter2@127.0.0.1:1/portal":                 "portal: no PostgreSQL server answers at 127.0.0.1:1: connection refused: start it or correct DATABASE_URL\n",
		"postgres://ada:hunter2@127.0.0.1:1,127.0.0.1:2/portal":     "127.0.0.1:1: connection refused|; |127.0.0.1:2: connection refused",
		"postgres://ada:hunter2@nohost.invalid/portal":              "no PostgreSQL server answers at nohost.invalid:5432: its name cannot be resolved",
		"postgres://ada:hunter2@/portal?host=" + dir + "&port=5432": "no PostgreSQL server answers at " + dir + "/.s.PGSQL.5432: no such file",
	} {
		before := files(t, dir)
		for _, command := range [][]string{{"key", "revoke", "--id", uuid.NewString()}, {"backup", "portal.backup"}, {"migrate"}} {
			if command[0] == "migrate" && strings.Contains(words, "migrate") {
				continue // which creates the tables
			}
			r := portal(t, databaseEnv(url), "", command...)
			if r.failsWith(t, strings.Split(words, "|")...); strings.Contains(r.stderr, "hunter2") {
				t.Errorf("standard error contains the database password: %s", r.stderr)
			}
		}
		if after := files(t, dir); !maps.Equal(after, before) {
			t.Errorf("%s: the files have changed: %v", url, slices.Collect(maps.Keys(after)))
		}
	}
}

func TestCommandsExplainADatabaseOfBeforeTheFirstRelease(t *testing.T) {
	t.Parallel()
	current := modelstest.SQLiteURL(t)
	backup := filepath.Join(t.TempDir(), "portal.backup")
	mustPortal(t, databaseEnv(current), "", "backup", backup)
	for _, url := range []string{modelstest.EmptySQLiteURL(t), modelstest.EmptyPostgresURL(t)} {
		modelstest.Exec(t, url, "CREATE TABLE applied_migrations (file varchar(255) PRIMARY KEY)")
		modelstest.Exec(t, url, "INSERT INTO applied_migrations (file) VALUES ('20250101000000_older.sql')")
		for _, command := range []string{
			"migrate", "account list", "key revoke --id " + uuid.NewString(), "backup portal.backup", "demo seed", "restore --revoke-all-keys " + backup, "serve",
		} {
			if strings.HasPrefix(command, "restore") && strings.HasPrefix(url, "postgres") {
				continue // the backup is of SQLite
			}
			r := portal(t, append(databaseEnv(url), testSecret, anyPort), "", strings.Split(command, " ")...)
			r.failsWith(t, "before the first release (20250101000000_older.sql)", "set DATABASE_URL to a new database")
		}
	}
}

func TestMigrateSaysWhatItDid(t *testing.T) {
	t.Parallel()
	portal(t, databaseEnv("sqlite:/proc/portal.db"), "", "migrate").failsWith(t, "portal: the database /proc/portal.db cannot be created", "writable")
	migrates := func(url, words string) {
		t.Helper()
		if r := portal(t, databaseEnv(url), "", "migrate"); !regexp.MustCompile(words).MatchString(r.succeeds(t, "")) {
			t.Errorf("%s: want %q, got %q", url, words, r.stderr)
		}
	}
	dir := filepath.Join(t.TempDir(), "new", "data")
	for _, url := range []string{"sqlite:" + filepath.Join(dir, "portal.db"), modelstest.EmptyPostgresURL(t)} {
		migrates(url, `^portal: created the schema of (/\S+|database \w+), version 20\d+\n$`)
		migrates(url, `^portal: the schema of (/\S+|database \w+) is already up to date, version 20\d+\n$`)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("only the owner may read the directory: want mode 0700, got %v, error %v", info, err)
	}
}
