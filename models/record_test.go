package models_test

import (
	"slices"
	"testing"

	"portal/models"
	"portal/models/modelstest"
)

func TestEveryActionHasConsequences(t *testing.T) {
	t.Parallel()
	if got, want := models.Recorded(), modelstest.Actions(t); !slices.Equal(got, want) {
		t.Errorf("the table has %q, want %q", got, want)
	}
}
