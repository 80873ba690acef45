package modelstest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"portal/models/record"
)

// Actions returns every action that package record declares.
func Actions(t testing.TB) (actions []record.Action) {
	t.Helper()
	// With -trimpath a program does not know where its sources are.
	root := Value(exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output())(t)
	source := Value(os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "models", "record", "activity.go")))(t)
	for _, match := range regexp.MustCompile(`Action = "(.+)"`).FindAllSubmatch(source, -1) {
		actions = append(actions, record.Action(match[1]))
	}
	if len(actions) < 40 {
		t.Errorf("only %d actions are declared", len(actions))
	}
	slices.Sort(actions)
	return actions
}
