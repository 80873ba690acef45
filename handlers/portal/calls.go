package portal

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
	"portal/models/agents"
	"portal/models/calls"
	"portal/models/keys"
	"portal/models/people"
	"portal/models/value"
	"portal/templates"
)

// callPages show the account's calls and end them.
type callPages struct {
	*site

	calls    *calls.Calls
	keys     *keys.Keys
	agents   *agents.Agents
	accounts *people.Accounts
}

const (
	callsPath = "/calls"
	// callsRefreshPath is the page as it loads itself again, which does not count as a use of
	// the session.
	callsRefreshPath = callsPath + "/refresh"
	// callsPerPage is the number of calls on a page.
	callsPerPage = 50
	paramAgent   = "agent"
)

// callView is what the query string selects.
type callView struct {
	calls.CallPage
	query url.Values
}

// view reads the query string. An unknown value is a 404; an empty one selects everything.
func (p *callPages) view(c *gin.Context) (callView, error) {
	view := callView{calls.CallPage{AccountID: sessionFrom(c).AccountID, Limit: callsPerPage}, url.Values{}}
	for name, id := range map[string]*uuid.UUID{paramAgent: &view.AgentID, paramKey: &view.KeyID} {
		text := c.Query(name)
		if text == "" {
			continue
		}
		parsed, ok := parseID(text)
		if !ok {
			return view, problem.NotFound()
		}
		*id = parsed
		view.query.Set(name, parsed.String())
	}
	if text := c.Query(paramBefore); text != "" {
		place, ok := calls.ParseCallPlace(text)
		if !ok {
			return view, problem.NotFound()
		}
		view.After = place
	}
	return view, nil
}

// address returns the URL of the view at path, from a place on.
func (v callView) address(path string, before calls.CallPlace) string {
	query := maps.Clone(v.query)
	if before != (calls.CallPlace{}) {
		query.Set(paramBefore, before.String())
	}
	return (&url.URL{Path: path, RawQuery: query.Encode()}).String()
}

func (p *callPages) list(c *gin.Context) error {
	page, err := p.page(c, uuid.Nil)
	if err != nil {
		return err
	}
	return p.reply(c, reply{fragment: page, page: present(page), address: page.Newest})
}

// refresh shows the rows of a page again.
func (p *callPages) refresh(c *gin.Context) error {
	page, err := p.rows(c, uuid.Nil)
	if err != nil {
		return err
	}
	return p.reply(c, reply{fragment: templates.CallsRefreshed{CallsPage: page}, page: func() (templates.Page, error) {
		err := p.addChoices(c, &page)
		return page, err
	}})
}

// show shows the calls. Cancel leads to it.
func (p *callPages) show(c *gin.Context) error {
	if _, err := p.calls.Find(c.Request.Context(), sessionFrom(c).AccountID, idOf(c)); err != nil {
		return err
	}
	page, err := p.page(c, uuid.Nil)
	if err != nil {
		return err
	}
	for i := range page.Calls {
		page.Calls[i].Focused = page.Calls[i].ID == idOf(c)
	}
	return p.reply(c, reply{fragment: page, location: fmt.Sprintf("%s#end-%s", callsPath, idOf(c))})
}

// page returns the page that the query string selects, as rows does.
func (p *callPages) page(c *gin.Context, confirming uuid.UUID) (templates.CallsPage, error) {
	page, err := p.rows(c, confirming)
	if err != nil {
		return page, err
	}
	err = p.addChoices(c, &page)
	return page, err
}

// addChoices adds the agents and the keys to choose from.
func (p *callPages) addChoices(c *gin.Context, page *templates.CallsPage) error {
	ctx, account := c.Request.Context(), sessionFrom(c).AccountID
	agents, err := p.agents.List(ctx, account, value.Page{Limit: value.MaxAgents})
	if err != nil {
		return err
	}
	sortAgents(agents.Items)
	page.Agents = agents.Items
	page.Keys, page.Revoked, err = p.keys.Choices(ctx, account, page.Key, revokedPerPage)
	return err
}

// rows returns the page without the choices of its filter. If confirming is not zero, the call with
// this id asks whether to end it, and the page does not load itself again.
func (p *callPages) rows(c *gin.Context, confirming uuid.UUID) (page templates.CallsPage, err error) {
	view, err := p.view(c)
	if err != nil {
		return page, err
	}
	ctx, account := c.Request.Context(), sessionFrom(c).AccountID
	list, err := p.calls.List(ctx, view.CallPage)
	if err != nil {
		return page, err
	}
	page = templates.CallsPage{
		Agent: view.AgentID, Key: view.KeyID, Paged: view.After != calls.CallPlace{},
		Newest: view.address(callsPath, calls.CallPlace{}), Export: view.address(callsPath+"/export", calls.CallPlace{}),
	}
	if len(list) == callsPerPage {
		page.Older = view.address(callsPath, list[len(list)-1].Place())
	}
	now, asked := p.now(), false
	row := func(call calls.Call) templates.CallRow {
		asked = asked || call.ID == confirming
		return templates.CallRow{
			Call: call, Started: templates.NewMoment(call.StartedAt, now), Ended: optionalMoment(call.EndedAt, now),
			Seconds: call.Seconds(now), Confirming: call.ID == confirming && call.Open(),
		}
	}
	for i := range list {
		if list[i].Open() && confirming == uuid.Nil {
			page.Refresh = view.address(callsRefreshPath, view.After)
		}
		page.Calls = append(page.Calls, row(list[i]))
	}
	if confirming != uuid.Nil && !asked { // it is on another page
		call, err := p.calls.Find(ctx, account, confirming)
		if err != nil {
			return page, err
		}
		page.Calls = slices.Insert(page.Calls, 0, row(call))
	}
	owner, err := p.accounts.Find(ctx, account)
	if err != nil {
		return page, err
	}
	page.Limits = owner.Limits
	page.Used, err = p.calls.Used(ctx, account, uuid.Nil)
	return page, err
}

func (p *callPages) newEnd(c *gin.Context) error {
	page, err := p.page(c, idOf(c))
	if err != nil {
		return err
	}
	return p.reply(c, reply{fragment: page, page: present(page)})
}

func (p *callPages) createEnd(c *gin.Context) error {
	if _, err := p.calls.End(c.Request.Context(), sessionFrom(c).AccountID, idOf(c), actorOf(c)); err != nil {
		return err
	}
	page, err := p.page(c, uuid.Nil)
	if err != nil {
		return err
	}
	return p.reply(c, reply{notice: "The call ends.", fragment: page, location: callsPath})
}

// callColumns are the names of the API's fields.
var callColumns = []string{"id", "agentId", "keyId", "userId", "startedAt", "endedAt", "seconds", "endReason", "exact", "final"}

// export sends the account's calls as CSV, newest first.
func (p *callPages) export(c *gin.Context) error {
	view, err := p.view(c)
	if err != nil {
		return err
	}
	view.Limit, view.After = exportBatch, calls.CallPlace{}
	cells := func(call calls.Call) []string { return callCells(call.Element(p.now())) }
	return exportBatches(p.site, c, "calls", callColumns, cells, func(ctx context.Context) ([]calls.Call, error) {
		list, err := p.calls.List(ctx, view.CallPage)
		if n := len(list); n > 0 {
			view.After = list[n-1].Place()
		}
		return list, err
	})
}

func callCells(call calls.CallElement) []string {
	user, ended, reason := "", "", ""
	if call.UserID != nil {
		user = *call.UserID
	}
	if call.EndedAt != nil {
		ended, reason = call.EndedAt.Format(time.RFC3339Nano), string(*call.EndReason)
	}
	return []string{
		call.ID.String(), call.AgentID.String(), call.KeyID.String(), user, call.StartedAt.Format(time.RFC3339Nano), ended,
		strconv.FormatInt(call.Seconds, 10), reason, strconv.FormatBool(call.Exact), strconv.FormatBool(call.Final),
	}
}
