package api_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/handlers/api"
)

func TestAccountsAreCreatedChangedAndListed(t *testing.T) {
	eachOperated(t, func(t *testing.T, s *service) {
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
		if got, want := s.activities(id), "account.created, account.renamed, account.disabled, account.enabled"; got != want {
			t.Errorf("activities %s, want %s", got, want)
		}
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
	eachOperated(t, func(t *testing.T, s *service) {
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
		if got := s.activities(id); got != "account.created, agent.created" {
			t.Errorf("activities %s", got)
		}
	})
}
