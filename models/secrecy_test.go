package models_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"portal/models"
	"portal/models/database"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/webhooks"
)

// secrets are secret values by name.
type secrets map[string]string

// Find returns the names of the secrets in a text, also in hexadecimal and base64.
func (s secrets) find(text string) (found []string) {
	for name, secret := range s {
		for _, form := range []string{
			secret, hex.EncodeToString([]byte(secret)), strings.ToUpper(hex.EncodeToString([]byte(secret))),
			base64.RawStdEncoding.EncodeToString([]byte(secret)),
		} {
			if strings.Contains(text, form) {
				found = append(found, name)
			}
		}
	}
	return found
}

// live uses every method that handles a secret, also with wrong input, and returns the secrets.
func (f *fixture) live(t *testing.T) secrets {
	t.Helper()
	ctx := t.Context()
	s := secrets{"password": "Tr0ub4dor & three", "wrong password": "a password of elsewhere"}
	account := modelstest.Value(f.Accounts.Create(ctx, people.NewAccount{Name: "Acme", Email: "ada@example.com", Password: s["password"]}))(t)
	user := modelstest.Value(f.SignIn.VerifyPassword(ctx, "ada@example.com", s["password"], people.Client{Address: "203.0.113.7"}))(t)
	// Users sometimes type a password into the email field.
	for _, email := range []string{"ada@example.com", s["wrong password"]} {
		if _, err := f.SignIn.VerifyPassword(ctx, email, s["wrong password"], people.Client{Address: "203.0.113.7"}); err == nil {
			t.Fatal("signed in")
		}
	}
	token := modelstest.Value(f.SignIn.Start(ctx, user, people.Client{Address: "203.0.113.7", UserAgent: "Firefox"}))(t).Token
	s["session token"] = token
	must(t, errOf(f.Sessions.Find(ctx, token, people.Client{Address: "203.0.113.7"})))
	actor := record.UserActor(user.ID, "203.0.113.7")
	c := customer{Account: account, User: user, Actor: actor}
	_, s["invitation token"] = f.Invite(t, c, "bob@example.com", people.RoleMember)
	s["password of an invitation"] = "Tr0ub4dor & four"
	must(t, modelstest.Accept(ctx, f.Store, s["invitation token"], s["password of an invitation"]))
	key, secret := f.Generate(t, c, form("production"), actor)
	// The random part is enough to compute the whole key.
	s["API key"] = secret[4:34]
	must(t, errOf(f.API.Authenticate(ctx, secret, keys.Source{})))
	must(t, errOf(f.Keys.FindBySecret(ctx, secret)))
	must(t, errOf(f.Keys.Revoke(ctx, account.ID, key.ID, "", actor)))
	_, leaked := f.Generate(t, c, form("leaked"), actor)
	s["leaked key"] = leaked[4:34]
	must(t, errOf(f.Leaks.Revoke(ctx, []keys.LeakedText{
		keys.NewLeakedText(leaked, "https://example.com/?key="+leaked), keys.NewLeakedText(s["password"], ""),
	}, record.LeakGitHub, "")))
	_, _ = f.API.Authenticate(ctx, secret, keys.Source{})
	_, _ = f.API.Authenticate(ctx, secret[:30], keys.Source{})
	endpoint, signing, err := f.Webhooks.Add(ctx, account.ID, "https://example.com/", []record.EventGroup{record.GroupKeys}, actor)
	must(t, err)
	_, rotated, err := f.Webhooks.Rotate(ctx, account.ID, endpoint.ID, actor)
	must(t, err)
	s["signing secret"], s["rotated signing secret"] = signing[6:40], rotated[6:40]
	s["reset token"] = f.ResetToken(t, "ada@example.com")
	must(t, errOf(f.Credentials.PasswordResetUser(ctx, s["reset token"])))
	return s
}

func TestKeyHoldsNoSecret(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		key, secret := f.Key(t, c)
		listed := modelstest.Value(f.Keys.Active(t.Context(), c.ID))(t)
		for _, key := range append(listed, key) {
			text := modelstest.Value(json.Marshal(key))(t)
			text = fmt.Appendf(text, "%v %+v %#v %x", key, key, key, key)
			if found := (secrets{"the key": secret[4:34], "its beginning": secret[4:20]}).find(string(text)); found != nil {
				t.Errorf("%s: %s", found, text)
			}
		}
	})
}

// SQLite's files also contain freed pages and the write-ahead log. An operator may configure
// PostgreSQL to log every statement.
func TestDatabaseAndLogsHoldNoSecret(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		url := modelstest.SQLiteURL(t)
		path, _ := database.SQLitePath(url)
		holdsNoSecret(t, url, path+"*")
	})
	t.Run("postgres", func(t *testing.T) {
		cluster := modelstest.OwnCluster(t, "log_statement=all", "log_min_duration_statement=0")
		holdsNoSecret(t, cluster.URL("postgres"), cluster.LogFile())
	})
}

func holdsNoSecret(t *testing.T, url, files string) {
	t.Helper()
	logged := &modelstest.LogBuffer{}
	f := newFixture(t, url, models.Options{Logger: logged.Logger(), Webhooks: &webhooks.Guard{}})
	s := f.live(t)
	var content bytes.Buffer
	for _, file := range modelstest.Value(filepath.Glob(files))(t) {
		content.Write(modelstest.Value(os.ReadFile(file))(t))
	}
	// Also writes what other stores hold in memory.
	f.Briefly(t, models.Options{}, func(*models.Store) {})
	for name, text := range map[string]string{"database": f.Dump(t), "files": content.String()} {
		if !strings.Contains(text, "production") || !strings.Contains(text, "ada@example.com") {
			t.Fatalf("the %s lack known values", name)
		}
		if found := s.find(text); found != nil {
			t.Errorf("the %s contain %s", name, found)
		}
	}
	if found := s.find(logged.String()); found != nil {
		t.Errorf("the log contains %s:\n%s", found, logged)
	}
}
