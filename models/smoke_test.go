package models_test

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/modelstest"
)

func TestSmoke(t *testing.T) {
	modelstest.Databases(t, func(t *testing.T, url string) {
		ctx := context.Background()
		s := modelstest.Open(t, url, models.Options{})
		a, err := s.CreateAccount(ctx, models.NewAccount{Name: "Acme", Email: "A@b.example", Password: "correct horse battery"})
		if err != nil {
			t.Fatal(err)
		}
		u, err := s.VerifyPassword(ctx, "a@B.example", "correct horse battery", "127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		ref, err := s.CreateSession(ctx, u, models.Client{Address: "127.0.0.1", UserAgent: "x"})
		if err != nil {
			t.Fatal(err)
		}
		sess, err := s.Session(ctx, ref, models.Client{Address: "127.0.0.1", UserAgent: "x"})
		if err != nil {
			t.Fatal(err)
		}
		actor := models.UserActor(sess.UserID, "127.0.0.1")
		k, secret, err := s.GenerateAPIKey(ctx, a.ID, models.NewAPIKey{Label: "prod", FormID: uuid.New()}, actor)
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Authenticate(ctx, secret)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(k.Masked(), p)
		ks, err := s.APIKeys(ctx, a.ID)
		if err != nil || len(ks) != 1 || ks[0].LastUsedAt == nil {
			t.Fatal(ks, err)
		}
		ag, err := s.CreateAgent(ctx, a.ID, models.NewAgent{Name: "Agent"}, actor)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = s.RevokeAPIKey(ctx, a.ID, k.ID, actor); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Authenticate(ctx, secret); err != models.ErrKeyRevoked {
			t.Fatal(err)
		}
		if _, err := s.RemoveAgent(ctx, a.ID, ag.ID, actor); err != nil {
			t.Fatal(err)
		}
		act, err := s.Activities(ctx, a.ID, models.ActivityPage{Limit: 10})
		if err != nil || len(act) != 5 {
			t.Fatal(act, err)
		}
		t.Log(act)
	})
}
