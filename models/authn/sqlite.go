package authn

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"
)

const (
	// Times are in seconds. An expiry that is no time has passed.
	sqliteEpoch = "SELECT value, unixepoch('now', 'subsec') FROM auth_epoch"
	sqliteLimit = "CASE WHEN k.expires_at IS NOT NULL THEN COALESCE(unixepoch(k.expires_at, 'subsec'), 1) ELSE 0 END, k.agents, k.networks, k.limits IS NOT NULL OR a.limits IS NOT NULL, COALESCE(k.access <> 'agents', false)"
	sqliteKey   = `SELECT e.value, unixepoch('now', 'subsec'), k.key_hash, k.id, k.account_id,
			k.revoked_at IS NULL AND a.disabled_at IS NULL, k.revoked_at IS NOT NULL, ` + sqliteLimit
	sqliteHashes = `
		FROM auth_epoch AS e
		LEFT JOIN json_each(?) AS wanted
		LEFT JOIN api_keys AS k ON k.key_hash = unhex(wanted.value)
		LEFT JOIN accounts AS a ON a.id = k.account_id`
	sqliteKeys = sqliteKey + sqliteHashes
	// The keys with these ids come without their hashes, and with the versions of their trust
	// rules, which keys with hashes do not have.
	sqliteIDs = sqliteKey + ", NULL" + sqliteHashes + `
		UNION ALL SELECT e.value, unixepoch('now', 'subsec'), NULL, k.id, k.account_id,
			k.revoked_at IS NULL AND a.disabled_at IS NULL, k.revoked_at IS NOT NULL, ` + sqliteLimit + `, k.trust_version
		FROM auth_epoch AS e
		LEFT JOIN json_each(?) AS wanted
		LEFT JOIN api_keys AS k ON k.id = wanted.value
		LEFT JOIN accounts AS a ON a.id = k.account_id`
)

// SQLite is the [Reader] for SQLite. It reads the file for each batch, because another process may
// have written to it.
type SQLite struct {
	db                           *sql.DB
	epochStmt, keysStmt, idsStmt *sql.Stmt

	// calls are for one goroutine. A new one for each statement would grow its stack each time,
	// which takes a quarter of the time of the statement.
	calls  chan func()
	closed chan struct{}
}

// NewSQLite returns a reader that owns db. Nothing else may use db, and Close closes it.
func NewSQLite(ctx context.Context, db *sql.DB) (*SQLite, error) {
	epochStmt, err := db.PrepareContext(ctx, sqliteEpoch)
	if err != nil {
		return nil, fmt.Errorf("prepare the epoch statement: %w", errors.Join(err, db.Close()))
	}
	keysStmt, err := db.PrepareContext(ctx, sqliteKeys)
	if err != nil {
		return nil, fmt.Errorf("prepare the keys statement: %w", errors.Join(err, db.Close()))
	}
	idsStmt, err := db.PrepareContext(ctx, sqliteIDs)
	if err != nil {
		return nil, fmt.Errorf("prepare the ids statement: %w", errors.Join(err, db.Close()))
	}
	s := &SQLite{db: db, epochStmt: epochStmt, keysStmt: keysStmt, idsStmt: idsStmt, calls: make(chan func()), closed: make(chan struct{})}
	go s.run()
	return s, nil
}

// sqliteRead is the result of a statement.
type sqliteRead struct {
	moment Moment
	keys   map[KeyRef]Key
	err    error
}

// sqliteMoment is the start of every row.
type sqliteMoment struct {
	value []byte
	now   float64
}

// sqliteRow is a row of a result.
type sqliteRow struct {
	sqliteMoment

	hash             []byte
	id, accountID    uuid.NullUUID
	active, revoked  bool
	expiresAt        float64 // 0: NULL
	agents, networks []byte
	calls, reports   bool
	trust            uuid.NullUUID
}

func (r *sqliteMoment) moment() (m Moment) {
	copy(m.Epoch.Value[:], r.value)
	m.Time = sqliteTime(r.now)
	return m
}

// sqliteTime returns the time after so many seconds, which has the precision of SQLite's clock. 0
// is the zero time.
func sqliteTime(seconds float64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(math.Round(1000 * seconds)))
}

// Epoch implements [Reader].
func (s *SQLite) Epoch(deadline time.Time) (Moment, error) {
	result := s.withDeadline(deadline, s.readEpoch)
	return result.moment, result.err
}

// Keys implements [Reader].
func (s *SQLite) Keys(deadline time.Time, wanted []KeyRef) (Moment, map[KeyRef]Key, error) {
	result := s.withDeadline(deadline, func() sqliteRead { return s.readKeys(wanted) })
	return result.moment, result.keys, result.err
}

func (s *SQLite) run() {
	for {
		select {
		case call := <-s.calls:
			call()
		case <-s.closed:
			return
		}
	}
}

// withDeadline calls read on another goroutine and returns at the deadline at the latest. While
// another process holds a lock, SQLite can block inside the driver for longer than its busy
// timeout. Canceling a context does not stop it.
func (s *SQLite) withDeadline(deadline time.Time, read func() sqliteRead) sqliteRead {
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	tooLate := sqliteRead{err: context.DeadlineExceeded}
	results := make(chan sqliteRead, 1)
	select {
	case s.calls <- func() { results <- s.guarded(read) }:
	case <-timer.C: // an earlier statement runs past its deadline
		return tooLate
	case <-s.closed:
		return sqliteRead{err: sql.ErrConnDone}
	}
	select {
	case result := <-results:
		return result
	case <-timer.C:
		return tooLate
	}
}

// guarded calls read and turns a panic into an error, because a panic on this goroutine would end
// the process.
func (s *SQLite) guarded(read func() sqliteRead) (result sqliteRead) {
	defer func() {
		if v := recover(); v != nil {
			result = sqliteRead{err: panicked(v)}
		}
	}()
	return read()
}

func (s *SQLite) readEpoch() (result sqliteRead) {
	var row sqliteMoment // smaller than a whole row, for every request allocates one
	result.err = s.epochStmt.QueryRowContext(context.Background()).Scan(&row.value, &row.now)
	if errors.Is(result.err, sql.ErrNoRows) {
		result.err = ErrNoEpoch
	}
	result.moment = row.moment()
	return result
}

func (s *SQLite) readKeys(wanted []KeyRef) (result sqliteRead) {
	rows, byID, err := s.queryKeys(wanted)
	if err != nil {
		return sqliteRead{err: err}
	}
	defer func() { result.err = errors.Join(result.err, rows.Close()) }()
	result = sqliteRead{keys: make(map[KeyRef]Key, len(wanted)), err: ErrNoEpoch}
	for rows.Next() {
		result.err = nil // every row has the epoch
		var row sqliteRow
		columns := []any{
			&row.value, &row.now, &row.hash, &row.id, &row.accountID, &row.active, &row.revoked,
			&row.expiresAt, &row.agents, &row.networks, &row.calls, &row.reports,
		}
		if byID {
			columns = append(columns, &row.trust)
		}
		if err := rows.Scan(columns...); err != nil {
			return sqliteRead{err: err}
		}
		result.moment = row.moment()
		if row.id.Valid {
			result.keys[keyRef(row.hash, row.id.UUID)] = Key{
				ID: row.id.UUID, AccountID: row.accountID.UUID, Active: row.active, Revoked: row.revoked,
				Restrictions: newRestrictions(sqliteTime(row.expiresAt), row.agents, row.networks, row.calls, row.reports, row.trust.UUID),
			}
		}
	}
	if err := rows.Err(); err != nil {
		return sqliteRead{err: err}
	}
	return result
}

// queryKeys runs the statement that reads these keys. If it reads keys by their ids, its rows also
// have the versions of trust rules.
func (s *SQLite) queryKeys(wanted []KeyRef) (rows *sql.Rows, byID bool, err error) {
	hashes, ids := make([]string, 0, len(wanted)), []uuid.UUID{}
	for i := range wanted {
		if ref := &wanted[i]; ref.ID != uuid.Nil {
			ids = append(ids, ref.ID)
		} else {
			hashes = append(hashes, hex.EncodeToString(ref.Hash[:]))
		}
	}
	hashList, hashErr := json.Marshal(hashes)
	idList, idErr := json.Marshal(ids)
	if err := errors.Join(hashErr, idErr); err != nil {
		return nil, false, err
	}
	if len(ids) == 0 {
		rows, err = s.keysStmt.QueryContext(context.Background(), string(hashList))
		return rows, false, err
	}
	rows, err = s.idsStmt.QueryContext(context.Background(), string(hashList), string(idList))
	return rows, true, err
}

// keyRef returns the reference by which the key of a row was looked up: its hash, or its id if the
// row has no hash.
func keyRef(hash []byte, id uuid.UUID) KeyRef {
	if hash == nil {
		return KeyRef{ID: id}
	}
	return KeyRef{Hash: KeyHash(hash)}
}

// Close implements [Reader].
func (s *SQLite) Close() error {
	close(s.closed)
	return errors.Join(s.epochStmt.Close(), s.keysStmt.Close(), s.idsStmt.Close(), s.db.Close())
}
