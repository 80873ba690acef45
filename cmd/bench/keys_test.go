package main

import (
	"errors"
	"testing"

	"portal/models"
	"portal/models/modelstest"
)

func TestNewKeysAreWellFormedAndUnknown(t *testing.T) {
	store := modelstest.Open(t, modelstest.SQLiteURL(t), models.Options{})
	for range 100 {
		if _, err := store.API.Authenticate(t.Context(), newKey()); !errors.Is(err, models.ErrKeyUnknown) {
			t.Fatal(err)
		}
	}
}
