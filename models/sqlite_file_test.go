package models_test

import (
	"errors"
	"os"
	"testing"

	"portal/models"
	"portal/models/database"
	"portal/models/modelstest"
)

// A file that replaces the database is used at once, and the memory of the old one is dropped.
func TestSQLiteFileIsReplaced(t *testing.T) {
	t.Parallel()
	url := modelstest.SQLiteURL(t)
	path, _ := database.SQLitePath(url)
	f := newFixture(t, url, models.Options{})
	c := f.customer(t)
	_, keptSecret := f.key(t, c)
	backup := path + ".backup"
	f.exec(t, "VACUUM INTO '"+backup+"'")
	_, secret := f.key(t, c)
	for _, s := range []string{secret, keptSecret} {
		use(t, f.Store, s, 2)
	}
	if err := os.Rename(backup, path); err != nil {
		t.Fatal(err)
	}
	// SQLite would apply the old -wal file to the new database.
	for _, s := range []string{secret, keptSecret} {
		if _, err := f.Authenticate(t.Context(), s); !errors.Is(err, models.ErrUnavailable) {
			t.Errorf("beside the old -wal file: %v", err)
		}
	}
	if _, err := f.APIKeys(t.Context(), c.ID); !errors.Is(err, models.ErrUnavailable) {
		t.Errorf("beside the old -wal file: %v", err)
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.Authenticate(t.Context(), secret); !errors.Is(err, models.ErrKeyUnknown) {
		t.Errorf("a key that the file lacks: %v", err)
	}
	use(t, f.Store, keptSecret, 2)
	if keys, err := f.APIKeys(t.Context(), c.ID); err != nil || len(keys) != 1 {
		t.Errorf("%+v, %v", keys, err)
	}
	key, newSecret := f.key(t, c)
	use(t, f.Store, newSecret, 1)
	f.revoke(t, key)
	refuse(t, f.Store, newSecret, 1)
}

// While the file is missing, no empty database takes its place.
func TestSQLiteFileIsMissing(t *testing.T) {
	t.Parallel()
	url := modelstest.SQLiteURL(t)
	path, _ := database.SQLitePath(url)
	f := newFixture(t, url, models.Options{})
	c := f.customer(t)
	_, secret := f.key(t, c)
	use(t, f.Store, secret, 1)
	files := []string{path, path + "-wal", path + "-shm"}
	for _, file := range files {
		if err := os.Rename(file, file+".away"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.Authenticate(t.Context(), secret); !errors.Is(err, models.ErrUnavailable) {
		t.Errorf("authenticate: %v", err)
	}
	if _, err := f.APIKeys(t.Context(), c.ID); !errors.Is(err, models.ErrUnavailable) {
		t.Errorf("list: %v", err)
	}
	for _, file := range files {
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", file, err)
		}
		if err := os.Rename(file+".away", file); err != nil {
			t.Fatal(err)
		}
	}
	use(t, f.Store, secret, 1)
}
