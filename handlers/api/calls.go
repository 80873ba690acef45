package api

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
	"portal/models/calls"
	"portal/models/keys"
	"portal/models/record"
)

type operatorCall struct {
	calls.CallElement

	AccountID uuid.UUID `json:"accountId"`
}

// readCalls returns the page of calls that the query parameters select, the oldest first.
func readCalls(s *site, service *calls.Calls, c *gin.Context, params *reportQuery, page calls.CallPage, waited time.Duration) (list []calls.Call, next string, err error) {
	if !s.callsOn {
		return nil, "", problem.NotFound()
	}
	page.OldestFirst, page.Limit = true, params.limit()
	page.From, page.Until = params.time("from"), params.time("to")
	page.KeyID, page.AgentID = params.id("keyId"), params.id("agentId")
	if after := params.value("after"); after != "" {
		place, ok := calls.ParseCallPlace(after)
		if page.After = place; !ok {
			params.refuse("after", "the value of next from an earlier page")
		}
	}
	if params.err != nil {
		return nil, "", params.err
	}
	list, err = query(s, c, waited, func(ctx context.Context) ([]calls.Call, error) { return service.List(ctx, page) })
	if len(list) > 0 {
		next = list[len(list)-1].Place().String()
	}
	return list, next, err
}

// listCalls returns a page of the calls of all accounts, or of one.
func (o *operators) listCalls(c *gin.Context) error {
	query := &reportQuery{raw: c.Request.URL.RawQuery}
	list, next, err := readCalls(o.site, o.store.Calls, c, query, calls.CallPage{AccountID: query.id("accountId")}, 0)
	if err != nil {
		return err
	}
	now := o.now()
	body := func(call calls.Call) operatorCall { return operatorCall{call.Element(now), call.AccountID} }
	return sendReport(c, "calls", bodiesOf(list, body), next)
}

// listCalls returns a page of the calls of the account of the caller.
func (cs *customers) listCalls(c *gin.Context, caller keys.Principal) error {
	query := &reportQuery{raw: c.Request.URL.RawQuery}
	list, next, err := readCalls(cs.site, cs.calls, c, query, calls.CallPage{AccountID: caller.AccountID}, caller.Waited())
	if err != nil {
		return err
	}
	now := cs.now()
	return sendReport(c, "calls", bodiesOf(list, func(call calls.Call) calls.CallElement { return call.Element(now) }), next)
}

// endCall ends a call of any account. A call that has ended before stays as it is.
func (o *operators) endCall(c *gin.Context) error {
	if !o.callsOn {
		return problem.NotFound()
	}
	id, err := pathID(c, "call")
	if err != nil {
		return err
	}
	_, err = query(o.site, c, 0, func(ctx context.Context) (calls.Call, error) {
		return o.store.Calls.End(ctx, uuid.Nil, id, record.Operator())
	})
	if err == nil {
		c.Status(http.StatusNoContent)
	}
	return err
}
