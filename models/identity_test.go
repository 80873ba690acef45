package models_test

import (
	"errors"
	"testing"

	"portal/models"
	"portal/models/modelstest"
)

func TestConcurrentConnectionsOfOneIdentity(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.customer(t)
		session := modelstest.Value(f.Sessions.Find(t.Context(), f.session(t, c), browser))(t)
		subjects := []string{"ada", "ada", "eve", "eve"}
		_, errs := atOnce(len(subjects), func(i int) error {
			identity := models.Identity{Issuer: "https://a.example", Subject: subjects[i]}
			return f.Credentials.ConnectIdentity(t.Context(), session, identity, "Example", c.actor)
		})
		taken := 0
		for _, err := range errs {
			if !errors.Is(err, models.ErrIdentityTaken) {
				t.Error(err)
			}
			taken++
		}
		if taken != 2 {
			t.Errorf("%d of four connections were refused, want 2", taken)
		}
		activities, err := f.Activity.List(t.Context(), c.ID, models.ActivityPage{Limit: 100, Actions: []models.Action{models.ActionIdentityConnected}})
		if err != nil || len(activities) != 1 {
			t.Errorf("%d activities, %v", len(activities), err)
		}
	})
}
