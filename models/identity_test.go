package models_test

import (
	"errors"
	"testing"

	"portal/models"
	"portal/models/modelstest"
)

// session signs the first user of the deployment in with the password and returns the session.
func (d deployment) session(t *testing.T) models.Session {
	t.Helper()
	user, err := d.VerifyPassword(t.Context(), "ada@example.com", "correct horse battery", models.Client{})
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := d.SignIn(t.Context(), user, models.WithPassword, models.Client{})
	if err != nil {
		t.Fatal(err)
	}
	session, err := d.PeekSession(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	return session
}

func TestRestoreKeepsIdentitiesDisconnected(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		d := deploy(t, url)
		session := d.session(t)
		actor := models.UserActor(session.UserID, "192.0.2.1")
		kept := models.Identity{Issuer: "https://kept.example", Subject: "ada"}
		ended := models.Identity{Issuer: "https://ended.example", Subject: "ada"}
		for _, identity := range []models.Identity{kept, ended} {
			if err := d.ConnectIdentity(t.Context(), session, identity, "Example", actor); err != nil {
				t.Fatal(err)
			}
		}
		file := d.backUp(t)
		if err := d.DisconnectIdentity(t.Context(), session, ended.Issuer, "Example", actor); err != nil {
			t.Fatal(err)
		}
		if _, err := models.Restore(t.Context(), url, file, models.KeepUnrevokedKeys); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := d.SignInWithIdentity(t.Context(), kept, false, models.Client{}); err != nil {
			t.Errorf("the connected identity: %v", err)
		}
		if _, _, _, err := d.SignInWithIdentity(t.Context(), ended, false, models.Client{}); !errors.Is(err, models.ErrIdentityNotFound) {
			t.Errorf("the disconnected identity: %v", err)
		}
	})
}

func TestConcurrentConnectionsOfOneIdentity(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		d := deploy(t, url)
		session := d.session(t)
		actor := models.UserActor(session.UserID, "192.0.2.1")
		results := make(chan error)
		for _, subject := range []string{"ada", "ada", "eve", "eve"} {
			go func() {
				identity := models.Identity{Issuer: "https://a.example", Subject: subject}
				results <- d.ConnectIdentity(t.Context(), session, identity, "Example", actor)
			}()
		}
		taken := 0
		for range 4 {
			switch err := <-results; {
			case errors.Is(err, models.ErrIdentityTaken):
				taken++
			case err != nil:
				t.Error(err)
			}
		}
		if taken != 2 {
			t.Errorf("%d of four connections were refused, want 2", taken)
		}
		activities, err := d.Activities(t.Context(), d.account.ID, models.ActivityPage{Limit: 100, Actions: []models.Action{models.ActionIdentityConnected}})
		if err != nil || len(activities) != 1 {
			t.Errorf("%d activities, %v", len(activities), err)
		}
	})
}
