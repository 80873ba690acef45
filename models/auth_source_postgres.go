package models

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Both statements refuse to run on a standby, whose rows may be of the past:
// a server that was demoted without dropping its connections returns no row.
const (
	epochStatement = "SELECT value FROM auth_epoch WHERE NOT pg_is_in_recovery()"
	keysStatement  = `SELECT e.value, k.key_hash, k.id, k.account_id, k.revoked_at IS NULL AND a.disabled_at IS NULL
		FROM auth_epoch AS e
		LEFT JOIN (api_keys AS k JOIN accounts AS a ON a.id = k.account_id) ON k.key_hash = ANY ($1)
		WHERE NOT pg_is_in_recovery()`
)

var errStandby = errors.New("the database is a standby")

// postgresAuthSource asks with prepared statements on a connection of its own,
// several times cheaper for the server than statements it has to plan.
type postgresAuthSource struct {
	config *pgx.ConnConfig

	mu   sync.Mutex // one question at a time
	conn *pgx.Conn  // nil until the first use, and after a failure
}

func newPostgresAuthSource(databaseURL string) (*postgresAuthSource, error) {
	config, err := postgresConfig(databaseURL)
	if err != nil {
		return nil, err
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	// The plans are known: by the index, whatever is asked for and however
	// small or stale the statistics say that the tables are. Without the rest
	// the planner would compile them too, which takes 12 ms a statement.
	config.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
	for _, setting := range []string{"enable_seqscan", "enable_hashjoin", "enable_mergejoin", "enable_bitmapscan", "jit"} {
		config.RuntimeParams[setting] = "off"
	}
	return &postgresAuthSource{config: config}, nil
}

func (s *postgresAuthSource) epoch(ctx context.Context) (epoch authEpoch, err error) {
	err = s.try(ctx, func(conn *pgx.Conn) error {
		var value []byte
		err := conn.QueryRow(ctx, epochStatement).Scan(&value)
		copy(epoch[:], value)
		return err
	})
	return epoch, err
}

func (s *postgresAuthSource) keys(ctx context.Context, hashes []keyHash) (epoch authEpoch, found map[keyHash]keyFacts, err error) {
	wanted := make([][]byte, len(hashes))
	for i := range hashes {
		wanted[i] = hashes[i][:]
	}
	err = s.try(ctx, func(conn *pgx.Conn) error {
		found = make(map[keyHash]keyFacts, len(hashes))
		rows, err := conn.Query(ctx, keysStatement, wanted)
		if err != nil {
			return err
		}
		var value, hash []byte
		var keyID, accountID *uuid.UUID
		var active *bool
		_, err = pgx.ForEachRow(rows, []any{&value, &hash, &keyID, &accountID, &active}, func() error {
			copy(epoch[:], value)
			if keyID != nil {
				found[keyHash(hash)] = keyFacts{Principal{AccountID: *accountID, KeyID: *keyID}, *active}
			}
			return nil
		})
		if err == nil && rows.CommandTag().RowsAffected() == 0 {
			err = pgx.ErrNoRows
		}
		return err
	})
	return epoch, found, err
}

// try runs a question, and once more on a new connection if the old one turns
// out to be dead: both only read.
func (s *postgresAuthSource) try(ctx context.Context, ask func(*pgx.Conn) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	reused := s.conn != nil
	err := s.once(ctx, ask)
	if err != nil && reused && ctx.Err() == nil {
		err = s.once(ctx, ask)
	}
	return err
}

func (s *postgresAuthSource) once(ctx context.Context, ask func(*pgx.Conn) error) error {
	if s.conn == nil {
		conn, err := pgx.ConnectConfig(ctx, s.config)
		if err != nil {
			return err
		}
		s.conn = conn
	}
	err := ask(s.conn)
	if errors.Is(err, pgx.ErrNoRows) {
		err = errStandby
	}
	if err != nil {
		// Whatever it was, the next question starts afresh.
		_ = s.disconnect()
	}
	return err
}

func (s *postgresAuthSource) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.disconnect()
}

func (s *postgresAuthSource) disconnect() error {
	if s.conn == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := s.conn.Close(ctx)
	s.conn = nil
	return err
}
