package database_test

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/uptrace/bun"

	"portal/models"
	"portal/models/database"
	"portal/models/modelstest"
)

func TestDatabaseURLs(t *testing.T) {
	t.Parallel()
	for url, file := range map[string]string{
		"sqlite:data/portal.db": "data/portal.db", "sqlite:/var/lib/portal.db": "/var/lib/portal.db",
		"sqlite:///var/lib/portal.db":                        "/var/lib/portal.db",
		"sqlite:////var/lib/portal.db":                       "/var/lib/portal.db", // as for SQLAlchemy
		"postgres://user:hunter2@db.example.com:5432/portal": "",
		"postgresql://db/portal?sslmode=require":             "",
		"postgres://a.example.com,b.example.com:5433/portal": "",
		"postgres:///portal?host=/run/postgresql":            "",
	} {
		if err := database.CheckURL(url); err != nil {
			t.Errorf("%s: %v", url, err)
		}
		if path, ok := database.SQLitePath(url); path != file || ok != (file != "") {
			t.Errorf("%s: %q, %t", url, path, ok)
		}
	}
	for _, url := range []string{
		"", "data/portal.db", "sqlite:", "sqlite::memory:", "mysql://user:hunter2@db/portal",
		"postgres:portal", "postgres://user:hunter2@db:port/portal",
		"postgres://user:hunter2@db/portal?sslmode=hunter2", "postgres://user:hunter2@[::1/portal",
	} {
		err := database.CheckURL(url)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", url, err)
		}
		db, openErr := database.Open(url, time.Second)
		if db != nil || openErr == nil || openErr.Error() != err.Error() {
			t.Errorf("open %s: %v", url, openErr)
		}
	}
}

// In these URLs, a character of the password ends it, so that the driver takes another part of it
// for the host, the port, the database or a parameter.
func TestPasswordsThatAreNotPercentEncoded(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"postgres://portal:hunter@2hunter@127.0.0.1/db", "postgres://portal:hunter/2@127.0.0.1/db", "postgres://portal:12345/hunter2@127.0.0.1/db",
		"postgres://portal:12345/db?x=hunter2@127.0.0.1/db", "postgres://portal:12345/db?hunter2@127.0.0.1/db", "postgres://portal:12@hunter2?x@127.0.0.1/db",
		"postgres://portal:12@hunter2?x=y@127.0.0.1/db", "postgres://portal:12@hunter2#x@127.0.0.1/db", "postgres://portal:12@hunter2,b/x@127.0.0.1/db",
		"postgres://portal:hunter%2@127.0.0.1/db", "postgres://portal:hunter 2@127.0.0.1/db",
	} {
		if err := database.CheckURL(url); err == nil || strings.Contains(err.Error(), "hunter") || strings.Contains(err.Error(), "12") ||
			!strings.Contains(err.Error(), "@ as %40") {
			t.Errorf("%s: %v", url, err)
		}
	}
	for _, url := range []string{
		"postgres://portal:hunter%40%2F%25@127.0.0.1/db", "postgres://portal:a?b#c[d:e=f@127.0.0.1/db",
		"postgres://db.example.com:5432/portal?user=portal@server&password=p@ss", "postgres:///portal?host=@socket&application_name=a@b",
	} {
		if err := database.CheckURL(url); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// Other clients take these parameters, so URLs of providers have them.
func TestParametersOfLibpq(t *testing.T) {
	t.Parallel()
	const ignored = "&gssencmode=prefer&gsslib=gssapi&gssdelegation=0&keepalives=1&keepalives_idle=30&keepalives_interval=10&keepalives_count=3" +
		"&load_balance_hosts=random&sslcompression=0&client_encoding=auto&ssl_min_protocol_version=TLSv1.2&ssl_max_protocol_version=TLSv1.3"
	url := modelstest.PostgresURL(t)
	for parameters, name := range map[string]string{
		ignored: "portal", "&fallback_application_name=fallback": "fallback", "&fallback_application_name=fallback&application_name=own": "own",
	} {
		checkConnections(t, url+parameters, "application_name", name)
	}
	for _, parameter := range []string{"gssencmode=require", "hostaddr=127.0.0.1", "requirepeer=postgres", "sslcrl=hunter2", "sslcrldir=hunter2"} {
		name, _, _ := strings.Cut(parameter, "=")
		if err := database.CheckURL(url + "&" + parameter); err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%s: %v", parameter, err)
		}
	}
}

// The server of this test closes each connection after the handshake.
func TestClientCertificatesAreSent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	public, private, err := ed25519.GenerateKey(nil)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour)}
	certificate := modelstest.Value(x509.CreateCertificate(nil, template, template, public, private))(t)
	pair := tls.Certificate{Certificate: [][]byte{certificate}, PrivateKey: private}
	key := modelstest.Value(x509.MarshalPKCS8PrivateKey(private))(t)
	for name, block := range map[string]*pem.Block{"cert": {Type: "CERTIFICATE", Bytes: certificate}, "key": {Type: "PRIVATE KEY", Bytes: key}} {
		must(t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
	server := modelstest.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer server.Close()
	handshakes := make(chan error, 3)
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			_, err = io.ReadFull(conn, make([]byte, 8)) // SSLRequest
			if err == nil {
				_, err = conn.Write([]byte("S"))
			}
			if err == nil {
				err = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert}).Handshake()
			}
			handshakes <- errors.Join(err, conn.Close())
		}
	}()
	address := server.Addr().String()
	query := url.Values{"sslmode": {"require"}, "sslcert": {filepath.Join(dir, "cert")}, "sslkey": {filepath.Join(dir, "key")}}
	_, _ = database.Version(t.Context(), "postgres://portal@"+address+","+strings.Replace(address, "127.0.0.1", "localhost", 1)+"/portal?"+query.Encode())
	for range 2 {
		must(t, <-handshakes)
	}
	_, err = database.Version(t.Context(), "postgres://portal@"+address+"/portal?sslmode=verify-full")
	if err == nil || !strings.Contains(err.Error(), "unknown authority: name the file of its authority in the parameter sslrootcert") {
		t.Errorf("unknown authority: %v", err)
	}
	query.Set("sslkey", query.Get("sslcert"))
	if err := database.CheckURL("postgres://portal@db/portal?" + query.Encode()); err == nil || !strings.Contains(err.Error(), "sslcert and sslkey cannot be used: ") {
		t.Errorf("no key: %v", err)
	}
}

// foreignSettings are settings that an operator may have for the server, the database or the role,
// and the values that every connection of the portal has.
var foreignSettings = []struct{ name, foreign, want string }{
	{"DateStyle", "German", "ISO, MDY"},
	{"DateStyle", "SQL, DMY", "ISO, MDY"},
	{"IntervalStyle", "sql_standard", "postgres"},
	{"TimeZone", "Asia/Kolkata", "UTC"},
	{"bytea_output", "escape", "hex"},
	{"client_encoding", "LATIN1", "UTF8"},
	{"default_transaction_isolation", "serializable", "read committed"},
	{"extra_float_digits", "-10", "3"},
	{"session_replication_role", "replica", "origin"},
	{"standard_conforming_strings", "off", "on"},
	{"synchronous_commit", "off", "on"},
	{"synchronous_commit", "local", "on"},
	{"synchronous_commit", "remote_write", "on"},
	{"synchronous_commit", "remote_apply", "remote_apply"},
}

func TestPostgresConnectionsSetWhatThePortalDependsOn(t *testing.T) {
	t.Parallel()
	for i, setting := range foreignSettings {
		t.Run(setting.name+"="+setting.foreign, func(t *testing.T) {
			t.Parallel()
			url := modelstest.PostgresURL(t)
			of := []string{"DATABASE %I", "ROLE portal IN DATABASE %I"}[i%2]
			modelstest.Exec(t, url, "DO $$ BEGIN EXECUTE format('ALTER "+of+" SET "+setting.name+" = "+
				strings.ReplaceAll("'"+setting.foreign+"'", "'", "''")+"', current_database()); END $$")
			inURL := "&options=-c%20" + setting.name + "%3D" + strings.ReplaceAll(setting.foreign, " ", "%5C%20")
			for _, url := range []string{url, url + inURL} {
				checkConnections(t, url, setting.name, setting.want)
			}
			must(t, (&fixture{Connections: open(t, url), url: url}).customer(t).revokesAKey(t.Context()))
		})
	}
}

// Small tables are never analyzed, and compiling a plan would take longer than running it.
func TestPostgresCompilesNoPlan(t *testing.T) {
	t.Parallel()
	checkConnections(t, modelstest.PostgresURL(t), "jit", "off")
}

// checkConnections checks the value of a setting on each kind of connection.
func checkConnections(t *testing.T, url, name, want string) {
	t.Helper()
	f := open(t, url)
	single := f.Single()
	t.Cleanup(func() { must(t, single.Close()) })
	dial, stop := f.Dial()
	t.Cleanup(func() { must(t, stop()) })
	conn := modelstest.Value(dial(t.Context()))(t)
	show := "SHOW " + name
	for kind, row := range map[string]interface{ Scan(into ...any) error }{
		"portal": f.Portal.QueryRowContext(t.Context(), show), "API": f.API.QueryRowContext(t.Context(), show),
		"usage": single.QueryRowContext(t.Context(), show), "authentication": conn.QueryRow(t.Context(), show),
	} {
		var now string
		if err := row.Scan(&now); err != nil || now != want {
			t.Errorf("%s: %q, %v", kind, now, err)
		}
	}
	must(t, conn.Close(t.Context()))
}

// Such a database cannot hold all names and labels.
func TestPostgresOfAnotherEncodingIsRefused(t *testing.T) {
	t.Parallel()
	for _, encoding := range []string{"LATIN1", "SQL_ASCII"} {
		url := modelstest.EncodedPostgresURL(t, encoding)
		_, versionErr := database.Version(t.Context(), url)
		for what, err := range map[string]error{"migrate": open(t, url).Migrate(t.Context(), noLog, 0), "version": versionErr} {
			if err == nil || !strings.Contains(err.Error(), "has the encoding "+encoding) || !strings.Contains(err.Error(), "createdb -E UTF8") {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
}

// Other users of the machine must not read the database, and the portal may run as another user
// than a command.
func TestNewSQLiteFilesArePrivate(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"my portal.db", "a?mode=memory.db", "a#b.db", "100%41.db", "Zürich.db", "a&_pragma=x.db", "a:b.db"} {
		dir := filepath.Join(t.TempDir(), "data of "+name)
		must(t, os.Mkdir(dir, 0o700))
		owner := os.Geteuid()
		if owner == 0 {
			owner = 65534
			must(t, os.Chown(dir, owner, owner))
		}
		modelstest.Open(t, "sqlite:"+filepath.Join(dir, name), models.Options{})
		files := modelstest.Value(os.ReadDir(dir))(t)
		if len(files) != 3 {
			t.Fatalf("want the database, -shm and -wal: %v", files)
		}
		for i, suffix := range []string{"", "-shm", "-wal"} {
			info := modelstest.Value(files[i].Info())(t)
			uid := int(info.Sys().(*syscall.Stat_t).Uid)
			if info.Name() != name+suffix || info.Mode() != 0o600 || uid != owner {
				t.Errorf("%s: made %s of %d with mode %v, want %d and 0600", name, info.Name(), uid, info.Mode(), owner)
			}
		}
	}
}

// A connection that writes all the time, such as that of many webhooks, lets the others write too.
func TestSQLiteWritersTakeTurns(t *testing.T) {
	t.Parallel()
	connections := modelstest.Value(database.Open(modelstest.SQLiteURL(t), database.Timeout))(t)
	t.Cleanup(func() { must(t, connections.Close()) })
	single := connections.Single()
	t.Cleanup(func() { must(t, single.Close()) })
	const write = "UPDATE auth_epoch SET value = randomblob(16)"
	writers := map[string]func(context.Context) error{
		"a transaction": func(ctx context.Context) error {
			return connections.Portal.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
				return errOf(tx.ExecContext(ctx, write))
			})
		},
		"a statement":        func(ctx context.Context) error { return errOf(connections.Portal.ExecContext(ctx, write)) },
		"another connection": func(ctx context.Context) error { return errOf(single.ExecContext(ctx, write)) },
	}
	busy := modelstest.Value(connections.Portal.Conn(t.Context()))(t)
	t.Cleanup(func() { must(t, busy.Close()) })
	for name, write := range writers {
		written := make(chan error, 1)
		go func() { written <- write(t.Context()) }()
		for done := false; !done; {
			tx := modelstest.Value(busy.BeginTx(t.Context(), nil))(t)
			select {
			case err := <-written:
				done = true
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			case <-time.After(20 * time.Millisecond):
			}
			must(t, tx.Commit())
		}
	}
}

func TestMissingDatabaseIsUnavailable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	damaged := filepath.Join(dir, "damaged.db")
	must(t, os.WriteFile(damaged, []byte(strings.Repeat("this is no database ", 100)), 0o600))
	for name, url := range map[string]string{
		"no directory":         "sqlite:" + filepath.Join(dir, "no", "portal.db"),
		"a directory":          "sqlite:" + dir,
		"another file":         "sqlite:" + damaged,
		"no server":            "postgres://portal@127.0.0.1:1/portal?sslmode=disable",
		"two hosts, both down": "postgres://portal@127.0.0.1:1,127.0.0.1:2/portal?sslmode=disable",
	} {
		store, err := models.Open(t.Context(), url, models.Options{})
		if store != nil || !errors.Is(err, database.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The deadline may pass between the last statement and COMMIT. Then database/sql has rolled the
// transaction back and COMMIT fails with [sql.ErrTxDone].
func TestDeadlineBeforeCommitIsUnavailable(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, deadline := context.WithCancel(t.Context())
		defer deadline()
		err := f.Portal.RunInTx(ctx, nil, func(_ context.Context, tx bun.Tx) error {
			deadline()
			eventually(t, "the transaction is rolled back", func() bool {
				_, err := tx.ExecContext(t.Context(), "SELECT 1")
				return errors.Is(err, sql.ErrTxDone)
			})
			return nil
		})
		if err = database.Failed("commit", err); !errors.Is(err, sql.ErrTxDone) || !errors.Is(err, database.ErrUnavailable) {
			t.Error(err)
		}
	})
}

func TestTroubleOfTheServerIsUnavailable(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{
		"53100": true, "53300": true, // no space, too many connections
		"58030": true, "57P03": true, "08006": true, "40P01": true, "57014": true,
		"23505": false, "42P01": false, "": false, // a conflict, an unknown table
	} {
		if err := database.Failed("write", &pgconn.PgError{Code: code}); errors.Is(err, database.ErrUnavailable) != want {
			t.Errorf("%s: %v", code, err)
		}
	}
	if err := database.Failed("write", fmt.Errorf("lost: %w", pgconn.ErrConnClosed)); !errors.Is(err, database.ErrUnavailable) {
		t.Error(err)
	}
}

// Bun would write an error into the statement.
func TestTextWithAZeroByteIsNoError(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		var same bool
		const text = "it's a\x00b"
		must(t, f.Portal.NewSelect().ColumnExpr("? = ?", text, "it's a\ufffdb").Scan(t.Context(), &same))
		if !same {
			t.Error("the zero byte is not replaced")
		}
	})
}
