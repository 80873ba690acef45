package models

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/google/uuid"
)

// sqliteAuthSource asks the file, which another process may write, with
// prepared statements.
type sqliteAuthSource struct {
	epochs, found *sql.Stmt
}

func newSQLiteAuthSource(ctx context.Context, db *sql.DB) (*sqliteAuthSource, error) {
	epochs, err := db.PrepareContext(ctx, "SELECT value FROM auth_epoch")
	if err != nil {
		return nil, failed("prepare the question for the epoch", err)
	}
	found, err := db.PrepareContext(ctx, `SELECT e.value, k.key_hash, k.id, k.account_id, k.revoked_at IS NULL AND a.disabled_at IS NULL
		FROM auth_epoch AS e
		LEFT JOIN json_each(?) AS wanted
		LEFT JOIN api_keys AS k ON k.key_hash = unhex(wanted.value)
		LEFT JOIN accounts AS a ON a.id = k.account_id`)
	if err != nil {
		return nil, failed("prepare the question for keys", errors.Join(err, epochs.Close()))
	}
	return &sqliteAuthSource{epochs, found}, nil
}

func (s *sqliteAuthSource) epoch(ctx context.Context) (epoch authEpoch, err error) {
	var value []byte
	err = s.epochs.QueryRowContext(ctx).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		err = errNoEpoch
	}
	copy(epoch[:], value)
	return epoch, err
}

func (s *sqliteAuthSource) keys(ctx context.Context, hashes []keyHash) (epoch authEpoch, found map[keyHash]keyFacts, err error) {
	wanted := make([]string, len(hashes))
	for i := range hashes {
		wanted[i] = hex.EncodeToString(hashes[i][:])
	}
	list, err := json.Marshal(wanted)
	if err != nil {
		return epoch, nil, err
	}
	rows, err := s.found.QueryContext(ctx, string(list))
	if err != nil {
		return epoch, nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	found = make(map[keyHash]keyFacts, len(hashes))
	noEpoch := errNoEpoch
	for rows.Next() {
		noEpoch = nil // it stands in every row
		var value, hash []byte
		var keyID, accountID uuid.NullUUID
		var active bool
		if err := rows.Scan(&value, &hash, &keyID, &accountID, &active); err != nil {
			return epoch, nil, err
		}
		copy(epoch[:], value)
		if keyID.Valid {
			found[keyHash(hash)] = keyFacts{Principal{AccountID: accountID.UUID, KeyID: keyID.UUID}, active}
		}
	}
	if err := rows.Err(); err != nil {
		return epoch, nil, err
	}
	return epoch, found, noEpoch
}

func (s *sqliteAuthSource) close() error {
	return errors.Join(s.epochs.Close(), s.found.Close())
}
