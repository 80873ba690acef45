package backup

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/uptrace/bun"
	"modernc.org/sqlite"

	"portal/models/database"
)

// sqliteRestoreTimeout is how long a restore waits for the writes of other processes.
const sqliteRestoreTimeout = 10 * time.Second

// restoreSQLite prepares the new state in a file of its own and then copies it over the database in
// one transaction.
func (r restoring) restoreSQLite(ctx context.Context, path, file string) (revoked int, err error) {
	directory, err := os.MkdirTemp(filepath.Dir(path), ".restore-") // mode 0700
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	prepared := filepath.Join(directory, "portal.db")
	if err := copySQLite(ctx, file, prepared); err != nil {
		return 0, err
	}
	version, err := database.Version(ctx, "sqlite:"+prepared)
	if err != nil || version == "" {
		return 0, errors.Join(fmt.Errorf("%s is not a backup of the portal", file), err)
	}
	if newest, err := newestMigration(); err != nil || version+"_" > newest {
		return 0, cmp.Or(err, errNewer)
	}
	if err := updateSchema(ctx, "sqlite:"+prepared); err != nil {
		return 0, err
	}
	db, err := database.Open("sqlite:"+prepared, database.Timeout)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = replaceSQLite(ctx, path, prepared, func() error {
		revoked, err = r.secureSQLite(ctx, db.Portal, path)
		return err
	})
	return revoked, database.Failed("restore", err)
}

// copySQLite checks a database file, which does not change, and copies it.
func copySQLite(ctx context.Context, from, to string) error {
	db, err := sql.Open("sqlite", sqliteName(from)+"?mode=ro")
	if err != nil {
		return err
	}
	var verdict string
	err = db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&verdict)
	if err == nil && verdict != "ok" || database.IsDamaged(err) {
		err = errDamaged
	}
	if err == nil {
		_, err = db.ExecContext(ctx, "VACUUM INTO ?", to)
	}
	if err := errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("read %s: %w", from, database.Explain(err))
	}
	return nil
}

// errDamaged is the error of a backup that is not whole.
var errDamaged = errors.New("the backup is cut or damaged; copy it again from where it is kept, or restore another one")

func sqliteName(path string) string { return "file:" + (&url.URL{Path: path}).EscapedPath() }

// secureSQLite changes the prepared state before it replaces the database in path.
func (r restoring) secureSQLite(ctx context.Context, db *bun.DB, path string) (revoked int, err error) {
	conn, err := db.Conn(ctx) // temporary and attached databases belong to one connection
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	read := []string{r.readCurrent("main.")}
	if r.compared {
		// DETACH, because the transaction below would also lock an attached database.
		read = []string{"ATTACH '" + strings.ReplaceAll(path, "'", "''") + "' AS live", r.readCurrent("live."), "DETACH live"}
	}
	for _, statement := range read {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return 0, err
		}
	}
	err = conn.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		statements, count := r.secure(expressions{
			epoch: "randomblob(16)",
			id:    r.newID("lower('%s-%s-7' || substr(hex(randomblob(2)), 2) || '-8' || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))"),
			version: "lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || " +
				"'-8' || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))",
			noHash: "CAST(id AS BLOB)",
		})
		if _, err := tx.ExecContext(ctx, statements); err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, count).Scan(&revoked)
	})
	return revoked, err
}

// replaceSQLite locks the database for writing, calls prepare, and copies the file named from over
// the database. Nobody can revoke a key after prepare and before the copy.
func replaceSQLite(ctx context.Context, path, from string, prepare func() error) (err error) {
	if err := database.CreateSQLite(path); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", sqliteName(path)+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	return conn.Raw(func(driver any) (err error) {
		restorer, ok := driver.(interface {
			NewRestore(from string) (*sqlite.Backup, error)
		})
		if !ok {
			return errors.New("the SQLite driver has no NewRestore")
		}
		copying, err := restorer.NewRestore(sqliteName(from))
		if err != nil {
			return err
		}
		// Finish rolls back a copy that is not complete.
		defer func() { err = errors.Join(err, copying.Finish()) }()
		if err := lockForCopying(ctx, copying); err != nil {
			return err
		}
		if err := prepare(); err != nil {
			return err
		}
		if more, err := copying.Step(-1); err != nil || more {
			return errors.Join(errors.New("the copy is not complete"), err)
		}
		return nil
	})
}

// lockForCopying makes the first step, which copies nothing but locks the database.
func lockForCopying(ctx context.Context, copying *sqlite.Backup) error {
	for deadline := time.Now().Add(sqliteRestoreTimeout); ; {
		_, err := copying.Step(0)
		if !database.IsSQLiteBusy(err) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}
