package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"portal/handlers/api"
)

func TestAgentsOfAnAccount(t *testing.T) {
	eachOperated(t, func(t *testing.T, s *service) {
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
		message := s.operate(http.MethodPut, other+"/agents/"+agent, `{"name": "Stolen"}`).fails(http.StatusConflict, "CONFLICT")
		if want := exampleMessage(t, "Conflict", "agent"); message != want {
			t.Errorf("message %q, want %q", message, want)
		}
		s.operate(http.MethodPut, "/operator/accounts/"+uuid.NewString()+"/agents/"+uuid.NewString(), `{"name": "None"}`).
			fails(http.StatusNotFound, "ACCOUNT_NOT_FOUND")
		s.operate(http.MethodDelete, other+"/agents/"+agent, "").is(http.StatusNoContent) // it is not the other's
		list := func() string { return string(s.operate(http.MethodGet, account+"/agents", "").is(http.StatusOK).body) }
		if want := fmt.Sprintf(`{"agents":[{"id":%q,"name":"Front desk"}]}`, agent); strings.TrimSpace(list()) != want {
			t.Errorf("list %s, want %s", list(), want)
		}
		for range 2 {
			a := s.operate(http.MethodDelete, account+"/agents/"+agent, "").is(http.StatusNoContent)
			if len(a.body) > 0 {
				t.Errorf("body %s", a.body)
			}
		}
		s.operate(http.MethodDelete, account+"/agents/7", "").fails(http.StatusBadRequest, "INVALID_REQUEST")
		if got, want := s.activities(id), "account.created, agent.created, agent.renamed, agent.removed"; got != want {
			t.Errorf("activities %s, want %s", got, want)
		}
		s.operate(http.MethodPut, account+"/agents/"+agent, `{"name": "Again"}`).is(http.StatusCreated)
	})
}
