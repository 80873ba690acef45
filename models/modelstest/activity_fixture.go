package modelstest

import (
	"testing"

	"portal/models/record"
)

// Activities returns the account's activity log, the newest first.
func (f *Fixture) Activities(t *testing.T, c Customer) []record.Activity {
	t.Helper()
	return f.Recorded(t, c)
}

// Recorded returns the account's activities with these actions, or all, the newest first.
func (f *Fixture) Recorded(t *testing.T, c Customer, actions ...record.Action) []record.Activity {
	t.Helper()
	activities := Value(f.Activity.List(t.Context(), c.ID, record.ActivityPage{Limit: 1000, Actions: actions}))(t)
	return activities
}
