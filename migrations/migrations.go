// Package migrations embeds the database schema as SQL, one folder per database. A file never
// changes, because databases and backups have it: a later change of the schema is a new file. It
// adds to the schema only, so that the previous binaries also work on the new schema.
package migrations

import (
	"embed"
	"io/fs"
)

//go:embed postgres/*.sql sqlite/*.sql
var files embed.FS

// Postgres returns the migrations for PostgreSQL 15 and later.
func Postgres() fs.FS { return sub("postgres") }

// SQLite returns the migrations for SQLite 3.35 and later.
func SQLite() fs.FS { return sub("sqlite") }

func sub(dir string) fs.FS {
	folder, err := fs.Sub(files, dir)
	if err != nil {
		// fs.Sub fails only for an invalid name; the names are constants.
		panic(err)
	}
	return folder
}
