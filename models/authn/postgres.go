package authn

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// All statements return no row on a standby. A primary that was demoted may keep its connections
// open, and its rows may be out of date.
const (
	postgresEpoch = "SELECT value, now() FROM auth_epoch WHERE NOT pg_is_in_recovery()"
	postgresKey   = `SELECT e.value, now(), k.key_hash, k.id, k.account_id,
			k.revoked_at IS NULL AND a.disabled_at IS NULL, k.revoked_at IS NOT NULL, k.expires_at, k.agents, k.networks, k.limits IS NOT NULL OR a.limits IS NOT NULL, k.access <> 'agents'`
	postgresHashes = `
		FROM auth_epoch AS e
		LEFT JOIN (api_keys AS k JOIN accounts AS a ON a.id = k.account_id) ON k.key_hash = ANY ($1)
		WHERE NOT pg_is_in_recovery()`
	postgresKeys = postgresKey + postgresHashes
	// The keys with these ids come without their hashes, and with the versions of their trust
	// rules, which keys with hashes do not have.
	postgresIDs = postgresKey + ", NULL::uuid" + postgresHashes + `
		UNION ALL SELECT e.value, now(), NULL, k.id, k.account_id,
			k.revoked_at IS NULL AND a.disabled_at IS NULL, k.revoked_at IS NOT NULL, k.expires_at, k.agents, k.networks, k.limits IS NOT NULL OR a.limits IS NOT NULL, k.access <> 'agents', k.trust_version
		FROM auth_epoch AS e
		LEFT JOIN (api_keys AS k JOIN accounts AS a ON a.id = k.account_id) ON k.id = ANY ($2)
		WHERE NOT pg_is_in_recovery()`
)

// binaryFormat is the format of all parameters and columns.
var binaryFormat = []int16{pgtype.BinaryFormatCode}

// Postgres is the [Reader] for PostgreSQL. Because planning each statement costs the server several
// times more, it has a connection of its own for prepared statements. It uses pgconn directly,
// because scanning rows with database/sql or pgx doubles the cost in this process.
type Postgres struct {
	dial  func(context.Context) (*pgconn.PgConn, error)
	stop  func() error
	types *pgtype.Map

	mu        sync.Mutex                   // serializes the statements
	conn      *pgconn.PgConn               // nil until the first use and after an error
	connected uint64                       // counts the connections
	epochStmt *pgconn.StatementDescription // prepared on conn
	keysStmt  *pgconn.StatementDescription // prepared on conn
	idsStmt   *pgconn.StatementDescription // prepared on conn
}

// planner holds the planner settings of each connection. The best plan always uses the index. These
// settings keep PostgreSQL from choosing another plan when its statistics are old or the tables are
// small. Without the last setting, it may start worker processes, which takes 8 ms for each
// statement.
const planner = `SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_hashjoin = off;
	SET enable_mergejoin = off; SET enable_bitmapscan = off; SET max_parallel_workers_per_gather = 0`

// NewPostgres returns a reader that calls dial when it needs a connection, and stop at the end.
func NewPostgres(dial func(context.Context) (*pgconn.PgConn, error), stop func() error) *Postgres {
	return &Postgres{dial: dial, stop: stop, types: pgtype.NewMap()}
}

// Epoch implements [Reader].
func (p *Postgres) Epoch(deadline time.Time) (moment Moment, err error) {
	err = p.retry(deadline, func() error {
		return p.query(p.epochStmt, nil, func(row [][]byte) error {
			moment = p.moment(row)
			return nil
		})
	})
	return moment, err
}

// Keys implements [Reader].
func (p *Postgres) Keys(deadline time.Time, wanted []KeyRef) (moment Moment, keys map[KeyRef]Key, err error) {
	hashes, ids := make([][]byte, 0, len(wanted)), [][16]byte{}
	for i := range wanted {
		if ref := &wanted[i]; ref.ID != uuid.Nil {
			ids = append(ids, ref.ID)
		} else {
			hashes = append(hashes, ref.Hash[:])
		}
	}
	err = p.retry(deadline, func() error {
		statement, parameters, err := p.keysQuery(hashes, ids)
		if err != nil {
			return err
		}
		keys = make(map[KeyRef]Key, len(wanted))
		return p.query(statement, parameters, func(row [][]byte) error {
			moment = p.moment(row)
			if row[3] == nil {
				return nil // no key has one of the hashes, or one of the ids
			}
			id, idErr := uuid.FromBytes(row[3])
			accountID, accountErr := uuid.FromBytes(row[4])
			var trust uuid.UUID // its column is only in the rows of statements with ids
			if len(row) > 12 {
				copy(trust[:], row[12])
			}
			keys[keyRef(row[2], id)] = Key{
				ID: id, AccountID: accountID, Active: row[5][0] == 1, Revoked: row[6][0] == 1,
				Restrictions: newRestrictions(postgresTime(row[7]), row[8], row[9], row[10][0] == 1, row[11][0] == 1, trust),
			}
			return errors.Join(idErr, accountErr)
		})
	})
	return moment, keys, err
}

// keysQuery returns the statement that reads the keys with these hashes and ids.
func (p *Postgres) keysQuery(hashes [][]byte, ids [][16]byte) (*pgconn.StatementDescription, [][]byte, error) {
	hashList, err := p.types.Encode(pgtype.ByteaArrayOID, pgtype.BinaryFormatCode, hashes, nil)
	if err != nil || len(ids) == 0 {
		return p.keysStmt, [][]byte{hashList}, err
	}
	idList, err := p.types.Encode(pgtype.UUIDArrayOID, pgtype.BinaryFormatCode, ids, nil)
	return p.idsStmt, [][]byte{hashList, idList}, err
}

// moment returns the moment in the first two columns of every row.
func (p *Postgres) moment(row [][]byte) Moment {
	return Moment{Epoch{Value: EpochValue(row[0]), Connection: p.connected}, postgresTime(row[1])}
}

// postgresEpochMicros is the zero of timestamps in the binary format, 2000-01-01, in Unix time.
const postgresEpochMicros = 946_684_800_000_000

// postgresTime returns a timestamp in the binary format. NULL is the zero time.
func postgresTime(column []byte) time.Time {
	if column == nil {
		return time.Time{}
	}
	return time.UnixMicro(int64(binary.BigEndian.Uint64(column)) + postgresEpochMicros) //nolint:gosec // a signed number
}

// retry calls read. If read fails on an old connection, retry calls it once more on a new one. This
// is safe because all statements only read.
func (p *Postgres) retry(deadline time.Time, read func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	reused := p.conn != nil
	err := p.try(deadline, read)
	if err != nil && reused && time.Now().Before(deadline) {
		err = p.try(deadline, read)
	}
	return err
}

// try calls read with an open connection. It drops the connection after any error.
func (p *Postgres) try(deadline time.Time, read func() error) error {
	if p.conn == nil {
		if err := p.connect(deadline); err != nil {
			return err
		}
	}
	// Setting the connection's deadline is much cheaper than a context or a timer. It needs no
	// reset, because every statement sets its own.
	err := p.conn.Conn().SetDeadline(deadline)
	answered := false
	defer func() {
		if !answered { // also after a panic
			p.drop()
		}
	}()
	if err == nil {
		err = read()
	}
	answered = err == nil
	return err
}

// query runs a prepared statement and calls each with every row. It returns [ErrStandby] if there
// is no row.
func (p *Postgres) query(
	statement *pgconn.StatementDescription, parameters [][]byte, each func(row [][]byte) error,
) error {
	rows := p.conn.ExecStatement(context.Background(), statement, parameters, binaryFormat, binaryFormat)
	err := ErrStandby
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

func (p *Postgres) connect(deadline time.Time) error {
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	conn, err := p.dial(ctx)
	if err != nil {
		return err
	}
	p.conn = conn
	p.connected++
	if _, err = conn.Exec(ctx, planner).ReadAll(); err == nil {
		p.epochStmt, err = conn.Prepare(ctx, "epoch", postgresEpoch, nil)
	}
	if err == nil {
		p.keysStmt, err = conn.Prepare(ctx, "keys", postgresKeys, nil)
	}
	if err == nil {
		p.idsStmt, err = conn.Prepare(ctx, "ids", postgresIDs, nil)
	}
	if err != nil {
		p.drop()
	}
	return err
}

// drop closes the connection without waiting for the server.
func (p *Postgres) drop() {
	_ = p.conn.Conn().SetDeadline(time.Now())
	_ = p.conn.Close(context.Background())
	p.conn = nil
}

// Close implements [Reader].
func (p *Postgres) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn == nil {
		return p.stop()
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := p.conn.Close(ctx)
	p.conn = nil
	return errors.Join(err, p.stop())
}
