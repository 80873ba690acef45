package database

import (
	"cmp"
	"context"
	"crypto/x509"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
)

const (
	// connectTimeout is the limit of one attempt to connect, unless the URL has
	// connect_timeout.
	connectTimeout = 10 * time.Second
	// idleTime is how long a pool keeps a connection without use. Many instances share the
	// connections of one server, and few of them are busy at the same time.
	idleTime = 30 * time.Second
	// pgxConnectTimeout is pgx's value for a URL without connect_timeout.
	pgxConnectTimeout = 2 * time.Minute
)

// OwnSettings are statements for the settings that the portal's promises depend on, on every
// connection that changes something. Neither the URL nor the server may change them, and through
// PgBouncer another client's values may remain.
//
// The driver and Bun read and write text in these formats. The locks of the services depend on the
// isolation: with another level, they see no commit that they have waited for. A crash must not
// undo a commit, such as a revocation, so synchronous_commit is on, unless the server has
// remote_apply, which is stronger. Without triggers, which session_replication_role = replica turns
// off, instances would accept a revoked key.
const OwnSettings = `SET client_encoding = 'UTF8'; SET DateStyle = 'ISO, MDY'; SET IntervalStyle = 'postgres';
	SET TimeZone = 'UTC'; SET bytea_output = 'hex'; SET extra_float_digits = 3; SET standard_conforming_strings = on;
	SET default_transaction_isolation = 'read committed'; RESET synchronous_commit;
	SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') <> 'remote_apply';
	SELECT set_config('session_replication_role', 'origin', false) WHERE current_setting('session_replication_role') <> 'origin'`

// sessionSettings limit the damage if an instance freezes or loses its network: the server ends its
// transaction after 2 s and releases its locks. No statement waits longer for a lock than a request
// waits for the statement. jit is off, because PostgreSQL would compile plans that it believes to
// be expensive, which takes 200 ms: it overestimates small tables, because it does not analyze
// them.
var sessionSettings = map[string]string{
	"idle_in_transaction_session_timeout": "2s",
	"jit":                                 "off",
	"lock_timeout":                        "1500ms",
	"tcp_keepalives_count":                "3",
	"tcp_keepalives_idle":                 "2s",
	"tcp_keepalives_interval":             "1s",
	"tcp_user_timeout":                    "3s",
}

// readSettings are for connections that only read for API requests, and usageSettings for the one
// that writes usage. Without jit=off, PostgreSQL may compile the plan each time.
var (
	readSettings  = map[string]string{"statement_timeout": "2s"}
	usageSettings = map[string]string{"lock_timeout": "500ms"}
)

// keepAlive makes a connection fail when its server has vanished. Without it, each idle connection
// of the pool would cost one request its deadline.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 2 * time.Second, Interval: time.Second, Count: 3}

// set applies OwnSettings and these settings, except those that the URL has, to each new
// connection. It uses SET, because PgBouncer refuses most settings in a startup message.
func set(config *pgx.ConnConfig, settings ...map[string]string) {
	statements := OwnSettings
	for _, some := range settings {
		for _, name := range slices.Sorted(maps.Keys(some)) {
			_, inURL := config.RuntimeParams[name]
			if !inURL && !strings.Contains(config.RuntimeParams["options"], name) {
				statements += fmt.Sprintf("; SET %s = '%s'", name, some[name])
			}
		}
	}
	config.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		// A pooler may not say the encoding.
		if encoding := cmp.Or(conn.ParameterStatus("server_encoding"), "UTF8"); encoding != "UTF8" {
			return encodingError(encoding)
		}
		_, err := conn.Exec(ctx, statements).ReadAll()
		return err
	}
}

func openPostgres(databaseURL string) (*Connections, error) {
	config, err := postgresConfig(databaseURL)
	if err != nil {
		return nil, err
	}
	reading, usage := config.Copy(), config.Copy()
	set(config, sessionSettings)
	set(reading, sessionSettings, readSettings)
	set(usage, sessionSettings, usageSettings)
	usage.StatementCacheCapacity = max(usage.StatementCacheCapacity, 2)
	connectors := func(config *pgx.ConnConfig) *connector { return newConnector(hosts(config), config.ConnectTimeout) }
	return &Connections{
		Portal: postgresPool(connectors(config), PortalConnections),
		API:    postgresPool(connectors(reading), apiConnections),
		Single: func() *sql.DB { return postgresPool(connectors(usage), 1).DB },
		Dial: func() (dial func(context.Context) (*pgx.Conn, error), stop func() error) {
			return postgresConn(connectors(reading))
		},
	}, nil
}

func postgresPool(c *connector, connections int) *bun.DB {
	pool := sql.OpenDB(c)
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(connections)
	pool.SetConnMaxIdleTime(idleTime)
	return bun.NewDB(pool, storable{pgdialect.New()})
}

// postgresConn returns functions that open a connection outside a pool, and close the connector.
func postgresConn(c *connector) (dial func(context.Context) (*pgx.Conn, error), stop func() error) {
	return func(ctx context.Context) (*pgx.Conn, error) {
		conn, err := c.Connect(ctx)
		if err != nil {
			return nil, err
		}
		return conn.(pooledConn).Conn.Conn(), nil
	}, c.Close
}

// hosts returns a dial for each host of the URL.
func hosts(config *pgx.ConnConfig) []dial {
	var dials []dial
	for done := 0; done <= len(config.Fallbacks); {
		// A copy knows the client certificates of its own TLS configurations only.
		host := config.Copy()
		all := append([]*pgconn.FallbackConfig{{Host: host.Host, Port: host.Port, TLSConfig: host.TLSConfig}}, host.Fallbacks...)[done:]
		// A host occurs twice in a row if it is tried with TLS and without.
		same := slices.IndexFunc(all, func(f *pgconn.FallbackConfig) bool {
			return f.Host != all[0].Host || f.Port != all[0].Port
		})
		if same < 0 {
			same = len(all)
		}
		host.Host, host.Port, host.TLSConfig = all[0].Host, all[0].Port, all[0].TLSConfig
		host.Fallbacks = all[1:same]
		done += same
		dials = append(dials, func(ctx context.Context) (driver.Conn, error) { return dialHost(ctx, host) })
	}
	return dials
}

// dialHost connects to the host, and returns an [*openError] if it cannot.
func dialHost(ctx context.Context, host *pgx.ConnConfig) (driver.Conn, error) {
	conn, err := dialAddresses(ctx, host)
	if err == nil {
		return pooledConn{conn.(*stdlib.Conn)}, nil
	}
	_, server := pgconn.NetworkAddress(host.Host, host.Port)
	message := fmt.Sprintf("no PostgreSQL server answers at %s: %s", server, dialProblem(err))
	if encoding, ok := errors.AsType[encodingError](err); ok {
		message = fmt.Sprintf("database %s %s: create another one with createdb -E UTF8 -T template0, move the tables to it "+
			"with pg_dump and pg_restore, and correct DATABASE_URL", postgresName(host), encoding)
	} else if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch {
		case refused.Code == "3D000": // invalid_catalog_name
			name := postgresName(host)
			message = fmt.Sprintf("database %s does not exist: createdb %s", name, name)
		case refused.Code == "28P01": // invalid_password
			message = refused.Message + ": correct the user and the password in DATABASE_URL"
		case strings.HasPrefix(refused.Code, "28"): // invalid authorization
			message = refused.Message + ": correct the user, sslmode, sslcert or sslkey in DATABASE_URL, or pg_hba.conf or the role on the server"
		default:
			message = fmt.Sprintf("the PostgreSQL server at %s refuses the connection: %s: check its settings and DATABASE_URL", server, refused.Message)
		}
	}
	return nil, &openError{message, err}
}

// dialProblem returns the cause of a failed dial, and what to do.
func dialProblem(err error) string {
	if lookup, ok := errors.AsType[*net.DNSError](err); ok {
		return "its name cannot be resolved (" + lookup.Err + "): correct DATABASE_URL"
	}
	cause := innermost(err)
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return cause + ": name the file of its authority in the parameter sslrootcert of DATABASE_URL"
	}
	switch {
	case errors.Is(err, errStandby), errors.Is(err, errReadOnly):
		return cause
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT):
		return cause + ": start it or correct DATABASE_URL"
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time: check the server, the firewalls between, and DATABASE_URL"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "it closes the connection: check its log and DATABASE_URL"
	case foreignAnswer.MatchString(cause):
		return "another program or protocol answers there: correct DATABASE_URL"
	default:
		return cause + ": check the server and DATABASE_URL"
	}
}

// foreignAnswer is in the errors about the first response of a server that is no PostgreSQL. The
// driver has no types for them all.
var foreignAnswer = regexp.MustCompile(`invalid body length|unknown message type|look like a TLS handshake`)

// The errors of servers that are read-only. Some hosting providers turn
// default_transaction_read_only on when the disk is full.
var (
	errStandby  = errors.New("it is a standby, which is read-only: name the primary in DATABASE_URL")
	errReadOnly = errors.New("it is no standby, but default_transaction_read_only is on, as hosting providers do when the disk is full: free some space on it, or turn the setting off")
)

// requirePrimary returns an error unless a connection can write.
func requirePrimary(ctx context.Context, conn *pgconn.PgConn) error {
	results, err := conn.Exec(ctx, "SHOW transaction_read_only; SELECT pg_catalog.pg_is_in_recovery()").ReadAll()
	switch {
	case err != nil:
		return err
	case len(results) == 2 && string(results[1].Rows[0][0]) == "t":
		return errStandby
	case len(results) != 2 || string(results[0].Rows[0][0]) != "off":
		return errReadOnly
	}
	return nil
}

// encodingError is the encoding of a database that cannot hold all text.
type encodingError string

func (e encodingError) Error() string {
	return "has the encoding " + string(e) + ", but the portal needs UTF8"
}

// postgresName returns the name of the database, which is the name of the user by default.
func postgresName(config *pgx.ConnConfig) string { return cmp.Or(config.Database, config.User) }

// dialAddresses connects to the address of the host that answers first.
func dialAddresses(ctx context.Context, host *pgx.ConnConfig) (driver.Conn, error) {
	if strings.HasPrefix(host.Host, "/") || strings.HasPrefix(host.Host, "@") { // a Unix socket
		return stdlib.GetConnector(*host).Connect(ctx)
	}
	addresses, err := host.LookupFunc(ctx, host.Host)
	if err != nil {
		return nil, err
	}
	dials := make([]dial, len(addresses))
	for i, address := range addresses {
		one := host.Copy()
		one.LookupFunc = func(context.Context, string) ([]string, error) { return []string{address}, nil }
		dials[i] = stdlib.GetConnector(*one).Connect
	}
	return race(ctx, dials)
}
