// Package migrations holds the schema of the key store as SQL, one folder per
// database, embedded in the binary so that an instance can bring any database
// up to date without files beside it. It never opens a database: package
// models runs what is found here.
package migrations

import (
	"embed"
	"io/fs"
)

//go:embed postgres/*.sql
var postgres embed.FS

//go:embed sqlite/*.sql
var sqlite embed.FS

// Postgres returns the migrations for PostgreSQL 15 and later.
func Postgres() fs.FS { return sub(postgres, "postgres") }

// SQLite returns the migrations for SQLite 3.35 and later.
func SQLite() fs.FS { return sub(sqlite, "sqlite") }

func sub(files embed.FS, dir string) fs.FS {
	folder, err := fs.Sub(files, dir)
	if err != nil {
		// fs.Sub fails only for an invalid name, and these are constants.
		panic(err)
	}
	return folder
}
