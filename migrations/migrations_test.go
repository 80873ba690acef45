package migrations_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"log/slog"
	"testing"
	"time"

	"portal/migrations"
	"portal/models/database"
	"portal/models/modelstest"
)

// Databases have the first file, so a change of it would not reach them.
func TestFirstFileDoesNotChange(t *testing.T) {
	t.Parallel()
	for want, files := range map[string]fs.FS{
		"210631d8f79943436a1324bd9127e80c1cc6b8bd2ba3fc53ffee8549b00eeda0": migrations.Postgres(),
		"e4c9ca3e65ccf32e25e75e729423a3c444d41f09f65ea376ba17ee7a25762804": migrations.SQLite(),
	} {
		content := modelstest.Value(fs.ReadFile(files, "20261120000001_initial.sql"))(t)
		if hash := sha256.Sum256(content); hex.EncodeToString(hash[:]) != want {
			t.Errorf("the first file has the hash %x, want %s: write a new file", hash, want)
		}
	}
}

// A database with the first schema keeps the days of its reports, and the warnings about its keys.
func TestFactsAboutKeysMoveInAnOlderDatabase(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{
		"sqlite": "sqlite:" + t.TempDir() + "/portal.db", "postgres": modelstest.EmptyPostgresURL(t),
	} {
		if path, sqlite := database.SQLitePath(url); sqlite {
			modelstest.Must(t, database.CreateSQLite(path))
		}
		modelstest.MigrateFirst(t, url)
		const account, used, busy, called = "0198c2f4-0000-7000-8000-000000000001", "0198c2f4-0000-7000-8000-000000000002",
			"0198c2f4-0000-7000-8000-000000000003", "0198c2f4-0000-7000-8000-000000000004"
		modelstest.Exec(t, url, "INSERT INTO accounts (id, name, created_at) VALUES ('"+account+"', 'Ada', '2026-11-01 00:00:00+00:00')")
		for _, key := range []string{used, busy, called} {
			hash := "substr('" + key + "', 5)"
			if name == "postgres" {
				hash = "convert_to(" + hash + ", 'UTF8')"
			} else {
				hash = "CAST(" + hash + " AS BLOB)"
			}
			modelstest.Exec(t, url, "INSERT INTO api_keys (id, account_id, label, key_hash, last_four, form_id, created_at) VALUES ('"+
				key+"', '"+account+"', 'key', "+hash+", 'abcd', '"+key+"', '2026-11-01 00:00:00+00:00')")
		}
		modelstest.Exec(t, url, "INSERT INTO api_key_last_uses (api_key_id, hour, requests, refusals) VALUES ('"+used+"', '2026-11-20 15:00:00+00:00', 1, 0)")
		modelstest.Exec(t, url, "INSERT INTO api_key_daily_usage (api_key_id, day, requests, refusals) VALUES ('"+busy+"', '2026-11-21 00:00:00+00:00', 1, 0)")
		modelstest.Exec(t, url, "INSERT INTO call_totals (subject_id, day, calls, seconds) VALUES ('"+called+"', '2026-11-22 00:00:00+00:00', 1, 60), ('"+
			account+"', '2026-11-22 00:00:00+00:00', 1, 60)")
		modelstest.Exec(t, url, "UPDATE api_keys SET unused_policy = 5, unused_check_at = '2026-11-12 00:00:00+00:00', unused_since = '2026-11-01 10:00:00.123456+00:00', "+
			"unused_warned_at = '2026-11-13 00:00:00+00:00', unused_warnings = CASE WHEN id = '"+busy+"' THEN 2 ELSE 1 END, unused_mailed = CASE WHEN id = '"+busy+"' THEN 2 ELSE 1 END WHERE id IN ('"+used+"', '"+busy+"')")
		modelstest.Exec(t, url, "UPDATE api_keys SET revoked_at = '2026-11-20 00:00:00+00:00' WHERE id = '"+called+"'")
		db := modelstest.Value(database.Open(url, database.Timeout))(t)
		modelstest.Must(t, db.Migrate(t.Context(), slog.New(slog.DiscardHandler), time.Minute))
		modelstest.Must(t, db.Close())
		migrated := modelstest.OpenDatabase(t, url)
		var ends []time.Time
		modelstest.Must(t, migrated.NewSelect().Table("key_warnings").Column("ends_at").Where("policy = 5 AND mailed = warnings").OrderExpr("api_key_id").Scan(t.Context(), &ends))
		if len(ends) != 2 || ends[0].UTC().Format(time.DateTime) != "2026-11-15 10:00:00" || ends[1].UTC().Format(time.DateTime) != "2026-11-16 00:00:00" {
			t.Errorf("%s: the warnings end at %v", name, ends)
		}
		var days []time.Time
		modelstest.Must(t, migrated.NewSelect().Table("api_key_days").Column("day").
			Where("account_id = ?", account).OrderExpr("day, api_key_id").Scan(t.Context(), &days))
		for i, want := range []string{"2026-11-20", "2026-11-21", "2026-11-22"} {
			if len(days) != 3 || days[i].UTC().Format("2006-01-02 15:04:05") != want+" 00:00:00" {
				t.Errorf("%s: noted %v", name, days)
			}
		}
	}
}
