package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"
	"go.opentelemetry.io/otel/trace"

	"portal/models/authn"
	"portal/models/database"
	"portal/models/livekit"
	"portal/models/password"
	"portal/models/secret"
	"portal/models/usage"
)

// Timeout is [database.Timeout].
const Timeout = database.Timeout

// Store stores accounts, keys and sessions. It is safe for concurrent use, and several processes
// may share its database.
type Store struct {
	db     *bun.DB
	api    *bun.DB // for the API's reads; see [database.Connections]
	now    func() time.Time
	logger *slog.Logger
	tracer trace.Tracer // nil: no spans

	timeout                 time.Duration // of each use of the database
	sessionIdle, sessionMax time.Duration
	signInLimit             int
	passwordsOff            bool

	authenticator *authn.Authenticator
	passwords     *password.Hasher
	sealer        secret.Sealer
	usage         *usage.Recorder
	lastSeen      *lastSeenBuffer
	lastTokens    *lastSeenBuffer // of agents

	signInFailures signInFailureCounts

	liveKit        *livekit.Server // nil: no calls
	hangUpFailures atomic.Uint64

	mail         bool // queue mails
	mailsDropped atomic.Uint64

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
	// LiveKit is the server with the calls that end with their key; nil: none.
	LiveKit *livekit.Server
}

// withDefaults returns the options with a value for each.
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

// Open opens the database, migrates its schema and starts the background flush and purge. It
// returns [ErrUnavailable] if the database does not answer, or the error of [database.CheckURL].
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
	source, err := newSource(ctx, connections)
	if err != nil {
		return nil, errors.Join(failed("prepare authentication", err), connections.Close())
	}
	recorder, err := newRecorder(ctx, connections)
	if err != nil {
		return nil, errors.Join(failed("open the recorder of usage", err), source.Close(), connections.Close())
	}
	s := &Store{
		db: connections.Portal, api: connections.API, now: o.Now, logger: o.Logger, tracer: o.Tracer, authenticator: authn.New(source, o.Timeout), timeout: o.Timeout,
		sessionIdle: o.SessionIdle, sessionMax: o.SessionMax, signInLimit: o.SignInLimit, passwordsOff: o.PasswordsOff,
		passwords: password.NewHasher(o.PasswordMemory), sealer: sealer, usage: recorder, lastSeen: newLastSeenBuffer(),
		lastTokens: newLastSeenBuffer(), liveKit: o.LiveKit, mail: o.Mail,
	}
	var background context.Context
	background, s.stop = context.WithCancel(context.Background())
	s.startBackground(background)
	return s, nil
}

// newSource connects the authenticator, which has a connection of its own.
func newSource(ctx context.Context, connections *database.Connections) (authn.Source, error) {
	if !connections.IsPostgres() {
		return authn.NewSQLite(ctx, connections.Single())
	}
	dial, stop := connections.Dial(database.Reading)
	return authn.NewPostgres(func(ctx context.Context) (*pgconn.PgConn, error) {
		conn, err := dial(ctx)
		if err != nil {
			return nil, err
		}
		return conn.PgConn(), nil
	}, stop), nil
}

// newRecorder returns the recorder of usage, which has a connection of its own.
func newRecorder(ctx context.Context, connections *database.Connections) (*usage.Recorder, error) {
	if !connections.IsPostgres() {
		writer, err := usage.NewSQLite(ctx, connections.Single())
		return usage.New(writer, true), err
	}
	return usage.New(usage.NewPostgres(connections.Dial(database.Writing)), false), nil
}

// Close flushes the memory and closes the database. If the flush fails, the usage of the last
// second is lost. Close returns when ctx ends, even if the database hangs.
func (s *Store) Close(ctx context.Context) error {
	s.stop()
	err := within(ctx, func() error {
		s.stopped.Wait()
		return errors.Join(failed("write usage", s.usage.Close(ctx)), s.flushLastSeen(ctx), s.flushLastTokens(ctx))
	})
	if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrUnavailable) {
		err = failed("write usage", err)
	}
	closed := within(ctx, func() error { return errors.Join(s.authenticator.Close(), s.api.Close(), s.db.Close()) })
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
func (s *Store) Timeout() time.Duration { return s.timeout }

// clock returns the time with the precision of the database: UTC, in whole microseconds.
func (s *Store) clock() time.Time {
	return s.now().UTC().Truncate(time.Microsecond)
}

// lockAccount locks the account's row until the transaction ends, so that only one transaction at a
// time counts and adds its keys. SQLite needs no lock: its transactions run one at a time.
func (s *Store) lockAccount(ctx context.Context, tx bun.Tx, accountID uuid.UUID) error {
	if s.db.Dialect().Name() != dialect.PG {
		return nil
	}
	_, err := tx.NewSelect().Model((*Account)(nil)).Column("id").
		Where("id = ?", accountID).For("NO KEY UPDATE").Exec(ctx)
	return err
}

// holdAccounts reads the account, so that the transaction uses the table accounts before others. A
// restore locks the tables in this order. A transaction that changes a key and then records an
// activity, which refers to the account, would otherwise deadlock with it.
func (s *Store) holdAccounts(ctx context.Context, tx bun.Tx, accountID uuid.UUID) error {
	if s.db.Dialect().Name() != dialect.PG {
		return nil
	}
	_, err := tx.NewSelect().Model((*Account)(nil)).Column("id").Where("id = ?", accountID).Exec(ctx)
	return err
}
