package main

import (
	"errors"
	"maps"
	"net/http"
	neturl "net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"portal/models"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/value"
)

// documentedURL is the portal's address in README.md.
const documentedURL = "http://localhost:8080"

// operationsGuide returns the paths of OPERATIONS.md and its chapters.
func operationsGuide(t *testing.T) []string {
	t.Helper()
	chapters := modelstest.Value(filepath.Glob("operations/*.md"))(t)
	return append(chapters, "../../OPERATIONS.md")
}

// shellBlocks returns the shell blocks of Markdown files, by section heading.
func shellBlocks(t *testing.T, files ...string) map[string][]string {
	t.Helper()
	block := regexp.MustCompile("(?s)\n *```sh\n(.*?\n) *```\n")
	blocks := map[string][]string{}
	for _, file := range files {
		for section := range strings.SplitSeq(strings.TrimPrefix(readFile(t, file), "# "), "\n## ") {
			heading, body, _ := strings.Cut(section, "\n")
			for _, match := range block.FindAllStringSubmatch(body, -1) {
				blocks[heading] = append(blocks[heading], match[1])
			}
		}
	}
	return blocks
}

// bash runs commands in dir with stdin as the keyboard input, and returns their combined output.
func bash(t *testing.T, dir string, env []string, stdin, commands string) string {
	t.Helper()
	shell := bashCommand(t, dir, env, commands)
	shell.Stdin = strings.NewReader(stdin)
	output, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, output, commands)
	}
	return string(output)
}

func bashCommand(t *testing.T, dir string, env []string, commands string) *exec.Cmd {
	t.Helper()
	shell := exec.Command("bash", "-euc", commands)
	shell.Dir = dir
	shell.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, env...)
	return shell
}

// repositoryWithBinary returns a directory whose bin/portal is this test binary, and the
// environment in which that binary acts as the portal.
func repositoryWithBinary(t *testing.T) (dir string, env []string) {
	t.Helper()
	binary := modelstest.Value(os.Executable())(t)
	dir = t.TempDir()
	modelstest.Must(t, os.Mkdir(filepath.Join(dir, "bin"), 0o700))
	modelstest.Must(t, os.Symlink(binary, filepath.Join(dir, "bin", "portal")))
	return dir, []string{actAsPortal + "=1"}
}

func TestREADMETourRunsAsPasted(t *testing.T) {
	t.Parallel()
	i := start(t, []string{anyPort}, "serve", "--demo")
	printed := printedDemo.FindStringSubmatch(i.stdout.String())
	visitor := modelstest.NewVisitor(t, i.URL)
	visitor.SignIn(printed[2], printed[3])
	key := visitor.Generate("prod")

	tour := strings.ReplaceAll(strings.Join(shellBlocks(t, "../../README.md")["Tour"], "\n"), documentedURL, i.URL)
	output := bash(t, t.TempDir(), nil, key+"\n", tour)
	for _, want := range []string{printed[4], `"access_token"`, `"token_type":"Bearer"`} {
		if !strings.Contains(output, want) {
			t.Errorf("want %s in %s", want, output)
		}
	}
	revokeOnly(visitor)
	output = bash(t, t.TempDir(), nil, key+"\n", tour)
	if !strings.Contains(output, "UNAUTHORIZED") || !strings.Contains(output, "revoked") {
		t.Errorf("want the revoked key refused, got %s", output)
	}
	if strings.Contains(tour, ":8080") {
		t.Error("the tour has an address that the test does not replace")
	}
	i.Get("/openapi.json").Is(http.StatusOK)
}

func TestOperationsCommandsRunAsPasted(t *testing.T) {
	t.Parallel()
	blocks := shellBlocks(t, operationsGuide(t)...)
	want := map[string]int{
		"Accounts and agents": 5, "Leaked keys": 1, "Operator API": 1, "PostgreSQL": 1, "Schema": 1, "Compose": 2, "Health": 1, "Metrics": 1,
		"Backup": 1, "Restore": 2, "Upgrade": 1, "Who did what": 1, "HAProxy": 1, "Several instances": 1,
		"PostgreSQL's own backups": 2, "Every night": 1, "In production in ten steps": 4,
		"Fail over":  4, // e2e/chaos runs these
		"Commands":   1, // make build
		"Monitoring": 1, // tools/deployment runs this
		// tools/check-release runs these.
		"Verify a download": 1, "Sign a release": 1,
	}
	if got := countBlocks(blocks); !maps.Equal(got, want) {
		t.Fatalf("the guide has %v shell blocks, and the tests run %v", got, want)
	}

	t.Run("accounts, agents and leaked keys", func(t *testing.T) {
		t.Parallel()
		dir, env := repositoryWithBinary(t)
		url := modelstest.SQLiteURL(t)
		env = append(env, databaseEnv(url)...)
		ids := strings.Fields(bash(t, dir, env, "", blocks["Accounts and agents"][0]))
		if len(ids) != 2 {
			t.Errorf("want the ids of the account and the agent, got %q", ids)
		}
		listed := bash(t, dir, env, "", blocks["Accounts and agents"][1])
		for _, want := range []string{"Your Company", "you@example.com", "eve@example.com", "owner", `"name": "Reception"`} {
			if !strings.Contains(listed, want) {
				t.Errorf("want %q in %s", want, listed)
			}
		}
		bash(t, dir, env, "", blocks["Accounts and agents"][2])
		bash(t, dir, env, "", blocks["Accounts and agents"][3]+blocks["Accounts and agents"][4])

		account := createAccount(t, modelstest.Open(t, url, models.Options{}))
		output := bash(t, dir, env, account.secret+"\n", blocks["Leaked keys"][0])
		if !strings.Contains(output, account.key.ID.String()) {
			t.Errorf("the key is not revoked: %s", output)
		}
	})
	t.Run("production", func(t *testing.T) {
		t.Parallel()
		url := modelstest.OwnCluster(t).URL("postgres")
		server := modelstest.Value(neturl.Parse(url))(t)
		// The commands create the role portal.
		modelstest.Exec(t, url, "CREATE ROLE postgres SUPERUSER LOGIN")
		modelstest.Exec(t, strings.Replace(url, "portal@", "postgres@", 1), "ALTER ROLE portal RENAME TO tests")
		dir, programs := t.TempDir(), t.TempDir()
		modelstest.Must(t, os.WriteFile(filepath.Join(programs, "su"), []byte("#!/bin/sh\nshift 2\nexec sh \"$@\"\n"), 0o700))
		modelstest.Must(t, os.Symlink(modelstest.Value(os.Executable())(t), filepath.Join(programs, "portal")))
		address := freeAddress(t)
		paste := strings.NewReplacer("/etc/portal.env", "portal.env", ":5432", ":"+server.Port(), "127.0.0.1:8090", "127.0.0.1:0",
			"https://portal.example.com", "http://"+address)
		step := func(i int) string { return paste.Replace(blocks["In production in ten steps"][i]) }
		bash(t, dir, []string{
			"PATH=" + programs + ":" + os.Getenv("PATH"), "PGHOST=127.0.0.1", "PGPORT=" + server.Port(), "PGUSER=postgres",
		}, "", step(0)+step(1))
		env := []string{actAsPortal + "=1", "PATH=" + programs + ":" + os.Getenv("PATH"), "PORTAL_ADDR=" + address}
		if output := bash(t, dir, env, "", step(2)); !strings.Contains(output, "\nwarning  schema: ") || !strings.Contains(output, "\nwarning  PORTAL_BASE_URL: ") {
			t.Errorf("before the start: %s", output)
		}
		info := modelstest.Value(os.Stat(filepath.Join(dir, "portal.env")))(t)
		settings := strings.Fields(readFile(t, filepath.Join(dir, "portal.env")))
		i := start(t, append(settings, env[2]))
		if info.Mode().Perm() != 0o600 || len(settings) != 5 || strings.Contains(i.stderr.String(), "WARN") {
			t.Errorf("%v %q: %s", info.Mode(), settings, i.stderr.String())
		}
		for line := range strings.Lines(bash(t, dir, env, "", step(2))) {
			if !strings.HasPrefix(line, "ok ") && !strings.HasPrefix(line, "off ") {
				t.Errorf("after the start: %s", line)
			}
		}
		output := bash(t, dir, env, testPassword, step(3))
		if ids := strings.Fields(output); len(ids) != 2 {
			t.Errorf("want the ids of the account and the agent, got %q", output)
		}
	})
	t.Run("backup and restore", func(t *testing.T) {
		t.Parallel()
		modelstest.Databases(t, func(t *testing.T, url string) {
			dir, env := repositoryWithBinary(t)
			env = append(env, databaseEnv(url)...)
			store := modelstest.Open(t, url, models.Options{})
			account := createAccount(t, store)
			bash(t, dir, env, "", blocks["Upgrade"][0])
			bash(t, dir, env, "", blocks["Backup"][0]+blocks["Every night"][0])
			output := bash(t, dir, env, "", blocks["Restore"][0])
			if _, err := store.API.Authenticate(t.Context(), account.secret, keys.Source{}); err != nil {
				t.Errorf("the restored key: %v\n%s", err, output)
			}
			bash(t, dir, env, "", blocks["Restore"][1])
			if _, err := store.API.Authenticate(t.Context(), account.secret, keys.Source{}); !errors.Is(err, value.ErrKeyRevoked) {
				t.Errorf("the revoked key: %v", err)
			}
		})
	})
	t.Run("PostgreSQL, health and compose", func(t *testing.T) {
		t.Parallel()
		dir, env := repositoryWithBinary(t)
		url := modelstest.EmptyPostgresURL(t)
		serve := regexp.MustCompile(`'postgres://.*'`).ReplaceAllString(blocks["PostgreSQL"][0],
			"'"+url+"'")
		// With exec the signal to stop reaches the portal instead of the shell.
		serve = strings.Replace(serve, "bin/portal serve", "exec bin/portal serve", 1)
		i := launchCommand(t, bashCommand(t, dir, append(env, anyPort), serve))
		i.awaitReady(t)
		address := strings.TrimPrefix(i.URL, "http://")
		health := strings.ReplaceAll(blocks["Several instances"][0]+blocks["Health"][0], "http://127.0.0.1:8080", i.URL)
		bash(t, dir, append(env, "PORTAL_ADDR="+address), "", health)

		bash(t, filepath.Join("..", ".."), env, "", blocks["Metrics"][0])

		env = append(env, databaseEnv(url)...)
		bash(t, dir, env, "", blocks["Schema"][0])
		create := strings.Replace(blocks["Compose"][1], "docker compose run --rm -T portal-1", "bin/portal", 1)
		if ids := strings.Fields(bash(t, dir, env, "", create)); len(ids) != 1 {
			t.Errorf("want the id of the account, got %q", ids)
		}
		modelstest.Exec(t, url, "INSERT INTO activities (id, account_id, actor_kind, action, label, address, at) "+
			"SELECT gen_random_uuid(), id, 'operator', 'agent.created', 'Reception', '', now() FROM accounts")
		server := modelstest.Value(neturl.Parse(url))(t)
		env = append(env, "PGHOST="+server.Hostname(), "PGPORT="+server.Port(), "PGDATABASE="+server.Path[1:], "PGUSER="+server.User.Username())
		if output := bash(t, dir, env, "", blocks["Who did what"][0]); !strings.Contains(output, "Your Company") || !strings.Contains(output, "Reception") {
			t.Errorf("the activity is not in %s", output)
		}
	})
}

func countBlocks(blocks map[string][]string) map[string]int {
	counts := map[string]int{}
	for heading, list := range blocks {
		counts[heading] = len(list)
	}
	return counts
}

// These commands build or test the whole repository, which no test can run. Their targets must
// exist.
func TestDocumentedMakeTargetsExist(t *testing.T) {
	t.Parallel()
	makefile := modelstest.Value(os.ReadFile("../../Makefile"))(t)
	var commands []string
	for _, list := range shellBlocks(t, append(operationsGuide(t), "../../README.md", "../../CONTRIBUTING.md")...) {
		commands = append(commands, list...)
	}
	targets := regexp.MustCompile(`(?m)^make ([a-z]+)$`).FindAllStringSubmatch(strings.Join(commands, ""), -1)
	if len(targets) < 3 {
		t.Errorf("want at least run, test and build, got %q", targets)
	}
	for _, target := range targets {
		if !strings.Contains(string(makefile), "\n"+target[1]+":") {
			t.Errorf("make %s has no target", target[1])
		}
	}
}

func TestDocumentsLinkToFilesAndHeadingsThatExist(t *testing.T) {
	t.Parallel()
	anchors := func(file string) map[string]bool {
		found := map[string]bool{}
		for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(readFile(t, file), -1) {
			slug := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(heading[1]), "")
			found[strings.ReplaceAll(slug, " ", "-")] = true
		}
		return found
	}
	for _, file := range append(operationsGuide(t),
		"../../README.md", "../../ARCHITECTURE.md", "../../CONTRIBUTING.md", "../../SECURITY.md", "../../CHANGELOG.md") {
		for _, link := range regexp.MustCompile(`\]\(([^():]*)\)`).FindAllStringSubmatch(readFile(t, file), -1) {
			path, anchor, _ := strings.Cut(link[1], "#")
			target := file
			if path != "" {
				target = filepath.Join(filepath.Dir(file), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %v", file, err)
			} else if anchor != "" && !anchors(target)[anchor] {
				t.Errorf("%s links to %s, which has no such heading", file, link[1])
			}
		}
	}
}
