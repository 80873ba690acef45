package authn

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

const (
	sqliteEpoch = "SELECT value FROM auth_epoch"
	sqliteKeys  = `SELECT e.value, k.key_hash, k.id, k.account_id,
			k.revoked_at IS NULL AND a.disabled_at IS NULL, k.revoked_at IS NOT NULL
		FROM auth_epoch AS e
		LEFT JOIN json_each(?) AS wanted
		LEFT JOIN api_keys AS k ON k.key_hash = unhex(wanted.value)
		LEFT JOIN accounts AS a ON a.id = k.account_id`
	// The keys with these ids come without their hashes.
	sqliteIDs = sqliteKeys + ` UNION ALL SELECT e.value, NULL, k.id, k.account_id,
			k.revoked_at IS NULL AND a.disabled_at IS NULL, k.revoked_at IS NOT NULL
		FROM auth_epoch AS e
		LEFT JOIN json_each(?) AS wanted
		LEFT JOIN api_keys AS k ON k.id = wanted.value
		LEFT JOIN accounts AS a ON a.id = k.account_id`
)

// SQLite is the [Source] for SQLite. It reads the file for each batch, because another process may
// have written to it.
type SQLite struct {
	db                           *sql.DB
	epochStmt, keysStmt, idsStmt *sql.Stmt

	// turn holds a token while no statement is running. A statement can run past its deadline.
	turn chan struct{}
}

// NewSQLite returns a source that owns db. Nothing else may use db, and Close closes it.
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
	s := &SQLite{
		db: db, epochStmt: epochStmt, keysStmt: keysStmt, idsStmt: idsStmt, turn: make(chan struct{}, 1),
	}
	s.turn <- struct{}{}
	return s, nil
}

// sqliteRead is the result of a statement.
type sqliteRead struct {
	epoch Epoch
	keys  map[KeyRef]Key
	err   error
}

// Epoch implements [Source].
func (s *SQLite) Epoch(deadline time.Time) (Epoch, error) {
	result := s.withDeadline(deadline, s.readEpoch)
	return result.epoch, result.err
}

// Keys implements [Source].
func (s *SQLite) Keys(deadline time.Time, wanted []KeyRef) (Epoch, map[KeyRef]Key, error) {
	result := s.withDeadline(deadline, func() sqliteRead { return s.readKeys(wanted) })
	return result.epoch, result.keys, result.err
}

// withDeadline calls read on another goroutine and returns at the deadline at the latest. While
// another process holds a lock, SQLite can block inside the driver for longer than its busy
// timeout. Canceling a context does not stop it.
func (s *SQLite) withDeadline(deadline time.Time, read func() sqliteRead) sqliteRead {
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	tooLate := sqliteRead{err: context.DeadlineExceeded}
	select {
	case <-s.turn:
	case <-timer.C:
		return tooLate
	}
	results := make(chan sqliteRead, 1)
	go func() {
		defer func() { s.turn <- struct{}{} }()
		results <- s.guarded(read)
	}()
	select {
	case result := <-results:
		return result
	case <-timer.C:
		return tooLate
	}
}

// guarded calls read. It turns a panic into an error, because a panic on this goroutine would end
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
	var value []byte
	result.err = s.epochStmt.QueryRowContext(context.Background()).Scan(&value)
	if errors.Is(result.err, sql.ErrNoRows) {
		result.err = ErrNoEpoch
	}
	copy(result.epoch.Value[:], value)
	return result
}

func (s *SQLite) readKeys(wanted []KeyRef) (result sqliteRead) {
	rows, err := s.queryKeys(wanted)
	if err != nil {
		return sqliteRead{err: err}
	}
	defer func() { result.err = errors.Join(result.err, rows.Close()) }()
	result = sqliteRead{keys: make(map[KeyRef]Key, len(wanted)), err: ErrNoEpoch}
	for rows.Next() {
		result.err = nil // every row has the epoch
		var value, hash []byte
		var id, accountID uuid.NullUUID
		var active, revoked bool
		if err := rows.Scan(&value, &hash, &id, &accountID, &active, &revoked); err != nil {
			return sqliteRead{err: err}
		}
		copy(result.epoch.Value[:], value)
		if id.Valid {
			result.keys[keyRef(hash, id.UUID)] = Key{ID: id.UUID, AccountID: accountID.UUID, Active: active, Revoked: revoked}
		}
	}
	if err := rows.Err(); err != nil {
		return sqliteRead{err: err}
	}
	return result
}

// queryKeys runs the statement that reads these keys.
func (s *SQLite) queryKeys(wanted []KeyRef) (*sql.Rows, error) {
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
		return nil, err
	}
	if len(ids) == 0 {
		return s.keysStmt.QueryContext(context.Background(), string(hashList))
	}
	return s.idsStmt.QueryContext(context.Background(), string(hashList), string(idList))
}

// keyRef returns the reference by which the key of a row was looked up: its hash, or its id if the
// row has no hash.
func keyRef(hash []byte, id uuid.UUID) KeyRef {
	if hash == nil {
		return KeyRef{ID: id}
	}
	return KeyRef{Hash: KeyHash(hash)}
}

// Close implements [Source].
func (s *SQLite) Close() error {
	return errors.Join(s.epochStmt.Close(), s.keysStmt.Close(), s.idsStmt.Close(), s.db.Close())
}
