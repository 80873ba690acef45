package record_test

import (
	"slices"
	"testing"

	"portal/models/modelstest"
	"portal/models/record"
)

func TestEveryActionHasConsequences(t *testing.T) {
	t.Parallel()
	if got, want := record.Recorded(), modelstest.Actions(t); !slices.Equal(got, want) {
		t.Errorf("the table has %q, want %q", got, want)
	}
}
