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
	"portal/models/modelstest"
)

// secrets are secret values by name.
type secrets map[string]string

// find returns the names of the secrets in a text, also in hexadecimal and base64.
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
	account, err := f.Accounts.Create(ctx, models.NewAccount{Name: "Acme", Email: "ada@example.com", Password: s["password"]})
	must(t, err)
	user, err := f.SignIn.VerifyPassword(ctx, "ada@example.com", s["password"], models.Client{Address: "203.0.113.7"})
	must(t, err)
	// Users sometimes type a password into the email field.
	for _, email := range []string{"ada@example.com", s["wrong password"]} {
		if _, err := f.SignIn.VerifyPassword(ctx, email, s["wrong password"], models.Client{Address: "203.0.113.7"}); err == nil {
			t.Fatal("signed in")
		}
	}
	token := modelstest.Value(f.SignIn.Start(ctx, user, models.Client{Address: "203.0.113.7", UserAgent: "Firefox"}))(t).Token
	s["session token"] = token
	must(t, errOf(f.Sessions.Find(ctx, token, models.Client{Address: "203.0.113.7"})))
	actor := models.UserActor(user.ID, "203.0.113.7")
	_, s["invitation token"], err = f.Invitations.Create(ctx, account.ID, "bob@example.com", models.RoleMember, actor)
	must(t, err)
	s["password of an invitation"] = "Tr0ub4dor & four"
	must(t, accept(ctx, f.Store, s["invitation token"], s["password of an invitation"]))
	key, secret, err := f.Keys.Generate(ctx, account.ID, form("production"), actor)
	must(t, err)
	// The random part is enough to compute the whole key.
	s["API key"] = secret[4:34]
	must(t, errOf(f.API.Authenticate(ctx, secret, models.Source{})))
	must(t, errOf(f.Keys.FindBySecret(ctx, secret)))
	must(t, errOf(f.Keys.Revoke(ctx, account.ID, key.ID, "", actor)))
	_, leaked, err := f.Keys.Generate(ctx, account.ID, form("leaked"), actor)
	must(t, err)
	s["leaked key"] = leaked[4:34]
	must(t, errOf(f.Keys.ReportLeaked(ctx, []models.LeakedText{
		models.NewLeakedText(leaked, "https://example.com/?key="+leaked), models.NewLeakedText(s["password"], ""),
	}, models.LeakGitHub, "")))
	_, _ = f.API.Authenticate(ctx, secret, models.Source{})
	_, _ = f.API.Authenticate(ctx, secret[:30], models.Source{})
	s["reset token"] = f.resetToken(t, "ada@example.com")
	must(t, errOf(f.Credentials.PasswordResetUser(ctx, s["reset token"])))
	return s
}

func TestKeyHoldsNoSecret(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.customer(t)
		key, secret := f.key(t, c)
		listed := modelstest.Value(f.Keys.Active(t.Context(), c.ID))(t)
		for _, key := range append(listed, key) {
			text := modelstest.Value(json.Marshal(key))(t)
			text = fmt.Appendf(text, "%v %+v %#v %s %x", key, key, key, key, key)
			if found := (secrets{"the key": secret[4:34], "its beginning": secret[4:20]}).find(string(text)); found != nil {
				t.Errorf("%s: %s", found, text)
			}
		}
	})
}

func TestDatabaseHoldsNoSecret(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		logged := &modelstest.LogBuffer{}
		f.Store = f.open(t, models.Options{Logger: logged.Logger()})
		s := f.live(t)
		// Also writes the WAL of other stores.
		f.briefly(t, models.Options{}, func(*models.Store) {})
		dump := f.dump(t)
		if !strings.Contains(dump, "production") || !strings.Contains(dump, "ada@example.com") {
			t.Fatalf("the dump lacks known values:\n%s", dump)
		}
		if found := s.find(dump); found != nil {
			t.Errorf("the database contains %s:\n%s", found, dump)
		}
		if found := s.find(logged.String()); found != nil {
			t.Errorf("the log contains %s:\n%s", found, logged)
		}
	})
}

// The files also contain freed pages and the write-ahead log.
func TestSQLiteFilesHoldNoSecret(t *testing.T) {
	t.Parallel()
	f := newFixture(t, modelstest.SQLiteURL(t), models.Options{})
	s := f.live(t)
	path, _ := database.SQLitePath(f.url)
	files := modelstest.Value(os.ReadDir(filepath.Dir(path)))(t)
	var all bytes.Buffer
	for _, file := range files {
		content := modelstest.Value(os.ReadFile(filepath.Join(filepath.Dir(path), file.Name())))(t)
		all.Write(content)
	}
	if !bytes.Contains(all.Bytes(), []byte("ada@example.com")) {
		t.Fatal("the files lack known values")
	}
	if found := s.find(all.String()); found != nil {
		t.Errorf("the files contain %s", found)
	}
}

// An operator may configure the server to log every statement.
func TestPostgresLogHoldsNoSecret(t *testing.T) {
	t.Parallel()
	cluster := modelstest.OwnCluster(t, "log_statement=all", "log_min_duration_statement=0")
	f := newFixture(t, cluster.URL("postgres"), models.Options{})
	s := f.live(t)
	text := modelstest.Value(os.ReadFile(cluster.LogFile()))(t)
	if !bytes.Contains(text, []byte("ada@example.com")) {
		t.Fatalf("the log contains no statement:\n%s", text)
	}
	if found := s.find(string(text)); found != nil {
		t.Errorf("the log contains %s", found)
	}
}

// dump returns every value of every table as text. Bytes are dumped as text and in hexadecimal.
func (f *fixture) dump(t *testing.T) string {
	t.Helper()
	tables := "SELECT name FROM sqlite_master WHERE type = 'table'"
	if f.postgres() {
		tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
	}
	var names []string
	must(t, f.db.NewRaw(tables).Scan(t.Context(), &names))
	if len(names) < 11 {
		t.Fatalf("only the tables %s", names)
	}
	var text strings.Builder
	for _, name := range names {
		var rows []map[string]any
		must(t, f.db.NewRaw("SELECT * FROM "+name).Scan(t.Context(), &rows))
		for _, row := range rows {
			fmt.Fprintf(&text, "%s:", name)
			for column, value := range row {
				fmt.Fprintf(&text, " %s=%v", column, value)
				if raw, ok := value.([]byte); ok {
					fmt.Fprintf(&text, " (%s %x)", raw, raw)
				}
			}
			text.WriteByte('\n')
		}
	}
	return text.String()
}
