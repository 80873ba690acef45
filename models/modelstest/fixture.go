package modelstest

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
	"portal/models/agents"
	"portal/models/keys"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

// Password is the password of every customer of a fixture.
const Password = "correct horse battery staple"

// Fixture is a store on a real database, its clock, and the database itself for operators' SQL.
type Fixture struct {
	*models.Store
	URL   string
	Clock *Clock
	DB    *bun.DB
}

// NewFixture opens a store on the database with a clock of its own.
func NewFixture(t *testing.T, url string, options models.Options) *Fixture {
	t.Helper()
	f := &Fixture{URL: url, Clock: StartClock(), DB: OpenDatabase(t, url)}
	f.Store = f.Open(t, options)
	return f
}

// EachDatabase runs a test with a fixture on SQLite and on PostgreSQL, in parallel with other
// tests.
func EachDatabase(t *testing.T, run func(t *testing.T, f *Fixture)) {
	t.Helper()
	t.Parallel()
	Databases(t, func(t *testing.T, url string) { run(t, NewFixture(t, url, models.Options{})) })
}

// Open opens another store on the same database, with the same clock unless the options have one.
func (f *Fixture) Open(t *testing.T, options models.Options) *models.Store {
	t.Helper()
	return Open(t, f.URL, f.WithClock(options))
}

// Briefly calls do with another store and closes it, which writes its usage counts to the database.
func (f *Fixture) Briefly(t *testing.T, options models.Options, do func(*models.Store)) {
	t.Helper()
	store := Value(models.Open(t.Context(), f.URL, f.WithClock(options)))(t)
	do(store)
	Must(t, store.Close(context.Background()))
}

// WithClock returns the options with the clock of the fixture, unless they have one.
func (f *Fixture) WithClock(options models.Options) models.Options {
	if options.Now == nil {
		options.Now = f.Clock.Now
	}
	return options
}

// Postgres reports whether the database is PostgreSQL.
func (f *Fixture) Postgres() bool { return f.DB.Dialect().Name().String() == "pg" }

// Exec runs a statement as an operator.
func (f *Fixture) Exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	if _, err := f.DB.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// Scan reads the only row of a query.
func (f *Fixture) Scan(t *testing.T, query string, args []any, into ...any) {
	t.Helper()
	if err := f.DB.QueryRowContext(t.Context(), query, args...).Scan(into...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// Count returns the number that a query returns.
func (f *Fixture) Count(t *testing.T, query string, args ...any) int {
	t.Helper()
	var n int
	f.Scan(t, query, args, &n)
	return n
}

// CheckCount fails the test unless a query returns the number want.
func (f *Fixture) CheckCount(t *testing.T, want int, query string, args ...any) {
	t.Helper()
	if n := f.Count(t, query, args...); n != want {
		t.Errorf("%s %v: %d, want %d", query, args, n, want)
	}
}

// Customer is an account, its user, and that user as an actor.
type Customer struct {
	people.Account
	User  people.User
	Actor record.Actor
}

// Customer creates an account with a user, whose password is [Password]. Its hash has the cheapest
// parameters, to save time.
func (f *Fixture) Customer(t *testing.T) Customer {
	t.Helper()
	account := people.Account{ID: uuid.Must(uuid.NewV7()), Name: "Acme", CreatedAt: f.Clock.Now()}
	email := "Ada." + account.ID.String() + "@Example.com"
	user := people.User{
		ID: uuid.Must(uuid.NewV7()), AccountID: account.ID, Email: email, EmailHash: value.HashEmail(email), EmailProvenAt: &account.CreatedAt,
		PasswordHash: CheapHash(Password), Role: people.RoleOwner, CreatedAt: f.Clock.Now(),
	}
	for _, model := range []any{&account, &user} {
		Must(t, ErrOf(f.DB.NewInsert().Model(model).Exec(t.Context())))
	}
	return Customer{Account: account, User: user, Actor: record.UserActor(user.ID, "203.0.113.7")}
}

// Key generates a key of the customer and returns it and its value.
func (f *Fixture) Key(t *testing.T, c Customer) (keys.Key, string) {
	t.Helper()
	return f.Generate(t, c, Form("production"), c.Actor)
}

// Generate generates a key and returns it and its value.
func (f *Fixture) Generate(t *testing.T, c Customer, n keys.NewKey, by record.Actor) (keys.Key, string) {
	t.Helper()
	key, secret, err := f.Keys.Generate(t.Context(), c.ID, n, by)
	Must(t, err)
	return key, secret
}

// Agent creates an agent of the customer.
func (f *Fixture) Agent(t *testing.T, c Customer) agents.Agent {
	t.Helper()
	return Value(f.Agents.Create(t.Context(), c.ID, agents.NewAgent{Name: "Reception"}, c.Actor))(t)
}

// Revoke revokes a key as the operator.
func (f *Fixture) Revoke(t *testing.T, key keys.Key) {
	t.Helper()
	Must(t, ErrOf(f.Keys.Revoke(t.Context(), key.AccountID, key.ID, "", record.Operator())))
}

// Before is a query hook that is called before each statement.
type Before func(ctx context.Context, event *bun.QueryEvent) context.Context

// BeforeQuery calls the hook.
func (b Before) BeforeQuery(ctx context.Context, event *bun.QueryEvent) context.Context {
	return b(ctx, event)
}

// AfterQuery does nothing.
func (b Before) AfterQuery(context.Context, *bun.QueryEvent) {}

// Form returns the input of a new Form that generates a key.
func Form(label string) keys.NewKey {
	return keys.NewKey{Label: label, FormID: uuid.New()}
}

// Restricted returns the input of a Form with these restrictions.
func Restricted(r keys.Restrictions) keys.NewKey {
	n := Form("Restricted")
	n.Restrictions = r
	return n
}

// CheckError fails the test unless err, of the call with this name, is want.
func CheckError(t testing.TB, name string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", name, err, want)
	}
}

// CheckErrors is [CheckError] for each of several errors.
func CheckErrors(t testing.TB, name string, errs []error, want error) {
	t.Helper()
	for _, err := range errs {
		CheckError(t, name, err, want)
	}
}

// CheckInvalid fails the test unless err, of the call with this name, is about this field.
func CheckInvalid(t testing.TB, name string, err error, field string) {
	t.Helper()
	invalid, ok := errors.AsType[*value.InvalidError](err)
	if !ok || invalid.Field != field || invalid.Message == "" {
		t.Errorf("%s: %v, want an error for the field %s", name, err, field)
	}
}

// ErrOf returns the error of a call and drops its result.
func ErrOf(_ any, err error) error { return err }

// CheapHash returns a hash of the password with the cheapest parameters.
func CheapHash(password string) string {
	salt := []byte("0123456789abcdef")
	hash := argon2.IDKey([]byte(password), salt, 1, 8, 1, 32)
	return fmt.Sprintf("$argon2id$v=19$m=8,t=1,p=1$%s$%s",
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(hash))
}

// StartClock returns a clock with a time that has microseconds, which PostgreSQL stores.
func StartClock() *Clock {
	return NewClock(time.Date(2026, time.March, 14, 15, 9, 26, 535897000, time.UTC))
}
