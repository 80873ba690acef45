package modelstest

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"testing"

	"portal/models/record"
)

// Actions returns every action that package record declares.
func Actions(t testing.TB) (actions []record.Action) {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	source := Value(os.ReadFile(filepath.Join(filepath.Dir(here), "..", "record", "activity.go")))(t)
	for _, match := range regexp.MustCompile(`Action = "(.+)"`).FindAllSubmatch(source, -1) {
		actions = append(actions, record.Action(match[1]))
	}
	if len(actions) < 40 {
		t.Errorf("only %d actions are declared", len(actions))
	}
	slices.Sort(actions)
	return actions
}
