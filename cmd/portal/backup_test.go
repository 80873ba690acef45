package main

import (
	"errors"
	"net/http"
	neturl "net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"portal/models"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/modelstest/postgres"
	"portal/models/modelstest/subprocess"
	"portal/models/record"
	"portal/models/value"
)

func TestBackupAndRestoreUnderRunningInstances(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		env := append(databaseEnv(url), anyPort, testSecret)
		instances := []*instance{start(t, env), start(t, env)}
		store := modelstest.Open(t, url, models.Options{})
		account := createAccount(t, store)
		expect := func(secret string, want int) {
			t.Helper()
			for _, i := range instances {
				i.answers(t, secret, want)
			}
		}
		expect(account.secret, http.StatusOK)
		file := filepath.Join(t.TempDir(), "portal.backup")
		backup := portal(t, databaseEnv(url), "", "backup", file)
		if backup.status != 0 || backup.stdout != "" || !strings.Contains(backup.stderr, "PORTAL_SECRET") {
			t.Fatalf("%+v", backup)
		}
		portal(t, databaseEnv(url), "", "backup", file).failsWith(t, file, "exists")
		portal(t, databaseEnv(url), "", "backup", "--keep", "14", file).failsWith(t, "--keep", "directory")
		portal(t, databaseEnv(url), "", "backup", "--keep=-1", filepath.Dir(file)).failsWith(t, "--keep", "above 0")

		mustPortal(t, databaseEnv(url), "", "key", "revoke", "--id", account.key.ID.String())
		restored := portal(t, databaseEnv(url), "", "restore", file)
		if restored.status != 0 || restored.stdout != "" || !strings.Contains(restored.stderr, "now revoked: 1;") {
			t.Fatalf("%+v", restored)
		}
		expect(account.secret, http.StatusUnauthorized)
	})
}

// The clock was ahead when the backup of 2099 was made, and must not cost every later one.
func TestKeepingBackupsKeepsTheNewOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"portal-20250101T000000Z.backup", "portal-20990101T000000Z.backup", "mine.backup"} {
		writeFile(t, filepath.Join(dir, name), "")
	}
	// The directory of a job is often the working directory.
	command := portalCommand(t, databaseEnv(modelstest.SQLiteURL(t)), "backup", "--keep", "1", ".")
	command.Dir = dir
	mustRun(t, command, "")
	kept := modelstest.Value(filepath.Glob(filepath.Join(dir, "*")))(t)
	if len(kept) != 3 || strings.Contains(kept[1], "portal-20250101") || strings.Contains(kept[1], "portal-20990101") {
		t.Errorf("kept %q", kept)
	}
}

func TestRestoreOfALostDatabaseNamesTheChoices(t *testing.T) {
	t.Parallel()
	url := modelstest.SQLiteURL(t)
	account := createAccount(t, modelstest.Open(t, url, models.Options{}))
	file := filepath.Join(t.TempDir(), "portal.backup")
	mustPortal(t, databaseEnv(url), "", "backup", file)

	lost := databaseEnv("sqlite:" + filepath.Join(t.TempDir(), "new", "portal.db"))
	portal(t, lost, "", "restore", file).failsWith(t, "--revoke-all-keys", "--keep-keys-that-may-have-been-revoked")
	portal(t, lost, "", "restore", "--revoke-all-keys", "--keep-keys-that-may-have-been-revoked", file).failsWith(t, "can't be used together")
	portal(t, lost, "", "restore", "absent").failsWith(t, "absent")
	portal(t, databaseEnv("postgres://portal@127.0.0.1:1/portal"), "",
		"restore", "--revoke-all-keys", file).
		failsWith(t, "is not a backup of PostgreSQL")
	mustPortal(t, lost, "", "restore", "--revoke-all-keys", file)
	start(t, append(lost, anyPort)).answers(t, account.secret, http.StatusUnauthorized)
}

// The commands are those of the guide. A state that PostgreSQL itself recovers has the revoked key.
func TestAPastMomentIsRestoredWithoutRevivingKeys(t *testing.T) {
	t.Parallel()
	folder := modelstest.Value(os.MkdirTemp("", "portal-recovery-"))(t) //nolint:usetesting // the server's user cannot enter t.TempDir
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	asServer := func(commands string) {
		t.Helper()
		shell := bashCommand(t, folder, nil, commands)
		shell.Env = []string{"PATH=" + modelstest.Value(postgres.FindPrograms())(t) + ":" + os.Getenv("PATH")}
		shell.SysProcAttr = &syscall.SysProcAttr{Credential: postgres.ServerUser()}
		// A file, because the server that the commands start inherits it.
		log := modelstest.Value(os.Create(filepath.Join(t.TempDir(), "log")))(t)
		defer log.Close()
		shell.Stdout, shell.Stderr = log, log
		if err := shell.Run(); err != nil {
			t.Fatalf("%v: %s\n%s", err, readFile(t, log.Name()), commands)
		}
	}
	if owner := postgres.ServerUser(); owner != nil {
		modelstest.Must(t, os.Chown(folder, int(owner.Uid), int(owner.Gid)))
	}
	asServer("mkdir wal")
	cluster := modelstest.OwnCluster(t, "archive_mode=on", "archive_command='cp %p "+folder+"/wal/%f'")
	url := cluster.URL("postgres")
	server := modelstest.Value(neturl.Parse(url))(t)
	modelstest.Exec(t, url, "ALTER ROLE portal PASSWORD 'its-password'")
	asServer("pg_basebackup -h 127.0.0.1 -U portal -p " + server.Port() + " -D base")

	store := modelstest.Open(t, url, models.Options{})
	account := createAccount(t, store)
	database := modelstest.OpenDatabase(t, url)
	var moment string
	modelstest.Must(t, database.QueryRowContext(t.Context(), "SELECT now()::text").Scan(&moment))
	modelstest.Value(store.Keys.Revoke(t.Context(), account.ID, account.key.ID, "", record.Operator()))(t)
	modelstest.Value(store.Agents.Rename(t.Context(), account.ID, account.agentID, "Renamed", record.Operator()))(t)
	var segment string
	modelstest.Must(t, database.QueryRowContext(t.Context(), "SELECT pg_walfile_name(pg_switch_wal())").Scan(&segment))
	modelstest.Eventually(t, "the revocation is archived", func() bool {
		var archived bool
		err := database.QueryRowContext(t.Context(), "SELECT last_archived_wal = '"+segment+"' FROM pg_stat_archiver").Scan(&archived)
		return err == nil && archived
	})

	blocks := shellBlocks(t, "operations/backup.md")["PostgreSQL's own backups"]
	port := modelstest.Value(subprocess.FreePort())(t)
	documented := strings.NewReplacer("5433", strconv.Itoa(port), "/var/backups/postgresql", folder, "/var/lib/postgresql", folder,
		"2026-11-23 09:00:00 UTC", moment, "/portal'", "/postgres?sslmode=disable'")
	t.Cleanup(func() { asServer("pg_ctl -D recovered --mode immediate stop") })
	asServer(documented.Replace(blocks[0]))
	recovered := modelstest.Open(t, strings.NewReplacer("portal@", "portal:its-password@", ":"+server.Port(), ":"+strconv.Itoa(port)).Replace(url), models.Options{})
	if _, err := recovered.API.Authenticate(t.Context(), account.secret, keys.Source{}); err != nil {
		t.Errorf("the key in the recovered state: %v", err)
	}

	dir, env := repositoryWithBinary(t)
	bash(t, dir, append(env, databaseEnv(url)...), "", documented.Replace(blocks[1]))
	if _, err := store.API.Authenticate(t.Context(), account.secret, keys.Source{}); !errors.Is(err, value.ErrKeyRevoked) {
		t.Errorf("the key after the restore: %v", err)
	}
	if agent := modelstest.Value(store.Agents.Find(t.Context(), account.ID, account.agentID))(t); agent.Name == "Renamed" {
		t.Error("the agent has not the name of the past moment")
	}
}

// TestNoCommandLineHasTheDatabasePassword replaces pg_dump with a script that records its input.
func TestNoCommandLineHasTheDatabasePassword(t *testing.T) {
	t.Parallel()
	url := modelstest.PostgresURL(t)
	programs, seen := t.TempDir(), filepath.Join(t.TempDir(), "seen")
	script := "#!/bin/sh\necho \"$@\" >" + seen + "\nenv | grep ^PG | sort >>" + seen + "\necho broken >&2\nexit 1\n"
	modelstest.Must(t, os.WriteFile(filepath.Join(programs, "pg_dump"), []byte(script), 0o700))
	file := filepath.Join(t.TempDir(), "portal.backup")
	withPassword := strings.Replace(url, "portal@", "portal:hunter2@", 1) + "&search_path=public&target_session_attrs=any"
	env := append(databaseEnv(withPassword), "PATH="+programs+":"+os.Getenv("PATH"))
	portal(t, env, "", "backup", file).failsWith(t, "pg_dump", "broken")
	content := modelstest.Value(os.ReadFile(seen))(t)
	arguments, environment, _ := strings.Cut(string(content), "\n")
	if strings.Contains(arguments, "hunter2") || strings.Contains(arguments, "postgres:") {
		t.Errorf("the arguments are %s", arguments)
	}
	for _, want := range []string{"PGPASSWORD=hunter2\n", "PGSSLMODE=disable\n", "PGUSER=portal\n", "PGHOST=127.0.0.1\n", "PGOPTIONS=-c search_path=public\n"} {
		if !strings.Contains(environment, want) {
			t.Errorf("want %q in %s", want, environment)
		}
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the failed backup left a file")
	}
}

// emptyDatabases runs a test on databases without a schema.
func emptyDatabases(t *testing.T, run func(t *testing.T, url string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); run(t, modelstest.EmptySQLiteURL(t)) })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); run(t, modelstest.EmptyPostgresURL(t)) })
}

// Killed migrations and instances need no repair.
func TestTheNextStartAfterAKillWorks(t *testing.T) {
	t.Parallel()
	emptyDatabases(t, func(t *testing.T, url string) {
		env := []string{"DATABASE_URL=" + url, testSecret, anyPort}
		// Each run gets further than the one before, and the last ones finish.
		for delay := range 12 {
			i := launch(t, env, "migrate")
			select {
			case <-i.Exited():
			case <-time.After(time.Duration(delay) * 10 * time.Millisecond):
				i.Kill()
			}
		}
		account := createAccount(t, modelstest.Open(t, url, models.Options{}))
		for range 4 {
			i := start(t, env)
			i.accepts(t, account.secret)
			i.Kill()
		}
	})
}
