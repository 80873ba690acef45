package models

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/uptrace/bun"
	"go.opentelemetry.io/otel/trace"

	"portal/models/agents"
	"portal/models/authn"
	"portal/models/calls"
	"portal/models/database"
	"portal/models/erasure"
	"portal/models/internal/db"
	"portal/models/keys"
	"portal/models/livekit"
	"portal/models/outbox"
	"portal/models/password"
	"portal/models/people"
	"portal/models/record"
	"portal/models/secret"
	"portal/models/usage"
	"portal/models/value"
	"portal/models/webhooks"
	"portal/models/workload"
)

// Timeout limits each use of the database.
const Timeout = database.Timeout

// Store has a service for each subject, over one database. It is safe for concurrent use, and
// several processes may share the database.
type Store struct {
	Keys        *keys.Keys
	Usage       *keys.Usage
	Unused      *keys.Unused
	Leaks       *keys.Leaks
	Workload    *keys.Workload
	Agents      *agents.Agents
	Accounts    *people.Accounts
	People      *people.People
	Invitations *people.Invitations
	SignIn      *people.SignIn
	Sessions    *people.Sessions
	Credentials *people.Credentials
	Calls       *calls.Calls
	Erasures    *erasure.Erasures
	Outbox      *outbox.Outbox
	Webhooks    *webhooks.Webhooks
	Activity    *record.ActivityLog
	API         *keys.API

	db      *db.DB
	options Options // with defaults
	shared  shared
	people  *people.Services
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
	// KeyringIsNew says that the keyring's secret was made for this start, because there was
	// none. If the database knows another one, that was lost.
	KeyringIsNew bool

	SessionIdle time.Duration // idle limit of a session; 0 means 12 h
	SessionMax  time.Duration // absolute limit of a session; 0 means 720 h
	// Wrong passwords a minute; 0 means 10, and only tests need another.
	SignInLimit int
	Mail        bool // queue mails in the outbox; an instance must send them

	// Timeout limits each use of the database; 0 means [Timeout], and only tests need more.
	Timeout time.Duration

	PasswordsOff bool // nobody signs in with a password
	// RolesFrom is the issuer of the identities that decide about accounts and roles, see
	// [people.SignIn.WithClaims]; empty: none. Their users sign in with them alone.
	RolesFrom string

	// PasswordMemory is the memory in KiB that hashing one password takes; 0 means
	// [password.DefaultMemory], and only tests need less.
	PasswordMemory uint32
	// MigrationWait limits the wait for other sessions' locks during a migration; 0 means 30 s,
	// and 5 s with SQLite.
	MigrationWait time.Duration
	// KeyMaxLifetime is the longest time until a new API key expires; 0: no limit.
	KeyMaxLifetime time.Duration
	// KeyUnusedLifetime is the time without a use after which keys are revoked, unless their
	// account has chosen a shorter one; 0: only if it has chosen one.
	KeyUnusedLifetime time.Duration
	// ReportDelay is how old an activity is before reports have it; 0 means 30 s, and only
	// tests need another.
	ReportDelay time.Duration
	// Webhooks decides which addresses webhooks are sent to; nil: webhooks are off.
	Webhooks *webhooks.Guard
	// WebhooksOff means that nobody sends webhooks, so none are queued. The commands of
	// operators do not know it.
	WebhooksOff bool
	// PastIDs means that the ids of activities have the time of the clock Now, because it is
	// in the past.
	PastIDs bool
	// LiveKit is the server with the calls that end with their key; nil: none.
	LiveKit *livekit.Server
	// Issuers are those whose tokens can stand for a key without pasted public keys.
	Issuers workload.Issuers
}

func (o Options) withDefaults() Options {
	o.SessionIdle = cmp.Or(o.SessionIdle, 12*time.Hour)
	o.SessionMax = cmp.Or(o.SessionMax, 720*time.Hour)
	o.Timeout = cmp.Or(o.Timeout, Timeout)
	o.ReportDelay = cmp.Or(o.ReportDelay, record.ActivityHeldBack)
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
// database does not answer, the error is [value.ErrUnavailable]. Otherwise it may be that of
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
		connections.Portal = connections.Portal.WithQueryHook(db.NewStatementSpans(o.Tracer))
		connections.API = connections.API.WithQueryHook(db.NewStatementSpans(o.Tracer))
	}
	if err := connections.Migrate(ctx, o.Logger, o.MigrationWait); err != nil {
		return nil, errors.Join(err, connections.Close())
	}
	reader, err := newReader(ctx, connections)
	if err != nil {
		return nil, errors.Join(value.Failed("prepare authentication", err), connections.Close())
	}
	conn := &db.DB{
		DB: connections.Portal, API: connections.API, Clock: o.Now, Timeout: o.Timeout, Logger: o.Logger, Tracer: o.Tracer,
		Mails: o.Mail, RolesFrom: o.RolesFrom, WebhooksOff: o.WebhooksOff, PastIDs: o.PastIDs, MailsDropped: new(atomic.Uint64),
	}
	checkSecret(ctx, conn, o.Keyring, o.KeyringIsNew)
	s := newStore(conn, shared{
		authn: authn.New(reader, o.Timeout), usage: newRecorder(connections), sealer: sealer,
		sessions: db.NewLastSeenBuffer(0), agentUses: agents.NewUses(), hasher: password.NewHasher(o.PasswordMemory),
	}, o)
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
		return usage.New(usage.NewPostgres(connections.Single()), false, sourcesRest)
	}
	return usage.New(usage.NewSQLite(connections.Single()), true, sourcesRest)
}

// shared is what a store and its copies have in common.
type shared struct {
	authn     *authn.Authenticator
	usage     *usage.Recorder
	sealer    secret.Sealer
	sessions  *db.LastSeenBuffer // when sessions were last seen
	agentUses *db.LastSeenBuffer // when keys last used agents
	hasher    *password.Hasher
}

func newStore(db *db.DB, m shared, o Options) *Store {
	s := &Store{db: db, options: o, shared: m}
	s.people = people.New(db, &s.stopped, people.Options{
		Sealer: m.sealer, SessionIdle: o.SessionIdle, SessionMax: o.SessionMax, SignInLimit: o.SignInLimit,
		PasswordsOff: o.PasswordsOff, Hasher: m.hasher, LastSeen: m.sessions,
	})
	s.Accounts, s.People, s.Invitations = s.people.Accounts, s.people.People, s.people.Invitations
	s.SignIn, s.Sessions, s.Credentials = s.people.SignIn, s.people.Sessions, s.people.Credentials
	ofKeys := keys.New(db, m.usage, m.authn, keys.Options{MaxLifetime: o.KeyMaxLifetime, UnusedLifetime: o.KeyUnusedLifetime, Issuers: o.Issuers})
	s.Keys, s.Usage, s.Unused, s.Leaks, s.Workload, s.API = ofKeys.Keys, ofKeys.Usage, ofKeys.Unused, ofKeys.Leaks, ofKeys.Workload, ofKeys.API
	s.Agents = agents.New(db, m.agentUses)
	s.Calls = calls.New(db, o.LiveKit)
	s.Outbox = outbox.New(db)
	s.Webhooks = webhooks.New(db, m.sealer, o.Webhooks)
	s.Activity = record.NewActivityLog(db, o.ReportDelay)
	s.Erasures = erasure.New(db, s.People, o.SessionIdle)
	return s
}

// WithQueryHook returns a copy of the store whose statements the hook sees. It shares the memory
// and the background work of s. Only tests need it.
func (s *Store) WithQueryHook(hook bun.QueryHook) *Store {
	db := *s.db
	db.DB, db.API = db.WithQueryHook(hook), db.API.WithQueryHook(hook)
	return newStore(&db, s.shared, s.options)
}

// Close flushes the memory and closes the database. If the flush fails, the usage of the last
// second is lost. Close returns when ctx ends, even if the database hangs.
func (s *Store) Close(ctx context.Context) error {
	s.stop()
	err := db.Within(ctx, func() error {
		s.stopped.Wait()
		return errors.Join(value.Failed("write usage", s.shared.usage.Close(ctx)), s.Sessions.Flush(ctx), s.Agents.FlushAll(ctx), s.Usage.FlushRefusals(ctx))
	})
	if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, value.ErrUnavailable) {
		err = value.Failed("write usage", err)
	}
	closed := db.Within(ctx, func() error { return errors.Join(s.API.Close(), s.db.API.Close(), s.db.Close()) })
	if errors.Is(closed, ctx.Err()) {
		closed = nil // nothing is lost with connections that hang
	}
	return errors.Join(err, closed)
}

// Timeout returns the time limit of each use of the database.
func (s *Store) Timeout() time.Duration { return s.db.Timeout }

// Stats describe the state of a store, for metrics.
type Stats struct {
	Authentication authn.Stats
	PortalPool     sql.DBStats // the connections of the pages and the background tasks
	APIPool        sql.DBStats // the connections of the API's reads

	Usage        usage.Stats
	HashQueue    int    // requests that wait for password hashing
	MailsDropped uint64 // because too many waited
	CallFailures uint64 // rounds that could not list or end calls

	// Refused passwords and codes since the start of the process, at sign-in and to confirm a
	// change.
	RefusedWrong    uint64
	RefusedLimited  uint64 // not checked, because there were too many wrong ones before
	RefusedDisabled uint64 // right, but the user or the account is disabled
}

// Stats returns the state without using the database.
func (s *Store) Stats() Stats {
	wrong, limited, disabled := s.people.Refused()
	return Stats{
		Authentication: s.API.Stats(), PortalPool: s.db.Stats(), APIPool: s.db.API.Stats(),
		Usage: s.shared.usage.Stats(), HashQueue: s.shared.hasher.Waiting(), MailsDropped: s.db.MailsDropped.Load(),
		CallFailures: s.Calls.FailedRounds(),
		RefusedWrong: wrong, RefusedLimited: limited, RefusedDisabled: disabled,
	}
}

const (
	// The portal promises that the last use of a key is on disk within one second.
	// usageInterval plus the duration of a flush must therefore stay below one second.
	usageInterval = 500 * time.Millisecond
	// Other instances show the sources of a key's requests within 5 s, so sourcesRest plus the
	// interval and the duration of a flush must stay below that.
	sourcesRest = 4 * time.Second
	// lastSeenInterval, agentUsesInterval and refusalsInterval are the intervals of the other
	// flushes.
	lastSeenInterval  = 500 * time.Millisecond
	agentUsesInterval = time.Second
	refusalsInterval  = 5 * time.Second

	// purgeDelay is the time from the start to the first purge. Most commands end before.
	purgeDelay = 10 * time.Second
)

// startBackground starts the regular flushes, the mails about expiring keys and the purge. They end
// with ctx, each after its running statement.
func (s *Store) startBackground(ctx context.Context) {
	report := func(err error) {
		// Nothing is lost: the next interval tries again.
		s.db.Logger.ErrorContext(ctx, "background write failed", slog.Any("error", err))
	}
	s.stopped.Go(func() {
		repeat(ctx, usageInterval, s.shared.usage.FlushYielding, func(err error) { report(value.Failed("write usage", err)) })
	})
	s.stopped.Go(func() { repeat(ctx, lastSeenInterval, s.Sessions.Flush, report) })
	s.stopped.Go(func() { repeat(ctx, agentUsesInterval, s.Agents.Flush, report) })
	s.stopped.Go(func() { repeat(ctx, refusalsInterval, s.Usage.FlushRefusals, report) })
	s.stopped.Go(func() {
		repeatAfter(ctx, purgeDelay, erasure.PurgeInterval, nil, s.maintain, func(err error) {
			s.db.Logger.ErrorContext(ctx, "cannot maintain the database", slog.Any("error", err))
		})
	})
	s.stopped.Go(func() {
		repeatAfter(ctx, purgeDelay, erasure.PurgeInterval, s.Erasures.Due(), s.Erasures.Finish, func(err error) {
			s.db.Logger.ErrorContext(ctx, "cannot erase data", slog.Any("error", err))
		})
	})
	s.stopped.Go(func() { repeat(ctx, keys.WarningInterval, s.Keys.RecordExpiry, report) })
	s.stopped.Go(func() { repeat(ctx, keys.WarningInterval, s.Unused.Revoke, report) })
	if s.Outbox.Enabled() {
		// Many accounts need more than Timeout, and what is left when the portal stops can
		// wait.
		s.stopped.Go(func() { repeat(ctx, keys.WarningInterval, s.Outbox.WarnOfExpiry, report) })
	}
	if s.Calls.Enabled() {
		s.stopped.Go(func() { s.Calls.RunRegularly(ctx) })
	}
}

// repeat calls flush at intervals until ctx ends, and report with each error. A flush limits its
// own time.
func repeat(ctx context.Context, interval time.Duration, flush func(context.Context) error, report func(error)) {
	repeatAfter(ctx, interval, interval, nil, flush, report)
}

// repeatAfter is repeat with a delay before the first call. It also calls run each time it is due.
func repeatAfter(ctx context.Context, delay, interval time.Duration, due <-chan struct{}, run func(context.Context) error, report func(error)) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			timer.Reset(interval)
		case <-due:
		}
		if err := run(ctx); err != nil && ctx.Err() == nil {
			report(err)
		}
	}
}

// maintain deletes expired rows, seals secrets anew and checks the clock.
func (s *Store) maintain(ctx context.Context) error {
	return errors.Join(s.Erasures.Purge(ctx), s.Credentials.ResealTOTP(ctx), s.Webhooks.Reseal(ctx), s.db.WarnOfClock(ctx))
}
