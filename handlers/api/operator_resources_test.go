package api_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/handlers/api"
	"portal/models/erasure"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
)

func TestAccountsAreCreatedChangedAndListed(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, _ customer) {
		id := uuid.New()
		path := "/operator/accounts/" + strings.ToUpper(id.String())
		var created, same, got api.Account
		s.operate(http.MethodPut, path, `{"name": " Acme "}`).is(http.StatusCreated).into(&created)
		if created != (api.Account{ID: id, Name: "Acme", CreatedAt: created.CreatedAt}) || created.CreatedAt.Sub(s.clock.Now()).Abs() > time.Millisecond {
			t.Errorf("created %+v", created)
		}
		s.clock.Advance(time.Minute)
		for _, repeat := range []string{`{"name": "Acme"}`, `{"name": "Acme", "disabled": false, "more": 1}`} {
			s.operate(http.MethodPut, path, repeat).is(http.StatusOK).into(&same)
			if same != created {
				t.Errorf("repeated: %+v, want %+v", same, created)
			}
		}
		s.operate(http.MethodPut, path, `{"name": "Acme Ltd", "disabled": true}`).is(http.StatusOK).into(&got)
		if !got.Disabled || got.Name != "Acme Ltd" {
			t.Errorf("changed: %+v", got)
		}
		s.operate(http.MethodPut, path, `{"name": "Acme Ltd"}`).is(http.StatusOK).into(&got)
		if !got.Disabled {
			t.Error("a change of the name enabled the account")
		}
		s.operate(http.MethodPut, path, `{"name": "Acme Ltd", "disabled": false}`).is(http.StatusOK)
		s.recorded(id, "account.created, account.renamed, account.disabled, account.enabled")
		s.operate(http.MethodGet, path, "").is(http.StatusOK).into(&got)
		if got.ID != id || got.Disabled || got.Name != "Acme Ltd" {
			t.Errorf("got %+v", got)
		}
		other := "/operator/accounts/" + uuid.NewString()
		s.operate(http.MethodPut, other, `{"name": "New", "disabled": true}`).is(http.StatusCreated).into(&got)
		if !got.Disabled {
			t.Error("the new account is enabled")
		}
		for _, missing := range []string{uuid.NewString(), "x", uuid.Nil.String()} {
			for _, rest := range []string{"", "/agents", "/users", "/keys"} {
				s.operate(http.MethodGet, "/operator/accounts/"+missing+rest, "").fails(http.StatusNotFound, "ACCOUNT_NOT_FOUND")
			}
		}
	})
}

func TestConcurrentPutsCreateOnce(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, _ customer) {
		id := uuid.New()
		account := "/operator/accounts/" + id.String()
		agent := account + "/agents/" + uuid.NewString()
		for _, path := range []string{account, agent} {
			const clients = 12
			statuses := make([]int, clients)
			var running sync.WaitGroup
			for i := range clients {
				running.Go(func() { statuses[i] = s.operate(http.MethodPut, path, `{"name": "Acme"}`).status })
			}
			running.Wait()
			counts := map[int]int{}
			for _, status := range statuses {
				counts[status]++
			}
			if counts[http.StatusCreated] != 1 || counts[http.StatusOK] != clients-1 {
				t.Errorf("%s: statuses %v", path, counts)
			}
		}
		s.recorded(id, "account.created, agent.created")
	})
}

func TestUsersOfAnAccount(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, _ customer) {
		id, account := s.account()
		var owner api.User
		s.operate(http.MethodPost, account+"/users", `{"email": "Ada@example.com", "role": "owner"}`).is(http.StatusCreated).into(&owner)
		if owner.Email != "Ada@example.com" || owner.Role != people.RoleOwner {
			t.Errorf("owner %+v", owner)
		}
		_, other := s.account()
		s.operate(http.MethodPost, other+"/users", `{"email": "ADA@example.com", "role": "member"}`).
			fails(http.StatusConflict, "CONFLICT").says("Conflict", "email")
		s.operate(http.MethodDelete, account+"/users/"+owner.ID.String(), "").fails(http.StatusConflict, "CONFLICT").says("Conflict", "owner")
		member := s.user(account, "member")
		for range 2 {
			s.operate(http.MethodDelete, account+"/users/"+member, "").is(http.StatusNoContent)
		}
		// The user is of another account.
		s.operate(http.MethodDelete, other+"/users/"+owner.ID.String(), "").is(http.StatusNoContent)
		s.operate(http.MethodGet, account+"/users", "").is(http.StatusOK).
			isExactly(`{"users":[{"id":"` + owner.ID.String() + `","email":"Ada@example.com","role":"owner","disabled":false,"lastSignInAt":null,"twoStep":null}]}`)
		s.recorded(id, "account.created, user.added, user.added, user.removed")
		s.operate(http.MethodPost, "/operator/accounts/"+uuid.NewString()+"/users", `{"email": "eve@example.com", "role": "member"}`).
			fails(http.StatusNotFound, "ACCOUNT_NOT_FOUND")
	})
}

func TestAccountsAndUsersAreErased(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, _ customer) {
		id, account := s.account()
		s.user(account, "owner")
		member := account + "/users/" + s.user(account, "member")
		s.operate(http.MethodDelete, account+"/users/"+s.user(account, "owner")+"?erase=false", "").fails(http.StatusBadRequest, "INVALID_REQUEST")
		s.operate(http.MethodDelete, member, "").is(http.StatusNoContent)
		for range 2 {
			s.operate(http.MethodDelete, member+"?erase=true", "").is(http.StatusNoContent)
		}
		for {
			activities := modelstest.Value(s.store.Activity.List(t.Context(), id, record.ActivityPage{Limit: 1}))(t)
			if activities[0].Action == record.ActionUserRemoved && activities[0].Label == erasure.ErasedName {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		s.operate(http.MethodDelete, account, "").fails(http.StatusConflict, "CONFLICT").says("Conflict", "enabled")
		s.operate(http.MethodPut, account, `{"name": "Acme", "disabled": true}`).is(http.StatusOK)
		for range 2 {
			s.operate(http.MethodDelete, account, "").is(http.StatusNoContent)
			s.operate(http.MethodGet, account, "").fails(http.StatusNotFound, "ACCOUNT_NOT_FOUND")
		}
		s.operate(http.MethodDelete, "/operator/accounts/x", "").fails(http.StatusBadRequest, "INVALID_REQUEST")
	})
}

func TestTwoStepVerificationOfAUser(t *testing.T) {
	for want, user := range map[string]people.User{"": {}, "app": {HasApp: true}, "passkey": {HasPasskey: true}, "both": {HasApp: true, HasPasskey: true}} {
		if got := api.NewUser(user).TwoStep; (got == nil) != (want == "") || got != nil && *got != want {
			t.Errorf("want %q, got %v", want, got)
		}
	}
}

func TestUsersAreChanged(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, _ customer) {
		id, account := s.account()
		owner, member := account+"/users/"+s.user(account, "owner"), account+"/users/"+s.user(account, "member")
		var user api.User
		for _, body := range []string{`{}`, `{"role": "member", "disabled": false}`} {
			s.operate(http.MethodPatch, member, body).is(http.StatusOK).into(&user)
		}
		if user.Role != people.RoleMember || user.Disabled || user.LastSignInAt != nil || user.TwoStep != nil {
			t.Errorf("unchanged: %+v", user)
		}
		for _, body := range []string{`{"role": "member"}`, `{"role": "member", "disabled": true}`, `{"disabled": true}`} {
			s.operate(http.MethodPatch, owner, body).fails(http.StatusConflict, "CONFLICT").says("Conflict", "owner")
		}
		s.operate(http.MethodPatch, member, `{"role": "owner", "disabled": true}`).is(http.StatusOK).into(&user)
		if user.Role != people.RoleOwner || !user.Disabled {
			t.Errorf("changed: %+v", user)
		}
		// The other owner is disabled.
		s.operate(http.MethodPatch, owner, `{"disabled": true}`).fails(http.StatusConflict, "CONFLICT")
		s.operate(http.MethodPatch, member, `{"disabled": false}`).is(http.StatusOK)
		s.operate(http.MethodPatch, owner, `{"role": "member", "disabled": true}`).is(http.StatusOK)
		for _, body := range []string{`{"role": "admin"}`, `{"role": null}`, `{"disabled": "yes"}`, `[]`} {
			s.operate(http.MethodPatch, member, body).fails(http.StatusBadRequest, "INVALID_REQUEST")
		}
		s.operate(http.MethodPost, member+"/second-factor-reset", "").is(http.StatusNoContent)
		s.recorded(id, "account.created, user.added, user.added, user.made_owner, user.disabled, user.enabled, user.made_member, user.disabled, second_factor.reset")
		_, other := s.account()
		foreign := strings.Replace(member, account, other, 1)
		s.operate(http.MethodPatch, foreign, `{}`).fails(http.StatusNotFound, "USER_NOT_FOUND")
		s.operate(http.MethodPost, foreign+"/second-factor-reset", "").fails(http.StatusNotFound, "USER_NOT_FOUND")
		s.operate(http.MethodPatch, "/operator/accounts/"+uuid.NewString()+"/users/"+uuid.NewString(), `{}`).fails(http.StatusNotFound, "ACCOUNT_NOT_FOUND")
	})
}

func TestSignInLinks(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, _ customer) {
		id, account := s.account()
		user := s.user(account, "member")
		request := `{"userId": "` + user + `"}`
		var link struct {
			URL       string
			ExpiresAt time.Time
			UserID    string
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
		if link.UserID != user {
			t.Errorf("the link is of the user %s", link.UserID)
		}
		_, other := s.account()
		s.operate(http.MethodPost, other+"/sign-in-links", request).fails(http.StatusNotFound, "USER_NOT_FOUND")
		s.operate(http.MethodPost, account+"/sign-in-links", `{"userId": "`+uuid.NewString()+`"}`).fails(http.StatusNotFound, "USER_NOT_FOUND")
		s.operate(http.MethodPost, "/operator/accounts/"+uuid.NewString()+"/sign-in-links", request).fails(http.StatusNotFound, "ACCOUNT_NOT_FOUND")
		s.operate(http.MethodPut, account, `{"name": "Acme", "disabled": true}`).is(http.StatusOK)
		s.operate(http.MethodPost, account+"/sign-in-links", request).fails(http.StatusConflict, "CONFLICT").says("Conflict", "disabled")
		s.recorded(id, "account.created, user.added, sign_in_link.created, account.disabled")
		if strings.Contains(s.log.String(), token) {
			t.Error("the log contains the link")
		}
	})
}

func TestSignInLinksByEmailAndPage(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, _ customer) {
		id, account := s.account()
		_, other := s.account()
		links, email := account+"/sign-in-links", uuid.NewString()+"@example.com"
		var first, second, third struct{ URL, UserID string }
		s.operate(http.MethodPost, links, `{"email": "`+email+`", "role": null, "userId": null, "page": null}`).is(http.StatusCreated).into(&first)
		s.operate(http.MethodPost, links, `{"email": "`+email+`", "role": "owner", "page": "agents"}`).is(http.StatusCreated).into(&second)
		s.operate(http.MethodPost, links, `{"userId": "`+first.UserID+`", "page": "activity"}`).is(http.StatusCreated).into(&third)
		if second.UserID != first.UserID || third.UserID != first.UserID {
			t.Errorf("%+v, %+v, %+v", first, second, third)
		}
		for link, page := range map[string]string{first.URL: "", second.URL: "page=agents", third.URL: "page=activity"} {
			if _, query, _ := strings.Cut(link, "?"); query != page {
				t.Errorf("%s does not lead to %q", link, page)
			}
		}
		var list struct {
			Users []struct{ Email, Role string }
		}
		s.operate(http.MethodGet, account+"/users", "").is(http.StatusOK).into(&list)
		if len(list.Users) != 1 || list.Users[0].Email != email || list.Users[0].Role != "member" {
			t.Errorf("users %+v", list.Users)
		}
		s.recorded(id, "account.created, user.added, sign_in_link.created, sign_in_link.created, sign_in_link.created")

		s.operate(http.MethodPost, other+"/sign-in-links", `{"email": "`+email+`"}`).fails(http.StatusConflict, "CONFLICT")
		for _, body := range []string{
			`{"email": "` + email + `", "userId": "` + first.UserID + `"}`, `{"userId": "` + first.UserID + `", "role": "member"}`,
			`{"email": "ada"}`, `{"email": 7}`, `{"email": "ada@example.com", "role": "admin"}`, `{"email": null}`,
			`{"email": "ada@example.com", "page": "settings"}`, `{"email": "ada@example.com", "page": "//example.com"}`,
			`{"email": "ada@example.com", "page": "calls"}`, // without a LiveKit server
		} {
			s.operate(http.MethodPost, links, body).fails(http.StatusBadRequest, "INVALID_REQUEST")
		}
		if strings.Contains(s.log.String(), email) {
			t.Error("the log contains the email")
		}
	})
}

func TestAgentsOfAnAccount(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, _ customer) {
		id, account := s.account()
		_, other := s.account()
		agent := uuid.NewString()
		s.operate(http.MethodPut, account+"/agents/"+agent, `{"name": "Reception"}`).is(http.StatusCreated)
		s.operate(http.MethodPut, account+"/agents/"+agent, `{"name": "Reception"}`).is(http.StatusOK)
		var got api.Agent
		s.operate(http.MethodPut, account+"/agents/"+agent, `{"name": "Front desk"}`).is(http.StatusOK).into(&got)
		if got.ID.String() != agent || got.Name != "Front desk" {
			t.Errorf("got %+v", got)
		}
		s.operate(http.MethodPut, other+"/agents/"+agent, `{"name": "Stolen"}`).fails(http.StatusConflict, "CONFLICT").says("Conflict", "agent")
		s.operate(http.MethodPut, "/operator/accounts/"+uuid.NewString()+"/agents/"+uuid.NewString(), `{"name": "None"}`).
			fails(http.StatusNotFound, "ACCOUNT_NOT_FOUND")
		// The agent is of another account.
		s.operate(http.MethodDelete, other+"/agents/"+agent, "").is(http.StatusNoContent)
		s.operate(http.MethodGet, account+"/agents", "").is(http.StatusOK).isExactly(`{"agents":[{"id":"` + agent + `","name":"Front desk","paused":false}]}`)
		for range 2 {
			s.operate(http.MethodDelete, account+"/agents/"+agent, "").is(http.StatusNoContent).isExactly("")
		}
		s.operate(http.MethodDelete, account+"/agents/7", "").fails(http.StatusBadRequest, "INVALID_REQUEST")
		s.recorded(id, "account.created, agent.created, agent.renamed, agent.removed")
		s.operate(http.MethodPut, account+"/agents/"+agent, `{"name": "Again"}`).is(http.StatusCreated)
	})
}

func TestKeysAreListedAndRevoked(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, c customer) {
		kept, keptSecret := s.generateKey(c.accountID)
		s.get("/api/agents", bearer(c.secret)).is(http.StatusOK)
		account := "/operator/accounts/" + c.accountID.String()
		var first, again struct {
			KeyID, AccountID uuid.UUID
			RevokedAt        time.Time
		}
		s.operate(http.MethodPost, "/operator/keys/revocations", `{"key": "`+c.secret+`", "reason": "On a slide"}`).is(http.StatusOK).into(&first)
		if key := modelstest.Value(s.store.Keys.Find(t.Context(), c.accountID, first.KeyID))(t); key.RevocationReason != "On a slide" {
			t.Errorf("the reason is %q", key.RevocationReason)
		}
		for _, reason := range []string{`7`, `"` + strings.Repeat("x", 501) + `"`} {
			s.operate(http.MethodPost, "/operator/keys/revocations", `{"keyId": "`+kept.ID.String()+`", "reason": `+reason+`}`).
				fails(http.StatusBadRequest, "INVALID_REQUEST")
		}
		if first.KeyID != c.key.ID || first.AccountID != c.accountID || first.RevokedAt.Sub(s.clock.Now()).Abs() > time.Millisecond {
			t.Errorf("revoked %+v", first)
		}
		s.get("/api/agents", bearer(c.secret)).fails(http.StatusUnauthorized, "UNAUTHORIZED")
		s.clock.Advance(time.Minute)
		for _, body := range []string{`{"key": "` + c.secret + `"}`, `{"keyId": "` + c.key.ID.String() + `"}`} {
			s.operate(http.MethodPost, "/operator/keys/revocations", body).is(http.StatusOK).into(&again)
			if again != first {
				t.Errorf("again: %+v, want %+v", again, first)
			}
		}
		var list struct{ Keys []map[string]any }
		s.operate(http.MethodGet, account+"/keys", "").is(http.StatusOK).into(&list)
		if len(list.Keys) != 2 {
			t.Fatalf("keys %v", list.Keys)
		}
		revoked, active := list.Keys[0], list.Keys[1]
		modelstest.Facts(t, list.Keys, map[string]bool{
			"fourteen fields":        len(active) == 14,
			"id":                     active["id"] == kept.ID.String(),
			"label":                  active["label"] == "backend",
			"masked key":             active["maskedKey"] == kept.Masked(),
			"the active is unused":   active["lastUsedAt"] == nil,
			"the active is active":   active["revokedAt"] == nil,
			"the revoked is revoked": revoked["revokedAt"] != nil,
			"the revoked was in use": revoked["lastUsedAt"] != nil,
		})
		s.get("/api/agents", bearer(keptSecret)).is(http.StatusOK)
		s.operate(http.MethodPost, "/operator/keys/revocations", `{"keyId": "`+uuid.NewString()+`"}`).fails(http.StatusNotFound, "KEY_NOT_FOUND")
		s.operate(http.MethodPost, "/operator/keys/revocations", `{"key": "`+unknownKey+`"}`).
			fails(http.StatusNotFound, "KEY_NOT_FOUND")
		s.recorded(c.accountID, "agent.created, api_key.generated, api_key.generated, api_key.revoked")
		if strings.Contains(s.log.String(), c.secret) {
			t.Error("the log contains the key")
		}
	})
}
