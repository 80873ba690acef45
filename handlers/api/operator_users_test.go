package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/handlers/api"
	"portal/models"
)

func TestUsersOfAnAccount(t *testing.T) {
	eachOperated(t, func(t *testing.T, s *service) {
		id, account := s.account()
		var owner api.User
		s.operate(http.MethodPost, account+"/users", `{"email": "Ada@example.com", "role": "owner"}`).is(http.StatusCreated).into(&owner)
		if owner.Email != "Ada@example.com" || owner.Role != models.RoleOwner {
			t.Errorf("owner %+v", owner)
		}
		_, other := s.account()
		message := s.operate(http.MethodPost, other+"/users", `{"email": "ADA@example.com", "role": "member"}`).fails(http.StatusConflict, "CONFLICT")
		if want := exampleMessage(t, "Conflict", "email"); message != want {
			t.Errorf("message %q, want %q", message, want)
		}
		message = s.operate(http.MethodDelete, account+"/users/"+owner.ID.String(), "").fails(http.StatusConflict, "CONFLICT")
		if want := exampleMessage(t, "Conflict", "owner"); message != want {
			t.Errorf("message %q, want %q", message, want)
		}
		member := s.user(account, "member")
		for range 2 {
			s.operate(http.MethodDelete, account+"/users/"+member, "").is(http.StatusNoContent)
		}
		s.operate(http.MethodDelete, other+"/users/"+owner.ID.String(), "").is(http.StatusNoContent) // of another account
		list := s.operate(http.MethodGet, account+"/users", "").is(http.StatusOK)
		if want := fmt.Sprintf(`{"users":[{"id":%q,"email":"Ada@example.com","role":"owner"}]}`, owner.ID); string(bytes.TrimSpace(list.body)) != want {
			t.Errorf("list %s, want %s", list.body, want)
		}
		if got, want := s.activities(id), "account.created, user.added, user.added, user.removed"; got != want {
			t.Errorf("activities %s, want %s", got, want)
		}
		s.operate(http.MethodPost, "/operator/accounts/"+uuid.NewString()+"/users", `{"email": "eve@example.com", "role": "member"}`).
			fails(http.StatusNotFound, "ACCOUNT_NOT_FOUND")
	})
}

func TestSignInLinks(t *testing.T) {
	eachOperated(t, func(t *testing.T, s *service) {
		id, account := s.account()
		user := s.user(account, "member")
		request := `{"userId": "` + user + `"}`
		var link struct {
			URL       string
			ExpiresAt time.Time
		}
		s.operate(http.MethodPost, account+"/sign-in-links", request).is(http.StatusCreated).into(&link)
		if left := link.ExpiresAt.Sub(s.clock.Now()); left < 299*time.Second || left > 5*time.Minute {
			t.Errorf("it expires in %s", left)
		}
		token, found := strings.CutPrefix(link.URL, issuer+"/sign-in-links/")
		if !found || len(token) < 40 {
			t.Errorf("URL %s", link.URL)
		}
		if got, err := s.store.SignIn.LinkUser(t.Context(), token); err != nil || got.ID.String() != user {
			t.Errorf("the link signs in %+v, %v", got, err)
		}
		_, other := s.account()
		s.operate(http.MethodPost, other+"/sign-in-links", request).fails(http.StatusNotFound, "USER_NOT_FOUND")
		s.operate(http.MethodPost, account+"/sign-in-links", `{"userId": "`+uuid.NewString()+`"}`).fails(http.StatusNotFound, "USER_NOT_FOUND")
		s.operate(http.MethodPost, "/operator/accounts/"+uuid.NewString()+"/sign-in-links", request).fails(http.StatusNotFound, "ACCOUNT_NOT_FOUND")
		s.operate(http.MethodPut, account, `{"name": "Acme", "disabled": true}`).is(http.StatusOK)
		message := s.operate(http.MethodPost, account+"/sign-in-links", request).fails(http.StatusConflict, "CONFLICT")
		if want := exampleMessage(t, "Conflict", "disabled"); message != want {
			t.Errorf("message %q, want %q", message, want)
		}
		if got, want := s.activities(id), "account.created, user.added, sign_in_link.created, account.disabled"; got != want {
			t.Errorf("activities %s, want %s", got, want)
		}
		if strings.Contains(s.log.String(), token) {
			t.Error("the log contains the link")
		}
	})
}
