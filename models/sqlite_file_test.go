package models_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"portal/models"
	"portal/models/database"
	"portal/models/modelstest"
)

// A file that replaces the database may hold keys that were revoked since. So it is not used until
// the portal starts again, even if the old file comes back. While the file is missing, no empty
// database takes its place.
func TestReplacedSQLiteFileIsNotUsed(t *testing.T) {
	t.Parallel()
	url := modelstest.SQLiteURL(t)
	path, _ := database.SQLitePath(url)
	f := newFixture(t, url, models.Options{})
	c := f.customer(t)
	key, secret := f.key(t, c)
	_, keptSecret := f.key(t, c)
	f.exec(t, "VACUUM INTO '"+path+".backup'")
	f.revoke(t, key)
	refuse(t, f.Store, secret, 1)
	unavailable := func(name string) {
		t.Helper()
		for do, err := range map[string]error{
			"authenticate": errOf(f.API.Authenticate(t.Context(), secret, models.Source{})), "authenticate a kept key": errOf(f.API.Authenticate(t.Context(), keptSecret, models.Source{})),
			"list": errOf(f.Keys.Active(t.Context(), c.ID)), "ready": f.API.Ready(t.Context()),
		} {
			if !errors.Is(err, models.ErrUnavailable) || !strings.Contains(err.Error(), "the SQLite file was replaced") {
				t.Errorf("%s: %s: %v", name, do, err)
			}
		}
	}
	files := []string{path, path + "-wal", path + "-shm"}
	for _, file := range files {
		must(t, os.Rename(file, file+".away"))
	}
	checkError(t, "without a file", errOf(f.API.Authenticate(t.Context(), keptSecret, models.Source{})), models.ErrUnavailable)
	checkError(t, "without a file", errOf(f.Keys.Active(t.Context(), c.ID)), models.ErrUnavailable)
	for _, file := range files {
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", file, err)
		}
		must(t, os.Rename(file+".away", file))
	}
	use(t, f.Store, keptSecret, 1)

	must(t, os.Rename(path, path+".old"))
	must(t, os.Rename(path+".backup", path))
	unavailable("with another file")
	for _, suffix := range []string{"-wal", "-shm"} {
		must(t, os.Rename(path+suffix, path+suffix+".old"))
	}
	unavailable("without the old -wal file")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		must(t, os.Rename(path+suffix+".old", path+suffix))
	}
	unavailable("with the old file again")
	f.briefly(t, models.Options{}, func(s *models.Store) {
		refuse(t, s, secret, 1)
		use(t, s, keptSecret, 1)
	})
}
