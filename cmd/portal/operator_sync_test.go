package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/modelstest"
	"portal/models/modelstest/subprocess"
	"portal/models/value"
)

// The test runs the program of the guide against a portal that is started as the guide says.
func TestTheDocumentedProgramKeepsAPlatformInStep(t *testing.T) {
	t.Parallel()
	dir, env := repositoryWithBinary(t)
	url := modelstest.PostgresURL(t)
	serve := strings.Replace(shellBlocks(t, "operations/operator-api.md")["Operator API"][0], "bin/portal serve", "exec bin/portal serve", 1)
	token := strings.Repeat("operator-token", 3)
	serve = strings.Replace(serve, "$(openssl rand -hex 32)", "'"+token+"'", 1)
	i := launchCommand(t, bashCommand(t, dir, append(env, "DATABASE_URL="+url, testSecret, anyPort), serve))
	i.awaitReady(t)
	store := modelstest.Open(t, url, models.Options{})

	program := buildProgram(t, "operations/sync.go.txt", nil)
	if output, err := exec.Command("go", "vet", program+".go").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, output)
	}
	acme, gone, agent := uuid.New(), uuid.New(), uuid.New()
	start := func(platform string, output *modelstest.LogBuffer, flags ...string) *subprocess.Child {
		t.Helper()
		modelstest.Must(t, os.WriteFile(filepath.Join(dir, "platform.json"), []byte(platform), 0o600))
		command := exec.Command(program, flags...)
		command.Dir, command.Env = dir, []string{"SYNC_PORTAL_URL=" + i.URL, "PORTAL_OPERATOR_TOKEN=" + token}
		command.Stdout, command.Stderr = output, output
		return modelstest.Value(subprocess.Start(command))(t)
	}
	run := func(platform string, done func() bool, flags ...string) {
		t.Helper()
		var output modelstest.LogBuffer
		child := start(platform, &output, flags...)
		defer func() {
			child.Kill()
			if output.String() != "" {
				t.Errorf("the program reports %s", output.String())
			}
		}()
		modelstest.Eventually(t, "the portal has "+platform, done)
	}
	names := func(id uuid.UUID) (names []string) {
		agents := modelstest.Value(store.Agents.List(t.Context(), id, value.Page{Limit: 10}))(t)
		for _, agent := range agents.Items {
			names = append(names, agent.Name)
		}
		return names
	}
	disabled := func(id uuid.UUID) bool {
		account, err := store.Accounts.Find(t.Context(), id)
		return err == nil && account.DisabledAt != nil
	}

	other := `{"id": "` + gone.String() + `", "name": "Gone"}`
	run(`[{"id": "`+acme.String()+`", "name": "Acme", "agents": {"`+agent.String()+`": "Reception"}}, `+other+`]`, func() bool {
		_, err := store.Accounts.Find(t.Context(), gone)
		return err == nil && strings.Join(names(acme), ",") == "Reception"
	})
	smaller := `[{"id": "` + acme.String() + `", "name": "Acme Ltd", "agents": {"` + uuid.NewString() + `": "Sales"}}]`
	var dry modelstest.LogBuffer
	child := start(smaller, &dry, "-dry-run", "-disable", "1")
	modelstest.Eventually(t, "a dry run", func() bool { return strings.Contains(dry.String(), `{"disabled":true,"name":"Gone"}`) })
	child.Kill()
	if !strings.Contains(dry.String(), "DELETE /operator/accounts/"+acme.String()+"/agents/"+agent.String()) || strings.Join(names(acme), ",") != "Reception" {
		t.Errorf("the dry run printed %s, and the agents are %v", dry.String(), names(acme))
	}
	// One of two is more than a tenth.
	for _, platform := range []string{`[]`, smaller} {
		var refused modelstest.LogBuffer
		child := start(platform, &refused)
		modelstest.Eventually(t, "a refusal", func() bool { return strings.Contains(refused.String(), "none is disabled") })
		child.Kill()
		if disabled(gone) || disabled(acme) {
			t.Errorf("%s disables accounts", platform)
		}
	}
	run(smaller, func() bool { return disabled(gone) }, "-disable", "1")
	if account, err := store.Accounts.Find(t.Context(), acme); err != nil || account.Name != "Acme Ltd" || strings.Join(names(acme), ",") != "Sales" {
		t.Errorf("%+v with the agents %v, %v", account, names(acme), err)
	}
}
