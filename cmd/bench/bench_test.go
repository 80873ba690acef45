package main

import (
	"errors"
	"testing"
	"time"

	"portal/models"
	"portal/models/modelstest"
)

func TestSecretsAreWellFormedAndUnknown(t *testing.T) {
	store := modelstest.Open(t, modelstest.SQLiteURL(t), models.Options{})
	for range 100 {
		if _, err := store.API.Authenticate(t.Context(), newSecret(), models.Source{}); !errors.Is(err, models.ErrKeyUnknown) {
			t.Fatal(err)
		}
	}
}

func TestProcessStatusIsReadForAnyProgramName(t *testing.T) {
	own, reaped, parent := parseStat([]byte("42 (a) S (b) S 7 42 42 0 -1 4194560 1 2 3 4 150 50 30 20 20 0 5 0\n"))
	if own != 2*time.Second || reaped != 500*time.Millisecond || parent != 7 {
		t.Errorf("%v, %v, %d", own, reaped, parent)
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
