package models

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"
	"github.com/uptrace/bun/schema"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// DB is the database with the clock. Services read from it and open transactions. Only DB and [Tx]
// know whether it is SQLite or PostgreSQL.
type DB struct {
	*bun.DB
	api *bun.DB // for the API's reads; see [database.Connections]

	now     func() time.Time
	timeout time.Duration // of each use of the database
	logger  *slog.Logger
	tracer  trace.Tracer // nil: no spans

	mail         bool           // queue mails about activities
	mailsDropped *atomic.Uint64 // because too many waited
}

// Now returns the time with the precision of the database: UTC, in whole microseconds.
func (db *DB) Now() time.Time { return db.now().UTC().Truncate(time.Microsecond) }

// InTx calls work in a transaction, which it commits unless work fails or the time limit of the
// database passes. The error begins with the operation.
func (db *DB) InTx(ctx context.Context, operation string, work func(ctx context.Context, tx Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, db.timeout)
	defer cancel()
	err := db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error { return work(ctx, Tx{tx, db}) })
	return failed(operation, err)
}

// inTx is [DB.InTx] for work with a result. With an error, it returns the zero value.
func inTx[T any](ctx context.Context, db *DB, operation string, work func(ctx context.Context, tx Tx) (T, error)) (T, error) {
	var result, zero T
	err := db.InTx(ctx, operation, func(ctx context.Context, tx Tx) (err error) {
		result, err = work(ctx, tx)
		return err
	})
	if err != nil {
		return zero, err
	}
	return result, nil
}

// locked lets a query lock the rows that it selects, with a strength such as "SHARE". SQLite needs
// no lock, because its transactions run one at a time.
func (db *DB) locked(query *bun.SelectQuery, strength string) *bun.SelectQuery {
	if isPostgres(db) {
		query = query.For(strength)
	}
	return query
}

// onPrimary lets a query find no rows on a standby, whose rows may be out of date.
func (db *DB) onPrimary(query *bun.SelectQuery) *bun.SelectQuery {
	if isPostgres(db) {
		query = query.Where("NOT pg_is_in_recovery()")
	}
	return query
}

// unixTime returns the expression for the time in a column in seconds.
func (db *DB) unixTime(column string) schema.QueryWithArgs {
	if isPostgres(db) {
		return bun.SafeQuery("CAST(date_part('epoch', ?) AS bigint)", bun.Ident(column))
	}
	return bun.SafeQuery("unixepoch(?)", bun.Ident(column))
}

func isPostgres(db bun.IDB) bool { return db.Dialect().Name() == dialect.PG }

// Tx is a transaction of [DB.InTx].
type Tx struct {
	bun.Tx
	db *DB
}

// Now is [DB.Now].
func (tx Tx) Now() time.Time { return tx.db.Now() }

// Insert inserts a row, or the rows of a slice.
func (tx Tx) Insert(ctx context.Context, model any) error {
	_, err := tx.NewInsert().Model(model).Exec(ctx)
	return err
}

// Update writes these columns of the row with the model's primary key.
func (tx Tx) Update(ctx context.Context, model any, columns ...string) error {
	_, err := tx.NewUpdate().Model(model).Column(columns...).WherePK().Exec(ctx)
	return err
}

// Delete deletes the rows of the model's table that match where.
func (tx Tx) Delete(ctx context.Context, model any, where string, args ...any) error {
	_, err := tx.NewDelete().Model(model).Where(where, args...).Exec(ctx)
	return err
}

// deleteOf deletes the rows of a user, or of the users of a query, from these tables.
func (tx Tx) deleteOf(ctx context.Context, users any, tables ...string) error {
	for _, table := range tables {
		if _, err := tx.NewDelete().TableExpr(table).Where("user_id IN (?)", users).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Record writes an activity about a subject, whose name is label.
func (tx Tx) Record(ctx context.Context, accountID uuid.UUID, actor Actor, action Action, subjectID uuid.UUID, label string) error {
	return tx.RecordActivity(ctx, actor, Activity{AccountID: accountID, Action: action, SubjectID: &subjectID, Label: label})
}

// recordRename is Record for a subject whose name was former.
func (tx Tx) recordRename(
	ctx context.Context, accountID uuid.UUID, actor Actor, action Action, subjectID uuid.UUID, label, former string,
) error {
	activity := Activity{AccountID: accountID, Action: action, SubjectID: &subjectID, Label: label, FormerLabel: former}
	return tx.RecordActivity(ctx, actor, activity)
}

// RecordActivity sets the actor, the time and, if it is missing, the id of the activity, writes it
// and queues the mails about it. If a user repeats a change, RecordActivity only counts the repeat
// and moves the first one to the newest place.
func (tx Tx) RecordActivity(ctx context.Context, actor Actor, activity Activity) error {
	if activity.ID == uuid.Nil {
		activity.ID = newID()
	}
	activity.At, activity.Count = tx.Now(), max(1, activity.Count)
	activity.ActorKind, activity.Address = actor.Kind, actor.Address
	if actor.Kind == ActorUser {
		activity.ActorID = &actor.ID
		if slices.Contains(repeatable, activity.Action) {
			first, err := tx.countRepeat(ctx, activityRepeat{
				UserID: actor.ID, AccountID: activity.AccountID, Action: activity.Action, ActivityID: activity.ID, Address: actor.Address,
				// A hash, because a long detail does not fit into an index.
				Change: fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%s",
					activity.SubjectID, activity.FormerLabel, activity.Label, activity.Detail))),
			})
			if err != nil || !first {
				return err
			}
		}
	}
	if err := tx.Insert(ctx, &activity); err != nil {
		return err
	}
	return queueNotice(ctx, tx, activity)
}

// countRepeat counts a wrong password or a change in its period, and reports whether it is the
// first one, which the caller records.
func (tx Tx) countRepeat(ctx context.Context, repeat activityRepeat) (first bool, err error) {
	repeat.Period = tx.Now().Truncate(repeatPeriod)
	var recorded uuid.UUID
	err = tx.NewInsert().Model(&repeat).On("CONFLICT (user_id, action, period, change) DO UPDATE").
		Set("repeats = repeated.repeats + 1").
		Set("account_id = EXCLUDED.account_id, last_id = EXCLUDED.activity_id, last_at = ?", tx.Now()).
		Set("elsewhere = repeated.elsewhere OR repeated.address <> EXCLUDED.address").
		Returning("activity_id").Scan(ctx, &recorded)
	return recorded == repeat.ActivityID, err
}

// RecordEnd is Record for a revocation, removal or disabling. It also queues the end of the calls
// of the subject, even without a LiveKit server, because operators' commands do not know whether
// the portal has one.
func (tx Tx) RecordEnd(ctx context.Context, accountID uuid.UUID, actor Actor, action Action, subjectID uuid.UUID, label string) error {
	return tx.recordEnd(ctx, actor, Activity{AccountID: accountID, Action: action, SubjectID: &subjectID, Label: label})
}

func (tx Tx) recordEnd(ctx context.Context, actor Actor, activity Activity) error {
	activity.ID = newID()
	if err := tx.RecordActivity(ctx, actor, activity); err != nil {
		return err
	}
	return tx.hangUp(ctx, activity.ID, *activity.SubjectID, tx.Now())
}

// hangUp queues the end of the calls of a subject.
func (tx Tx) hangUp(ctx context.Context, activityID, subjectID uuid.UUID, from time.Time) error {
	return tx.Insert(ctx, &hangUp{ActivityID: activityID, SubjectID: subjectID, DueAt: from, ExpiresAt: from.Add(HangUpLife)})
}

// laterNow returns the later one of this process's time and the database's. A key that has expired
// by the database's clock therefore stays expired if the process's clock is behind. A SQLite
// database has the clock of the process.
func (tx Tx) laterNow(ctx context.Context) (time.Time, error) {
	now := tx.Now()
	if !isPostgres(tx) {
		return now, nil
	}
	database, err := postgresNow(ctx, tx)
	if database.After(now) {
		now = database.UTC()
	}
	return now, err
}

func postgresNow(ctx context.Context, db bun.IDB) (now time.Time, err error) {
	err = db.NewSelect().ColumnExpr("clock_timestamp()").Scan(ctx, &now)
	return now, err
}

// maxClockSkew is more than synchronized clocks differ by.
const maxClockSkew = 5 * time.Second

// warnOfClock logs a warning if the process's clock differs from that of PostgreSQL. Instances
// refuse the widget tokens of one whose clock is more than a minute ahead.
func (db *DB) warnOfClock(ctx context.Context) error {
	if !isPostgres(db) {
		return nil
	}
	before := db.Now()
	database, err := postgresNow(ctx, db)
	if err != nil {
		return failed("read the time of the database", err)
	}
	if before.Sub(database) > maxClockSkew || database.Sub(db.Now()) > maxClockSkew {
		db.logger.WarnContext(ctx, "the clock of this machine differs from that of the database; synchronize both",
			slog.String("ahead", before.Sub(database).Round(time.Second).String()))
	}
	return nil
}

// hasEnded reports whether a key is revoked or has expired.
func (tx Tx) hasEnded(ctx context.Context, key Key) (bool, error) {
	now, err := tx.Now(), error(nil)
	if key.ExpiresAt != nil {
		now, err = tx.laterNow(ctx)
	}
	return key.EndedAt(now) != nil, err
}

// refuses is hasEnded as authentication sees it: with the clock of the database alone, so that a
// key that works can always be revoked.
func (tx Tx) refuses(ctx context.Context, key Key) (bool, error) {
	now, err := tx.Now(), error(nil)
	if key.ExpiresAt != nil && isPostgres(tx) {
		now, err = postgresNow(ctx, tx)
	}
	return key.EndedAt(now) != nil, err
}

// The locks below last until the transaction ends. Every transaction takes them in this order:
// subjects of sign-in, account, user, and then keys, links and sessions.

// lockSubjects lets only one transaction at a time count the wrong passwords of these subjects. All
// transactions lock the email, the address and the device in this order, so they cannot deadlock.
func (tx Tx) lockSubjects(ctx context.Context, subjects []subject) error {
	if !isPostgres(tx) {
		return nil
	}
	for _, subject := range subjects {
		key := int64(binary.BigEndian.Uint64(subject.hash)) //nolint:gosec // any 64 bits of the hash will do
		if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock(?)", key); err != nil {
			return err
		}
	}
	return nil
}

// lockAccountsTable reads the account, so that the transaction uses the table accounts before
// others. A restore locks the tables in this order. A transaction that changes a key and then
// records an activity, which refers to the account, would otherwise deadlock with it.
func (tx Tx) lockAccountsTable(ctx context.Context, accountID uuid.UUID) error {
	if !isPostgres(tx) {
		return nil
	}
	_, err := tx.NewSelect().Model((*Account)(nil)).Column("id").Where("id = ?", accountID).Exec(ctx)
	return err
}

// lockAccount locks the account, so that only one transaction at a time adds its keys, or adds and
// removes its agents.
func (tx Tx) lockAccount(ctx context.Context, accountID uuid.UUID) error {
	query := tx.NewSelect().Model((*Account)(nil)).Column("id").Where("id = ?", accountID)
	_, err := tx.db.locked(query, "NO KEY UPDATE").Exec(ctx)
	return err
}

// lockEnabledAccount returns [ErrWrongCredentials] if the account is disabled, and lets nobody
// disable it.
func (tx Tx) lockEnabledAccount(ctx context.Context, id uuid.UUID) error {
	query := tx.NewSelect().Model((*Account)(nil)).Column("id").Where("id = ? AND disabled_at IS NULL", id)
	return lockOne(ctx, tx.db.locked(query, "SHARE"))
}

// lockUser locks one of the account's users, so that only one transaction at a time changes the
// factors. If there is no such user, the error is [ErrWrongCredentials].
func (tx Tx) lockUser(ctx context.Context, accountID, id uuid.UUID) error {
	return tx.lockUserWhere(ctx, "account_id = ? AND id = ? AND removed_at IS NULL", accountID, id)
}

// lockEnabled locks an account and one of its users. If one of them is disabled, it returns
// [ErrSignInDisabled].
func (tx Tx) lockEnabled(ctx context.Context, accountID, userID uuid.UUID) error {
	err := tx.lockEnabledAccount(ctx, accountID)
	if err == nil {
		err = tx.lockUserWhere(ctx, "id = ? AND disabled_at IS NULL", userID)
	}
	return disabledIfWrong(err)
}

// lockVerified locks the account and the user that a sign-in has verified. If one of them was
// disabled since, or the password has changed, it returns [ErrWrongCredentials].
func (tx Tx) lockVerified(ctx context.Context, user User) error {
	if err := tx.lockEnabledAccount(ctx, user.AccountID); err != nil {
		return err
	}
	return tx.lockPassword(ctx, user)
}

// lockPassword locks a user, or returns [ErrWrongCredentials] if the user was disabled or the
// password has changed since it was verified.
func (tx Tx) lockPassword(ctx context.Context, user User) error {
	return tx.lockUserWhere(ctx, "id = ? AND password_hash = ? AND disabled_at IS NULL", user.ID, user.PasswordHash)
}

func (tx Tx) lockUserWhere(ctx context.Context, where string, args ...any) error {
	query := tx.NewSelect().Model((*User)(nil)).Column("id").Where(where, args...)
	return lockOne(ctx, tx.db.locked(query, "NO KEY UPDATE"))
}

// lockOne returns [ErrWrongCredentials] if the query finds no row.
func lockOne(ctx context.Context, query *bun.SelectQuery) error {
	return noRows(query.Scan(ctx, new(uuid.UUID)), ErrWrongCredentials)
}

// statementSpans is a [bun.QueryHook] that makes a span of each statement of a traced request. A
// span has the operation and the table, and never the SQL, which contains the arguments.
type statementSpans struct{ tracer trace.Tracer }

// tableName does not match an expression in place of a table, which may contain arguments.
var tableName = regexp.MustCompile(`^[a-z_]+$`)

// BeforeQuery implements [bun.QueryHook].
func (h statementSpans) BeforeQuery(ctx context.Context, event *bun.QueryEvent) context.Context {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx // a background task
	}
	name := event.Operation()
	attributes := append(systemOf(event.DB), attribute.String("db.operation.name", name))
	if event.IQuery != nil && tableName.MatchString(event.IQuery.GetTableName()) {
		attributes = append(attributes, attribute.String("db.collection.name", event.IQuery.GetTableName()))
		name += " " + event.IQuery.GetTableName()
	}
	ctx, _ = h.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
	return ctx
}

// AfterQuery implements [bun.QueryHook].
func (h statementSpans) AfterQuery(ctx context.Context, event *bun.QueryEvent) {
	span := trace.SpanFromContext(ctx)
	if event.Err != nil && !errors.Is(event.Err, sql.ErrNoRows) {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

func systemOf(db bun.IDB) []attribute.KeyValue {
	system := "sqlite"
	if isPostgres(db) {
		system = "postgresql"
	}
	return []attribute.KeyValue{attribute.String("db.system.name", system)}
}
