package main

import (
	"errors"
	"testing"

	"portal/models"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/value"
)

func TestSecretsAreWellFormedAndUnknown(t *testing.T) {
	store := modelstest.Open(t, modelstest.SQLiteURL(t), models.Options{})
	for range 100 {
		if _, err := store.API.Authenticate(t.Context(), newSecret(), keys.Source{}); !errors.Is(err, value.ErrKeyUnknown) {
			t.Fatal(err)
		}
	}
}

func TestRatiosAreTakenRoundByRound(t *testing.T) {
	// The machine is half as fast in the second round and a third in the last.
	slow, fast := rounds{{900}, {450}, {300}}, rounds{{1000}, {500}, {333}}
	if got := slow.ratio(fast, perSecond); got != 0.9 {
		t.Errorf("ratio = %v, want 0.9", got)
	}
	if got := append(slow, [figures]float64{1}).median(perSecond); got != 375 {
		t.Errorf("median = %v, want 375", got)
	}
}
