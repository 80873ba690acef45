package main

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/uptrace/bun/dialect"

	"portal/models"
	"portal/models/modelstest"
	"portal/models/record"
	"portal/models/value"
)

// The chapter gives the disk space of rows with their indexes.
func TestDocumentedSizes(t *testing.T) {
	t.Parallel()
	chapter := readFile(t, "operations/monitoring.md")
	modelstest.Databases(t, func(t *testing.T, url string) {
		const rows = 5000
		store, db := modelstest.Open(t, url, models.Options{}), modelstest.OpenDatabase(t, url)
		account := createAccount(t, store)
		column := 1
		if db.Dialect().Name() == dialect.PG {
			column = 2
		}
		user := modelstest.Value(store.People.FindByEmail(t.Context(), testEmail))(t)
		exec := func(statement string, args ...any) {
			_, err := db.ExecContext(t.Context(), statement, args...)
			modelstest.Must(t, err)
		}
		now := time.Now().UTC().Truncate(time.Hour)
		for _, size := range []struct {
			what  string
			count int // of what write adds
			write func()
		}{
			{"A key", rows, func() {
				modelstest.Keys(t, url, account.ID, rows-1)
				exec("INSERT INTO api_key_last_uses (api_key_id, used_at, requests) SELECT id, ?, 12345 FROM api_keys", now)
			}},
			{"A key's day with requests", 10 * rows, func() {
				for day := range 10 {
					exec("INSERT INTO api_key_daily_usage (api_key_id, day, requests) SELECT id, ?, 12345 FROM api_keys", now.Add(time.Duration(day)*value.Day))
				}
			}},
			{"A key's hour with requests", 10 * rows, func() {
				for hour := range 10 {
					exec("INSERT INTO api_key_hourly_usage (api_key_id, hour, requests) SELECT id, ?, 12345 FROM api_keys", now.Add(time.Duration(hour)*time.Hour))
				}
			}},
			{"A source of a key's day", 10 * rows, func() {
				for source := range 10 {
					exec("INSERT INTO api_key_sources (api_key_id, day, address, client, requests, first_seen, last_seen) SELECT id, ?, ?, 'Python-urllib/3.11', 12345, ?, ? FROM api_keys",
						now.Truncate(value.Day), fmt.Sprintf("203.0.113.%d", 100+source), now, now)
				}
			}},
			{"A session", rows, func() {
				exec(`INSERT INTO sessions (id, user_id, token_hash, created_at, last_seen_at, authenticated_at, expires_at, first_address, last_address, user_agent)
					SELECT id, ?, key_hash, ?, ?, ?, ?, '203.0.113.100', '203.0.113.100', ? FROM api_keys ORDER BY id`, user.ID, now, now, now, now.Add(time.Hour),
					"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36")
			}},
			{"An activity", rows, func() {
				exec(`INSERT INTO activities (id, account_id, actor_kind, actor_id, action, subject_id, label, address, at)
					SELECT id, account_id, 'user', ?, ?, form_id, 'production of the shop', '203.0.113.100', ? FROM api_keys ORDER BY id`,
					user.ID, record.ActionKeyGenerated, now)
			}},
		} {
			before := modelstest.Value(store.Figures(t.Context()))(t).DatabaseSize
			size.write()
			bytes := int(modelstest.Value(store.Figures(t.Context()))(t).DatabaseSize-before) / size.count
			documented := regexp.MustCompile(`\| ` + size.what + ` \| (\d+) B \| (\d+) B \|`).FindStringSubmatch(chapter)
			if documented == nil {
				t.Fatalf("the chapter has no row %q", size.what)
			}
			want := modelstest.Value(strconv.Atoi(documented[column]))(t)
			if bytes < want*4/5 || bytes > want*6/5 {
				t.Errorf("%s: %d bytes, documented are %d", size.what, bytes, want)
			}
		}
	})
}
