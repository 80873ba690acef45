package api

import (
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
	"portal/models/keys"
	"portal/models/value"
)

// gateway registers a handler for a path and for every path below it.
func gateway(r gin.IRouter, path string, h gin.HandlerFunc) {
	r.GET(path, withoutBody, h)
	r.GET(path+"/*rest", withoutBody, h)
}

// withoutBody closes the connection after the response if the request announces a body. Nothing
// reads that body, and the response does not wait for it to arrive: some gateways announce a body
// that they never send.
func withoutBody(c *gin.Context) {
	if c.Request.ContentLength != 0 {
		c.Header("Connection", "close")
	}
}

// authorizationBody is the response of /api/authorize.
type authorizationBody struct {
	AccountID uuid.UUID  `json:"accountId"`
	KeyID     uuid.UUID  `json:"keyId"`
	AgentID   *uuid.UUID `json:"agentId,omitempty"`
}

// authorize returns the account and the id of the caller's key, and the agent if the gateway
// asks for one, also in headers, which gateways can copy.
func (cs *customers) authorize(c *gin.Context, caller keys.Principal) error {
	body := authorizationBody{AccountID: caller.AccountID, KeyID: caller.KeyID}
	agentID, err := wantedAgent(c.Request)
	if err != nil {
		return err
	}
	if agentID != nil {
		err := cs.queries.Run(func() error { return cs.api.CheckAgent(c.Request.Context(), caller, *agentID) })
		if errors.Is(err, value.ErrAgentNotFound) {
			return problem.AgentNotAllowed()
		}
		if err != nil {
			return err
		}
		cs.agents.Used(caller.AccountID, *agentID, caller.KeyID)
		body.AgentID = agentID
		c.Header("X-Agent-Id", agentID.String())
	}
	c.Header("X-Account-Id", caller.AccountID.String())
	c.Header("X-Key-Id", caller.KeyID.String())
	c.PureJSON(http.StatusOK, body)
	return nil
}

// wantedAgent returns the query parameter agentId, or nil if the request has none. It returns a 403
// if the parameter is repeated or no UUID.
func wantedAgent(r *http.Request) (*uuid.UUID, error) {
	values := queryValues(r.URL.RawQuery, "agentId")
	if len(values) == 0 {
		return nil, nil //nolint:nilnil // the parameter is optional
	}
	agentID, valid := value.ParseID(values[0])
	if len(values) > 1 || !valid {
		return nil, problem.AgentNotAllowed()
	}
	return &agentID, nil
}
