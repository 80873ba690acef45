package models_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
	"golang.org/x/crypto/argon2"

	"portal/models"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

// password is the password of every customer of a fixture.
const password = "correct horse battery staple"

// fixture is a store on a real database, its clock, and the database itself for operators' SQL.
type fixture struct {
	*models.Store
	url   string
	clock *modelstest.Clock
	db    *bun.DB
}

// eachDatabase runs a test on SQLite and on PostgreSQL, in parallel with other tests.
func eachDatabase(t *testing.T, run func(t *testing.T, f *fixture)) {
	t.Helper()
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		run(t, newFixture(t, url, models.Options{}))
	})
}

func newFixture(t *testing.T, url string, options models.Options) *fixture {
	t.Helper()
	f := &fixture{url: url, clock: newClock(), db: modelstest.OpenDatabase(t, url)}
	f.Store = f.open(t, options)
	return f
}

// open opens another store on the same database, with the same clock unless the options have one.
func (f *fixture) open(t *testing.T, options models.Options) *models.Store {
	t.Helper()
	return modelstest.Open(t, f.url, f.withClock(options))
}

// briefly calls do with another store and closes it, which writes its usage counts to the database.
func (f *fixture) briefly(t *testing.T, options models.Options, do func(*models.Store)) {
	t.Helper()
	store := modelstest.Value(models.Open(t.Context(), f.url, f.withClock(options)))(t)
	do(store)
	must(t, store.Close(context.Background()))
}

func (f *fixture) withClock(options models.Options) models.Options {
	if options.Now == nil {
		options.Now = f.clock.Now
	}
	return options
}

func (f *fixture) postgres() bool { return f.db.Dialect().Name().String() == "pg" }

// exec runs a statement as an operator.
func (f *fixture) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	if _, err := f.db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// scan reads the only row of a query.
func (f *fixture) scan(t *testing.T, query string, args []any, into ...any) {
	t.Helper()
	if err := f.db.QueryRowContext(t.Context(), query, args...).Scan(into...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// count returns the number that a query returns.
func (f *fixture) count(t *testing.T, query string, args ...any) int {
	t.Helper()
	var n int
	f.scan(t, query, args, &n)
	return n
}

// checkCount fails the test unless a query returns the number want.
func (f *fixture) checkCount(t *testing.T, want int, query string, args ...any) {
	t.Helper()
	if n := f.count(t, query, args...); n != want {
		t.Errorf("%s %v: %d, want %d", query, args, n, want)
	}
}

// customer is an account, its user, and that user as an actor.
type customer struct {
	people.Account
	user  people.User
	actor record.Actor
}

// customer creates an account with a user, whose password is [password]. Its hash has the cheapest
// parameters, to save time.
func (f *fixture) customer(t *testing.T) customer {
	t.Helper()
	account := people.Account{ID: newID(), Name: "Acme", CreatedAt: f.clock.Now()}
	email := "Ada." + account.ID.String() + "@Example.com"
	user := people.User{
		ID: newID(), AccountID: account.ID, Email: email, EmailHash: value.HashEmail(email), EmailProvenAt: &account.CreatedAt,
		PasswordHash: cheapHash(password), Role: people.RoleOwner, CreatedAt: f.clock.Now(),
	}
	for _, model := range []any{&account, &user} {
		must(t, errOf(f.db.NewInsert().Model(model).Exec(t.Context())))
	}
	return customer{Account: account, user: user, actor: record.UserActor(user.ID, "203.0.113.7")}
}

// key generates a key of the customer and returns it and its value.
func (f *fixture) key(t *testing.T, c customer) (models.Key, string) {
	t.Helper()
	return f.generate(t, c, form("production"), c.actor)
}

func (f *fixture) generate(t *testing.T, c customer, n models.NewKey, by record.Actor) (models.Key, string) {
	t.Helper()
	key, secret, err := f.Keys.Generate(t.Context(), c.ID, n, by)
	must(t, err)
	return key, secret
}

func (f *fixture) agent(t *testing.T, c customer) models.Agent {
	t.Helper()
	agent := modelstest.Value(f.Agents.Create(t.Context(), c.ID, models.NewAgent{Name: "Reception"}, c.actor))(t)
	return agent
}

func (f *fixture) revoke(t *testing.T, key models.Key) {
	t.Helper()
	must(t, errOf(f.Keys.Revoke(t.Context(), key.AccountID, key.ID, "", record.Operator())))
}

// before is a query hook that is called before each statement.
type before func(ctx context.Context, event *bun.QueryEvent) context.Context

func (b before) BeforeQuery(ctx context.Context, event *bun.QueryEvent) context.Context {
	return b(ctx, event)
}

func (b before) AfterQuery(context.Context, *bun.QueryEvent) {}

// form returns the input of a new form that generates a key.
func form(label string) models.NewKey {
	return models.NewKey{Label: label, FormID: uuid.New()}
}

// restricted returns the input of a form with these restrictions.
func restricted(r models.Restrictions) models.NewKey {
	n := form("restricted")
	n.Restrictions = r
	return n
}

var (
	must       = modelstest.Must
	eventually = modelstest.Eventually
)

// checkError fails the test unless err, of the call with this name, is want.
func checkError(t testing.TB, name string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", name, err, want)
	}
}

// checkErrors is [checkError] for each of several errors.
func checkErrors(t testing.TB, name string, errs []error, want error) {
	t.Helper()
	for _, err := range errs {
		checkError(t, name, err, want)
	}
}

// checkInvalid fails the test unless err, of the call with this name, is about this field.
func checkInvalid(t testing.TB, name string, err error, field string) {
	t.Helper()
	invalid, ok := errors.AsType[*value.InvalidError](err)
	if !ok || invalid.Field != field || invalid.Message == "" {
		t.Errorf("%s: %v, want an error for the field %s", name, err, field)
	}
}

// errOf returns the error of a call and drops its result.
func errOf[T any](_ T, err error) error { return err }

func newID() uuid.UUID { return uuid.Must(uuid.NewV7()) }

func cheapHash(password string) string {
	salt := []byte("0123456789abcdef")
	hash := argon2.IDKey([]byte(password), salt, 1, 8, 1, 32)
	return fmt.Sprintf("$argon2id$v=19$m=8,t=1,p=1$%s$%s",
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(hash))
}

// newClock returns a clock with a time that has microseconds, which PostgreSQL stores.
func newClock() *modelstest.Clock {
	return modelstest.NewClock(time.Date(2026, time.March, 14, 15, 9, 26, 535897000, time.UTC))
}

func TestMain(m *testing.M) { modelstest.Main(m) }
