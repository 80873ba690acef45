package models

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
)

// sqliteAuthSource asks the file, which another process may write, with
// prepared statements.
type sqliteAuthSource struct {
	epochs, rows *sql.Stmt
	// idle holds a token unless a question is under way.
	idle chan struct{}
}

func newSQLiteAuthSource(ctx context.Context, db *sql.DB) (*sqliteAuthSource, error) {
	epochs, err := db.PrepareContext(ctx, "SELECT value FROM auth_epoch")
	if err != nil {
		return nil, failed("prepare the question for the epoch", err)
	}
	rows, err := db.PrepareContext(ctx, `SELECT e.value, k.key_hash, k.id, k.account_id, k.revoked_at IS NULL AND a.disabled_at IS NULL
		FROM auth_epoch AS e
		LEFT JOIN json_each(?) AS wanted
		LEFT JOIN api_keys AS k ON k.key_hash = unhex(wanted.value)
		LEFT JOIN accounts AS a ON a.id = k.account_id`)
	if err != nil {
		return nil, failed("prepare the question for keys", errors.Join(err, epochs.Close()))
	}
	s := &sqliteAuthSource{epochs: epochs, rows: rows, idle: make(chan struct{}, 1)}
	s.idle <- struct{}{}
	return s, nil
}

// sqliteAuthAnswer is what a question for the epoch or for keys comes to.
type sqliteAuthAnswer struct {
	epoch authEpoch
	found map[keyHash]keyFacts
	err   error
}

func (s *sqliteAuthSource) epoch(deadline time.Time) (authEpoch, error) {
	answer := s.within(deadline, s.readEpoch)
	return answer.epoch, answer.err
}

func (s *sqliteAuthSource) keys(deadline time.Time, hashes []keyHash) (authEpoch, map[keyHash]keyFacts, error) {
	answer := s.within(deadline, func() sqliteAuthAnswer { return s.readKeys(hashes) })
	return answer.epoch, answer.found, answer.err
}

// within asks on a goroutine of its own: where another process holds locks,
// SQLite waits for longer than it is told to, in the driver, and a context
// would not change that.
func (s *sqliteAuthSource) within(deadline time.Time, ask func() sqliteAuthAnswer) sqliteAuthAnswer {
	patience := time.NewTimer(time.Until(deadline))
	defer patience.Stop()
	tooLate := sqliteAuthAnswer{err: context.DeadlineExceeded}
	select {
	case <-s.idle:
	case <-patience.C:
		return tooLate
	}
	answered := make(chan sqliteAuthAnswer, 1)
	go func() {
		defer func() { s.idle <- struct{}{} }()
		answered <- ask()
	}()
	select {
	case answer := <-answered:
		return answer
	case <-patience.C:
		return tooLate
	}
}

func (s *sqliteAuthSource) readEpoch() (answer sqliteAuthAnswer) {
	var value []byte
	answer.err = s.epochs.QueryRowContext(context.Background()).Scan(&value)
	if errors.Is(answer.err, sql.ErrNoRows) {
		answer.err = errNoEpoch
	}
	copy(answer.epoch[:], value)
	return answer
}

func (s *sqliteAuthSource) readKeys(hashes []keyHash) (answer sqliteAuthAnswer) {
	wanted := make([]string, len(hashes))
	for i := range hashes {
		wanted[i] = hex.EncodeToString(hashes[i][:])
	}
	list, err := json.Marshal(wanted)
	if err != nil {
		return sqliteAuthAnswer{err: err}
	}
	rows, err := s.rows.QueryContext(context.Background(), string(list))
	if err != nil {
		return sqliteAuthAnswer{err: err}
	}
	defer func() { answer.err = errors.Join(answer.err, rows.Close()) }()
	answer = sqliteAuthAnswer{found: make(map[keyHash]keyFacts, len(hashes)), err: errNoEpoch}
	for rows.Next() {
		answer.err = nil // the epoch stands in every row
		var value, hash []byte
		var keyID, accountID uuid.NullUUID
		var active bool
		if err := rows.Scan(&value, &hash, &keyID, &accountID, &active); err != nil {
			return sqliteAuthAnswer{err: err}
		}
		copy(answer.epoch[:], value)
		if keyID.Valid {
			answer.found[keyHash(hash)] = keyFacts{Principal{AccountID: accountID.UUID, KeyID: keyID.UUID}, active}
		}
	}
	if err := rows.Err(); err != nil {
		return sqliteAuthAnswer{err: err}
	}
	return answer
}

func (s *sqliteAuthSource) close() error {
	return errors.Join(s.epochs.Close(), s.rows.Close())
}
