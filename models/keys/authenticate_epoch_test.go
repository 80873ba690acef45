package keys_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/modelstest"
	"portal/models/people"
)

func (f *fixture) epoch(t *testing.T) []byte {
	t.Helper()
	return epochIn(t, f.DB)
}

func epochIn(t *testing.T, db bun.IDB) []byte {
	t.Helper()
	var value []byte
	must(t, db.QueryRowContext(t.Context(), "SELECT value FROM auth_epoch").Scan(&value))
	if len(value) != 16 {
		t.Fatalf("the epoch has %d bytes", len(value))
	}
	return value
}

const (
	anyDatabase = ""
	onSQLite    = "sqlite"
	onPostgres  = "pg"
)

// epochStatements are SQL statements of an operator, which must replace the epoch if renews is set.
// {key}, {sibling} and {agent} belong to {account}. The account {spare} has no keys and no agents.
var epochStatements = []struct {
	name, on, statement string
	renews              bool
}{
	{"revoke a key", anyDatabase, "UPDATE api_keys SET revoked_at = {now} WHERE id = {key}", true},
	{"revoke all keys", anyDatabase, "UPDATE api_keys SET revoked_at = {now}", true},
	{"change a key's expiry", anyDatabase, "UPDATE api_keys SET expires_at = {now} WHERE id = {key}", true},
	{"change a key's agents", anyDatabase, "UPDATE api_keys SET agents = '[]' WHERE id = {key}", true},
	{"change a key's networks", anyDatabase, "UPDATE api_keys SET networks = '[]' WHERE id = {key}", true},
	{"change a key's limits", anyDatabase, "UPDATE api_keys SET limits = '{}' WHERE id = {key}", true},
	{"change an account's limits", anyDatabase, "UPDATE accounts SET limits = '{}' WHERE id = {spare}", true},
	{"pause an agent", anyDatabase, "UPDATE agents SET paused_at = {now} WHERE id = {agent}", true},
	{"revoke and rename", anyDatabase, "UPDATE api_keys SET label = 'x', revoked_at = {now} WHERE id = {key}", true},
	{"revoke by an upsert", anyDatabase, `INSERT INTO api_keys (id, account_id, label, key_hash, last_four, form_id, created_at)
		VALUES ({key}, {account}, 'x', {hash}, 'abcd', {new}, {now}) ON CONFLICT (id) DO UPDATE SET revoked_at = excluded.created_at`, true},
	{"delete a key", anyDatabase, "DELETE FROM api_keys WHERE id = {key}", true},
	{"delete all keys", anyDatabase, "DELETE FROM api_keys", true},
	{"change a key's hash", anyDatabase, "UPDATE api_keys SET key_hash = {hash} WHERE id = {key}", true},
	{"change a key's account", anyDatabase, "UPDATE api_keys SET account_id = {spare} WHERE id = {key}", true},
	{"change a key's id", anyDatabase, "UPDATE api_keys SET id = {new} WHERE id = {key}", true},
	{"disable an account", anyDatabase, "UPDATE accounts SET disabled_at = {now} WHERE id = {account}", true},
	{"delete an account", anyDatabase, "DELETE FROM accounts WHERE id = {spare}", true},
	{"change an account's id", anyDatabase, "UPDATE accounts SET id = {new} WHERE id = {spare}", true},
	{"delete an agent", anyDatabase, "DELETE FROM agents WHERE id = {agent}", true},
	{"move an agent", anyDatabase, "UPDATE agents SET account_id = {spare} WHERE id = {agent}", true},
	{"change an agent's id", anyDatabase, "UPDATE agents SET id = {new} WHERE id = {agent}", true},

	{"truncate keys", onPostgres, "TRUNCATE api_keys CASCADE", true},
	{"truncate agents", onPostgres, "TRUNCATE agents", true},
	{"truncate both", onPostgres, "TRUNCATE agents, api_keys CASCADE", true},
	{"delete a key in a CTE", onPostgres, "WITH gone AS (DELETE FROM api_keys WHERE id = {key} RETURNING id) SELECT count(*) FROM gone", true},
	{"delete a key by MERGE", onPostgres, `MERGE INTO api_keys AS k USING (SELECT {key}::uuid AS id) AS wanted ON k.id = wanted.id
		WHEN MATCHED THEN DELETE`, true},

	{"replace a key", onSQLite, `INSERT OR REPLACE INTO api_keys (id, account_id, label, key_hash, last_four, form_id, created_at)
		VALUES ({key}, {account}, 'x', {hash}, 'abcd', {new}, {now})`, true},
	{"replace a key by its hash", onSQLite, `INSERT OR REPLACE INTO api_keys (id, account_id, label, key_hash, last_four, form_id, created_at)
		SELECT {new}, {spare}, 'x', key_hash, 'abcd', {new}, {now} FROM api_keys WHERE id = {key}`, true},
	{"replace a key by its form", onSQLite, `INSERT OR REPLACE INTO api_keys (id, account_id, label, key_hash, last_four, form_id, created_at)
		SELECT {new}, account_id, 'x', {hash}, 'abcd', form_id, {now} FROM api_keys WHERE id = {key}`, true},
	{"update over another key's hash", onSQLite, `UPDATE OR REPLACE api_keys SET key_hash = (SELECT key_hash FROM api_keys WHERE id = {key})
		WHERE id = {sibling}`, true},
	{"update over another key's form", onSQLite, `UPDATE OR REPLACE api_keys SET form_id = (SELECT form_id FROM api_keys WHERE id = {key})
		WHERE id = {sibling}`, true},
	{"replace an agent", onSQLite, "REPLACE INTO agents (id, account_id, name, created_at) VALUES ({agent}, {spare}, 'x', {now})", true},
	{"replace an account", onSQLite, "REPLACE INTO accounts (id, name, created_at, disabled_at) VALUES ({account}, 'x', {now}, {now})", true},

	{"insert a key", anyDatabase, `INSERT INTO api_keys (id, account_id, label, key_hash, last_four, form_id, created_at)
		VALUES ({new}, {account}, 'x', {hash}, 'abcd', {new}, {now})`, true},
	{"insert an agent", anyDatabase, "INSERT INTO agents (id, account_id, name, created_at) VALUES ({new}, {account}, 'x', {now})", true},
	{"insert an account", anyDatabase, "INSERT INTO accounts (id, name, created_at) VALUES ({new}, 'x', {now})", true},

	{"insert an agent that exists", anyDatabase, `INSERT INTO agents (id, account_id, name, created_at)
		VALUES ({agent}, {account}, 'x', {now}) ON CONFLICT (id) DO NOTHING`, false},
	{"revoke no key", anyDatabase, "UPDATE api_keys SET revoked_at = {now} WHERE id = {new}", false},
	{"delete no agent", anyDatabase, "DELETE FROM agents WHERE id = {new}", false},
	{"rename a key", anyDatabase, "UPDATE api_keys SET label = 'x' WHERE id = {key}", false},
	{"annotate a key", anyDatabase, "UPDATE api_keys SET note = 'x' WHERE id = {key}", false},
	{"rename an agent", anyDatabase, "UPDATE agents SET name = 'x' WHERE id = {agent}", false},
	{"rename an account", anyDatabase, "UPDATE accounts SET name = 'x' WHERE id = {account}", false},
	{"use a key", anyDatabase, "INSERT INTO api_key_last_uses (api_key_id, used_at) VALUES ({key}, {now})", false},
	{"use a key again", anyDatabase, "UPDATE api_key_last_uses SET used_at = {now}", false},
	{"count a use", anyDatabase, "INSERT INTO api_key_hourly_usage (api_key_id, hour) VALUES ({key}, {now})", false},
	{"read", anyDatabase, "SELECT count(*) FROM api_keys", false},
}

// TestOperatorSQLRenewsTheEpoch checks that the epoch is replaced by every statement that inserts,
// deletes or changes access, and by no other, because a new epoch makes every instance drop its
// memory.
func TestOperatorSQLRenewsTheEpoch(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		for _, s := range epochStatements {
			if s.on != anyDatabase && s.on != f.DB.Dialect().Name().String() {
				continue
			}
			c := f.Customer(t)
			key, _ := f.Key(t, c)
			sibling, _ := f.Key(t, c)
			agent := f.Agent(t, c)
			spare := people.Account{ID: newID(), Name: "Spare", CreatedAt: f.Clock.Now()}
			must(t, errOf(f.DB.NewInsert().Model(&spare).Exec(t.Context())))
			hash := strings.ReplaceAll(uuid.NewString()+uuid.NewString(), "-", "")
			if f.Postgres() {
				hash = `'\x` + hash + `'::bytea`
			} else {
				hash = "X'" + hash + "'"
			}
			statement := strings.NewReplacer(
				"{key}", "'"+key.ID.String()+"'", "{sibling}", "'"+sibling.ID.String()+"'", "{agent}", "'"+agent.ID.String()+"'",
				"{account}", "'"+c.ID.String()+"'", "{spare}", "'"+spare.ID.String()+"'", "{new}", "'"+newID().String()+"'",
				"{hash}", hash, "{now}", "'2026-03-14 15:09:26+00:00'",
			).Replace(s.statement)
			before := f.epoch(t)

			// A rollback restores the epoch.
			tx := modelstest.Value(f.DB.BeginTx(t.Context(), nil))(t)
			if _, err := tx.ExecContext(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", s.name, err)
			}
			if f.Postgres() {
				// Otherwise the triggers run at the commit.
				must(t, errOf(tx.ExecContext(t.Context(), "SET CONSTRAINTS ALL IMMEDIATE")))
			}
			if renewed := !bytes.Equal(epochIn(t, tx), before); renewed != s.renews {
				t.Errorf("%s: renewed in its transaction: %t", s.name, renewed)
			}
			if !bytes.Equal(f.epoch(t), before) {
				t.Errorf("%s: renewed before the commit", s.name)
			}
			must(t, tx.Rollback())
			if !bytes.Equal(f.epoch(t), before) {
				t.Errorf("%s: renewed by a statement that was rolled back", s.name)
			}

			f.Exec(t, statement)
			if renewed := !bytes.Equal(f.epoch(t), before); renewed != s.renews {
				t.Errorf("%s: renewed: %t", s.name, renewed)
			}
		}
	})
}

func TestEpochIsOneRandomValue(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		key, _ := f.Key(t, c)
		seen := map[string]bool{}
		var ones [16]byte
		for range 50 {
			f.Exec(t, "UPDATE api_keys SET revoked_at = ? WHERE id = ?", f.Clock.Now(), key.ID)
			epoch := f.epoch(t)
			if seen[string(epoch)] {
				t.Fatal("an epoch occurred twice")
			}
			seen[string(epoch)] = true
			for i := range epoch {
				ones[i] |= epoch[i]
			}
		}
		if ones != [16]byte(bytes.Repeat([]byte{0xff}, 16)) {
			t.Errorf("some bits are never set: %x", ones)
		}
		for _, statement := range []string{
			"INSERT INTO auth_epoch (value) SELECT value FROM auth_epoch",
			"UPDATE auth_epoch SET value = NULL",
		} {
			if _, err := f.DB.ExecContext(t.Context(), statement); err == nil {
				t.Errorf("%s: no error", statement)
			}
		}
	})
}
