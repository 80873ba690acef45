package models

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
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

// inBinary is the format of all parameters and columns.
var inBinary = []int16{pgtype.BinaryFormatCode}

// postgresAuthSource asks with prepared statements on a connection of its own,
// several times cheaper for the server than statements it has to plan, and in
// the protocol's own terms, which cost this side half of what rows that any
// type can be scanned from do.
type postgresAuthSource struct {
	config *pgconn.Config
	types  *pgtype.Map

	mu           sync.Mutex                   // one question at a time
	conn         *pgconn.PgConn               // nil until the first use, and after a failure
	epochs, rows *pgconn.StatementDescription // prepared on conn
}

func newPostgresAuthSource(databaseURL string) (*postgresAuthSource, error) {
	config, err := postgresConfig(databaseURL)
	if err != nil {
		return nil, err
	}
	// The plans are known: by the index, whatever is asked for and however
	// small or stale the statistics say that the tables are. Without the rest
	// the planner would compile them too, which takes 12 ms a statement.
	config.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
	for _, setting := range []string{"enable_seqscan", "enable_hashjoin", "enable_mergejoin", "enable_bitmapscan", "jit"} {
		config.RuntimeParams[setting] = "off"
	}
	return &postgresAuthSource{config: &config.Config, types: pgtype.NewMap()}, nil
}

func (s *postgresAuthSource) epoch(deadline time.Time) (epoch authEpoch, err error) {
	err = s.try(deadline, func() error {
		return s.read(s.epochs, nil, func(row [][]byte) error {
			copy(epoch[:], row[0])
			return nil
		})
	})
	return epoch, err
}

func (s *postgresAuthSource) keys(deadline time.Time, hashes []keyHash) (epoch authEpoch, found map[keyHash]keyFacts, err error) {
	wanted := make([][]byte, len(hashes))
	for i := range hashes {
		wanted[i] = hashes[i][:]
	}
	err = s.try(deadline, func() error {
		parameter, err := s.types.Encode(pgtype.ByteaArrayOID, pgtype.BinaryFormatCode, wanted, nil)
		if err != nil {
			return err
		}
		found = make(map[keyHash]keyFacts, len(hashes))
		return s.read(s.rows, [][]byte{parameter}, func(row [][]byte) error {
			copy(epoch[:], row[0])
			if row[1] == nil {
				return nil // none of these keys is there
			}
			keyID, idErr := uuid.FromBytes(row[2])
			accountID, accountErr := uuid.FromBytes(row[3])
			found[keyHash(row[1])] = keyFacts{Principal{AccountID: accountID, KeyID: keyID}, row[4][0] == 1}
			return errors.Join(idErr, accountErr)
		})
	})
	return epoch, found, err
}

// try runs a question, and once more on a new connection if the old one turns
// out to be dead: both only read.
func (s *postgresAuthSource) try(deadline time.Time, ask func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	reused := s.conn != nil
	err := s.once(deadline, ask)
	if err != nil && reused && time.Now().Before(deadline) {
		err = s.once(deadline, ask)
	}
	return err
}

func (s *postgresAuthSource) once(deadline time.Time, ask func() error) error {
	if s.conn == nil {
		if err := s.connect(deadline); err != nil {
			return err
		}
	}
	// The connection keeps the deadline, and always has one: to move it on is
	// cheaper by far than a context, and than a timer that is set and stopped.
	err := s.conn.Conn().SetDeadline(deadline)
	if err == nil {
		err = ask()
	}
	if err != nil {
		// Whatever it was, the next question starts afresh.
		s.drop()
	}
	return err
}

// read runs a prepared statement and has each see its rows, of which there is
// at least one.
func (s *postgresAuthSource) read(statement *pgconn.StatementDescription, parameters [][]byte, each func(row [][]byte) error) error {
	rows := s.conn.ExecStatement(context.Background(), statement, parameters, inBinary, inBinary)
	err := errStandby
	for rows.NextRow() {
		if err = each(rows.Values()); err != nil {
			break
		}
	}
	if _, closeErr := rows.Close(); closeErr != nil {
		err = closeErr
	}
	return err
}

func (s *postgresAuthSource) connect(deadline time.Time) error {
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	conn, err := pgconn.ConnectConfig(ctx, s.config)
	if err != nil {
		return err
	}
	s.conn = conn
	s.epochs, err = conn.Prepare(ctx, "epoch", epochStatement, nil)
	if err == nil {
		s.rows, err = conn.Prepare(ctx, "keys", keysStatement, nil)
	}
	if err != nil {
		s.drop()
	}
	return err
}

// drop gives the connection up without waiting for the server.
func (s *postgresAuthSource) drop() {
	_ = s.conn.Conn().SetDeadline(time.Now())
	_ = s.conn.Close(context.Background())
	s.conn = nil
}

func (s *postgresAuthSource) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := s.conn.Close(ctx)
	s.conn = nil
	return err
}
