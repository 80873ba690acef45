package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"portal/models"
	"portal/models/modelstest"
)

const readmeAddress = "http://127.0.0.1:8080"

// readmeCommands returns the shell commands under a heading of the README, block by block, as a reader would paste them.
func readmeCommands(t *testing.T, heading string) []string {
	t.Helper()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(readme), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("the README has no %s", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var blocks []string
	for _, block := range regexp.MustCompile("(?s)\n *```sh\n(.*?\n) *```\n").FindAllStringSubmatch(section, -1) {
		blocks = append(blocks, block[1])
	}
	return blocks
}

// bash runs commands in a directory; what they read from the keyboard is stdin.
func bash(t *testing.T, dir string, env []string, stdin, commands string) string {
	t.Helper()
	shell := exec.Command("bash", "-uc", commands)
	shell.Dir, shell.Stdin = dir, strings.NewReader(stdin)
	shell.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, env...)
	output, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, output, commands)
	}
	return string(output)
}

func TestTheREADMEsTourWorksAsPasted(t *testing.T) {
	t.Parallel()
	i := start(t, []string{anyPort}, "serve", "--demo")
	told := strings.Fields(i.stdout.String())
	visitor := newVisitor(t)
	visitor.signIn(i, told[1], told[3])
	key := visitor.generate(i, "prod")

	tour := strings.ReplaceAll(strings.Join(readmeCommands(t, "Tour"), "\n"), readmeAddress, i.URL)
	said := bash(t, t.TempDir(), nil, key+"\n", tour)
	for _, want := range []string{told[len(told)-1], `"access_token"`, `"token_type":"Bearer"`} {
		if !strings.Contains(said, want) {
			t.Errorf("want %s in %s", want, said)
		}
	}
	visitor.revokeOnly(i)
	said = bash(t, t.TempDir(), nil, key+"\n", tour)
	if !strings.Contains(said, "UNAUTHORIZED") || !strings.Contains(said, "revoked") {
		t.Errorf("want the revoked key refused, got %s", said)
	}
	if strings.Contains(tour, "127.0.0.1:8080") {
		t.Error("the tour names an address that the test has not replaced")
	}
	if status, _ := i.api(t, http.MethodGet, "/openapi.json", "", ""); status != http.StatusOK {
		t.Errorf("the description that the tour names: %d", status)
	}
}

func TestTheREADMEsOperatorCommandsWorkAsPasted(t *testing.T) {
	t.Parallel()
	dir, url := t.TempDir(), modelstest.SQLiteURL(t)
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary, filepath.Join(dir, "bin", "portal")); err != nil {
		t.Fatal(err)
	}
	blocks := readmeCommands(t, "Operators")
	if len(blocks) != 3 || strings.TrimSpace(blocks[0]) != "make build" {
		t.Fatalf("want the build, making accounts and revoking keys, got %q", blocks)
	}
	account := makeAccount(t, modelstest.Open(t, url, models.Options{}))
	env := append(databaseEnv(url), actAsPortal+"=1")
	ids := strings.Fields(bash(t, dir, env, "", blocks[1]))
	if len(ids) != 2 {
		t.Errorf("want the ids of the account and the agent, got %q", ids)
	}
	if said := bash(t, dir, env, account.secret+"\n", blocks[2]); !strings.Contains(said, account.key.ID.String()) {
		t.Errorf("the key is not revoked: %s", said)
	}
}
