package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"portal/models"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
)

// rows decodes a JSON array.
func rows(t *testing.T, text string) (rows []map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return rows
}

// columns splits the lines of a table. Unless the columns are aligned, columns fails the test.
func columns(t *testing.T, table string) (cells [][]string) {
	t.Helper()
	var starts []int
	for line := range strings.Lines(table) {
		var row []string
		var startsOfRow []int
		for _, span := range regexp.MustCompile(`\S+( \S+)*`).FindAllStringIndex(line, -1) {
			row, startsOfRow = append(row, line[span[0]:span[1]]), append(startsOfRow, span[0])
		}
		if starts != nil && !slices.Equal(starts, startsOfRow) {
			t.Errorf("the columns are not aligned:\n%s", table)
		}
		starts, cells = startsOfRow, append(cells, row)
	}
	return cells
}

func TestListsHaveAlignedColumnsOrJSON(t *testing.T) {
	t.Parallel()
	url := modelstest.SQLiteURL(t)
	env := databaseEnv(url)
	store := modelstest.Open(t, url, models.Options{})
	account := createAccount(t, store)
	agent := mustPortal(t, env, "", "agent", "create", "--account", testEmail, "--name", "Front desk")
	member := mustPortal(t, env, otherPassword, "user", "add", "--account", account.ID.String(), "--email", "bob@example.com")
	owner := mustPortal(t, env, otherPassword, "user", "add", "--account", testEmail, "--email", "eve@example.com", "--role", "owner")
	mustPortal(t, env, "", "user", "disable", "--email", "bob@example.com")
	mustPortal(t, env, "", "key", "revoke", "--id", account.key.ID.String())

	old, _, err := store.Keys.Generate(t.Context(), account.ID, keys.NewKey{Label: "old", FormID: uuid.New()}, record.Operator())
	modelstest.Must(t, err)
	_, _, err = store.Keys.Generate(t.Context(), account.ID, keys.NewKey{Label: "new", FormID: uuid.New()}, record.Operator())
	modelstest.Must(t, err)
	for _, key := range []keys.Key{old, account.key} {
		modelstest.Exec(t, url, "INSERT INTO api_key_last_uses (api_key_id, used_at) VALUES ('"+key.ID.String()+"', '2020-01-03 10:00:00+00:00')")
	}
	unused := columns(t, mustPortal(t, env, "", "key", "list", "--account", testEmail, "--unused", "90d")+"\n")
	if len(unused) != 2 || unused[1][0] != old.ID.String() {
		t.Errorf("unused keys: %v", unused)
	}

	for _, list := range []struct {
		args   []string
		header string
		id     string
		cells  []string       // of the row with the id
		fields map[string]any // of the object with the id
	}{
		{
			[]string{"account", "list"},
			"ID NAME STATE CREATED KEYS USERS LAST USED", account.ID.String(),
			[]string{"Ada", "enabled", account.CreatedAt.Format(time.RFC3339), "2", "3", "2020-01-03T10:00:00Z"},
			map[string]any{"name": "Ada", "disabled": false, "keys": 2.0, "users": 3.0, "lastUsedAt": "2020-01-03T10:00:00Z"},
		},
		{[]string{"agent", "list", "--account", testEmail}, "ID NAME", agent, []string{"Front desk"}, map[string]any{"name": "Front desk"}},
		{
			[]string{"user", "list", "--account", testEmail},
			"ID EMAIL ROLE STATE LAST SIGN-IN TWO-STEP", owner,
			[]string{"eve@example.com", "owner", "enabled", "-", "-"},
			map[string]any{"email": "eve@example.com", "role": "owner", "disabled": false, "lastSignInAt": nil, "twoStep": nil},
		},
		{
			[]string{"user", "list", "--account", testEmail},
			"ID EMAIL ROLE STATE LAST SIGN-IN TWO-STEP", member,
			[]string{"bob@example.com", "member", "disabled"},
			map[string]any{"email": "bob@example.com", "role": "member", "disabled": true},
		},
		{
			[]string{"key", "list", "--account", testEmail},
			"ID LABEL KEY CREATED LAST USED REVOKED EXPIRES EXPIRED ACCESS AGENTS NETWORKS", account.key.ID.String(),
			[]string{"prod", account.key.Masked()},
			map[string]any{"label": "prod", "maskedKey": account.key.Masked(), "access": "agents", "lastUsedAt": "2020-01-03T10:00:00Z"},
		},
	} {
		table := columns(t, mustPortal(t, env, "", list.args...)+"\n")
		if got := strings.Join(table[0], " "); got != list.header {
			t.Errorf("%v: header %q, want %q", list.args, got, list.header)
		}
		at := slices.IndexFunc(table, func(row []string) bool { return row[0] == list.id })
		if at < 0 || !slices.Equal(table[at][1:1+len(list.cells)], list.cells) {
			t.Errorf("%v: no row %s %v in %v", list.args, list.id, list.cells, table)
		}
		objects := rows(t, mustPortal(t, env, "", append(list.args, "--json")...))
		at = slices.IndexFunc(objects, func(row map[string]any) bool { return row["id"] == list.id })
		if at < 0 || len(objects) != len(table)-1 {
			t.Fatalf("%v: %v", list.args, objects)
		}
		for name, want := range list.fields {
			if got, present := objects[at][name]; !present || got != want {
				t.Errorf("%v: %s is %v, want %v", list.args, name, got, want)
			}
		}
	}
}

func TestAnEmptyListIsAnEmptyArray(t *testing.T) {
	t.Parallel()
	env := databaseEnv(modelstest.SQLiteURL(t))
	if got := mustPortal(t, env, "", "account", "list", "--json"); got != "[]" {
		t.Errorf("got %q", got)
	}
	if got := mustPortal(t, env, "", "account", "list"); got != "ID  NAME  STATE  CREATED  KEYS  USERS  LAST USED" {
		t.Errorf("got %q", got)
	}
}

func TestATerminalIsAskedForThePasswordWithoutEcho(t *testing.T) {
	t.Parallel()
	url := modelstest.SQLiteURL(t)
	run := func(answers ...string) (status int, shown, stderr string) {
		keyboard, screen := openTerminal(t)
		command := portalCommand(t, databaseEnv(url), "account", "create", "--name", "Ada", "--email", testEmail)
		var out, errs modelstest.LogBuffer
		command.Stdin, command.Stdout, command.Stderr = keyboard, &out, &errs
		modelstest.Must(t, command.Start())
		for i, question := range []string{"Password: ", "Repeat the password: "} {
			modelstest.Eventually(t, "it asks "+question, func() bool { return strings.HasSuffix(errs.String(), question) && !echoes(t, keyboard) })
			modelstest.Value(screen.WriteString(answers[i] + "\n"))(t)
		}
		_ = command.Wait() // the status says more
		buffer := make([]byte, 1024)
		_ = screen.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		n, _ := screen.Read(buffer)
		return command.ProcessState.ExitCode(), string(buffer[:n]), errs.String() + out.String()
	}
	status, _, output := run(testPassword, testPassword+"x")
	if status != exitInvalid || !strings.Contains(output, "differ") {
		t.Errorf("different passwords: status %d, %s", status, output)
	}
	status, shown, output := run(testPassword, testPassword)
	if status != 0 || strings.Contains(shown+output, testPassword) {
		t.Errorf("status %d, the terminal shows %q, output %s", status, shown, output)
	}
	if _, err := modelstest.Open(t, url, models.Options{}).SignIn.VerifyPassword(t.Context(), testEmail, testPassword, people.Client{Address: "192.0.2.1"}); err != nil {
		t.Errorf("the password does not sign in: %v", err)
	}
}

// openTerminal returns a terminal as a program sees it, and as its user does.
func openTerminal(t *testing.T) (keyboard, screen *os.File) {
	t.Helper()
	screen = modelstest.Value(os.OpenFile("/dev/ptmx", os.O_RDWR, 0))(t)
	t.Cleanup(func() { _ = screen.Close() })
	connection := modelstest.Value(screen.SyscallConn())(t)
	var number int
	var unlocked, numbered error
	err := connection.Control(func(fd uintptr) {
		unlocked = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0)
		number, numbered = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
	})
	modelstest.Must(t, errors.Join(err, unlocked, numbered))
	keyboard = modelstest.Value(os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0))(t)
	t.Cleanup(func() { _ = keyboard.Close() })
	return keyboard, screen
}

// echoes reports whether the terminal shows its input.
func echoes(t *testing.T, keyboard *os.File) bool {
	t.Helper()
	state := modelstest.Value(unix.IoctlGetTermios(int(keyboard.Fd()), unix.TCGETS))(t)
	return state.Lflag&unix.ECHO != 0
}
