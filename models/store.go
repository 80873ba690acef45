package models

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"go.opentelemetry.io/otel/trace"

	"portal/models/authn"
	"portal/models/database"
	"portal/models/livekit"
	"portal/models/password"
	"portal/models/secret"
	"portal/models/usage"
)

// Timeout limits each use of the database.
const Timeout = database.Timeout

// Store has a service for each subject, over one database. It is safe for concurrent use, and
// several processes may share the database.
type Store struct {
	Keys        *Keys
	Agents      *Agents
	Accounts    *Accounts
	People      *People
	Invitations *Invitations
	SignIn      *SignIn
	Sessions    *Sessions
	Credentials *Credentials
	Calls       *Calls
	Outbox      *Outbox
	Activity    *ActivityLog
	API         *API

	db      *DB
	usage   *usage.Recorder
	stop    context.CancelFunc // ends the background work
	stopped sync.WaitGroup
}

// Options configure a [Store].
type Options struct {
	Now    func() time.Time // the clock; nil means time.Now
	Logger *slog.Logger     // for background errors; nil discards them
	Tracer trace.Tracer     // for spans of statements; nil: none

	// Keyring has the keys that encrypt the secrets of authenticator apps. Without it, they
	// cannot be set up, and only recovery codes work.
	Keyring secret.Keyring

	SessionIdle time.Duration // idle limit of a session; 0 means 12 h
	SessionMax  time.Duration // absolute limit of a session; 0 means 720 h
	SignInLimit int           // wrong passwords a minute; 0 means 10, and only tests need another
	Mail        bool          // queue mails in the outbox; an instance must send them

	// Timeout limits each use of the database; 0 means [Timeout], and only tests need more.
	Timeout time.Duration

	PasswordsOff bool // nobody signs in with a password

	// PasswordMemory is the memory in KiB that hashing one password takes; 0 means
	// [password.DefaultMemory], and only tests need less.
	PasswordMemory uint32
	// MigrationWait limits the wait for other sessions' locks during a migration; 0 means 30 s,
	// and 5 s with SQLite.
	MigrationWait time.Duration
	// KeyMaxLifetime is the longest time until a new API key expires; 0: no limit.
	KeyMaxLifetime time.Duration
	// LiveKit is the server with the calls that end with their key; nil: none.
	LiveKit *livekit.Server
}

func (o Options) withDefaults() Options {
	o.SessionIdle = cmp.Or(o.SessionIdle, 12*time.Hour)
	o.SessionMax = cmp.Or(o.SessionMax, 720*time.Hour)
	o.SignInLimit = cmp.Or(o.SignInLimit, defaultSignInLimit)
	o.Timeout = cmp.Or(o.Timeout, Timeout)
	o.PasswordMemory = cmp.Or(o.PasswordMemory, password.DefaultMemory)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Open opens the database, migrates its schema and starts the background flush and purge. If the
// database does not answer, the error is [ErrUnavailable]. Otherwise it may be that of
// [database.CheckURL].
func Open(ctx context.Context, databaseURL string, o Options) (*Store, error) {
	o = o.withDefaults()
	sealer, err := secret.NewSealer(o.Keyring)
	if err != nil {
		return nil, err
	}
	connections, err := database.Open(databaseURL, o.Timeout)
	if err != nil {
		return nil, err
	}
	if o.Tracer != nil {
		connections.Portal = connections.Portal.WithQueryHook(statementSpans{o.Tracer})
		connections.API = connections.API.WithQueryHook(statementSpans{o.Tracer})
	}
	if err := connections.Migrate(ctx, o.Logger, o.MigrationWait); err != nil {
		return nil, errors.Join(err, connections.Close())
	}
	reader, err := newReader(ctx, connections)
	if err != nil {
		return nil, errors.Join(failed("prepare authentication", err), connections.Close())
	}
	db := &DB{
		DB: connections.Portal, api: connections.API, now: o.Now, timeout: o.Timeout, logger: o.Logger, tracer: o.Tracer,
		mail: o.Mail, mailsDropped: new(atomic.Uint64),
	}
	s := newStore(db, newRecorder(connections), authn.New(reader, o.Timeout), sealer, o)
	var background context.Context
	background, s.stop = context.WithCancel(context.Background())
	s.startBackground(background)
	return s, nil
}

// newReader connects the authenticator, which has a connection of its own.
func newReader(ctx context.Context, connections *database.Connections) (authn.Reader, error) {
	if !connections.IsPostgres() {
		return authn.NewSQLite(ctx, connections.Single())
	}
	dial, stop := connections.Dial()
	return authn.NewPostgres(func(ctx context.Context) (*pgconn.PgConn, error) {
		conn, err := dial(ctx)
		if err != nil {
			return nil, err
		}
		return conn.PgConn(), nil
	}, stop), nil
}

// newRecorder returns the recorder of usage, which has a connection of its own.
func newRecorder(connections *database.Connections) *usage.Recorder {
	if connections.IsPostgres() {
		return usage.New(usage.NewPostgres(connections.Single()), false)
	}
	return usage.New(usage.NewSQLite(connections.Single()), true)
}

func newStore(db *DB, recorder *usage.Recorder, authenticator *authn.Authenticator, sealer secret.Sealer, o Options) *Store {
	s := &Store{db: db, usage: recorder}
	guesses := &guesses{db: db, limit: o.SignInLimit, background: &s.stopped}
	passwords := &passwords{db: db, hasher: password.NewHasher(o.PasswordMemory), guesses: guesses, off: o.PasswordsOff}
	s.Keys = &Keys{db: db, usage: recorder, maxLifetime: o.KeyMaxLifetime}
	s.Agents = &Agents{db: db, lastTokens: newLastSeenBuffer()}
	s.Accounts = &Accounts{db: db, passwords: passwords}
	s.People = &People{db: db, passwords: passwords}
	s.Sessions = &Sessions{db: db, idle: o.SessionIdle, max: o.SessionMax, lastSeen: newLastSeenBuffer(), passwords: passwords}
	s.SignIn = &SignIn{db: db, passwords: passwords, guesses: guesses, sessions: s.Sessions, sealer: sealer}
	s.Invitations = &Invitations{db: db, passwords: passwords, guesses: guesses, signIn: s.SignIn}
	s.Credentials = &Credentials{db: db, passwords: passwords, guesses: guesses, sealer: sealer}
	s.Calls = &Calls{db: db, liveKit: o.LiveKit}
	s.Outbox = &Outbox{db: db}
	s.Activity = &ActivityLog{db: db}
	s.API = &API{db: db, authn: authenticator, usage: recorder}
	return s
}

// Close flushes the memory and closes the database. If the flush fails, the usage of the last
// second is lost. Close returns when ctx ends, even if the database hangs.
func (s *Store) Close(ctx context.Context) error {
	s.stop()
	err := within(ctx, func() error {
		s.stopped.Wait()
		return errors.Join(failed("write usage", s.usage.Close(ctx)), s.Sessions.flush(ctx), s.Agents.flush(ctx))
	})
	if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrUnavailable) {
		err = failed("write usage", err)
	}
	closed := within(ctx, func() error { return errors.Join(s.API.authn.Close(), s.db.api.Close(), s.db.Close()) })
	if errors.Is(closed, ctx.Err()) {
		closed = nil // nothing is lost with connections that hang
	}
	return errors.Join(err, closed)
}

// within returns the result of work, or the error of ctx if it ends first. A driver can block for
// longer than a context allows.
func within(ctx context.Context, work func() error) error {
	result := make(chan error, 1)
	go func() { result <- work() }()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Ping returns [ErrUnavailable] unless the database answers a query.
func (s *Store) Ping(ctx context.Context) error {
	err := within(ctx, func() error {
		return s.db.NewSelect().Table("auth_epoch").Column("value").Scan(ctx, new([]byte))
	})
	if err != nil {
		return fmt.Errorf("ping: %w: %w", ErrUnavailable, err)
	}
	return nil
}

// Timeout returns the time limit of each use of the database.
func (s *Store) Timeout() time.Duration { return s.db.timeout }

// Stats describe the state of a store, for metrics.
type Stats struct {
	Authentication authn.Stats
	PortalPool     sql.DBStats // the connections of the pages and the background tasks
	APIPool        sql.DBStats // the connections of the API's reads

	Usage          usage.Stats
	HashQueue      int    // requests that wait for password hashing
	MailsDropped   uint64 // because too many waited
	HangUpFailures uint64 // failed attempts to end calls

	// Refused passwords and codes since the start of the process, at sign-in and to confirm a
	// change.
	RefusedWrong    uint64
	RefusedLimited  uint64 // not checked, because there were too many wrong ones before
	RefusedDisabled uint64 // right, but the user or the account is disabled
}

// Stats returns the state without using the database.
func (s *Store) Stats() Stats {
	refused := &s.SignIn.guesses.refused
	return Stats{
		Authentication: s.API.authn.Stats(), PortalPool: s.db.Stats(), APIPool: s.db.api.Stats(),
		Usage: s.usage.Stats(), HashQueue: s.SignIn.passwords.hasher.Waiting(), MailsDropped: s.db.mailsDropped.Load(),
		HangUpFailures: s.Calls.failures.Load(),
		RefusedWrong:   refused.wrong.Load(), RefusedLimited: refused.limited.Load(), RefusedDisabled: refused.disabled.Load(),
	}
}

// Count returns the number of sessions that have not reached their absolute end, or
// [ErrUnavailable].
func (s *Sessions) Count(ctx context.Context) (int, error) {
	count, err := s.db.NewSelect().Model((*Session)(nil)).Where("expires_at > ?", s.db.Now()).Count(ctx)
	return int(count), failed("count sessions", err)
}
