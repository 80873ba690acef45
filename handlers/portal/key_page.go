package portal

import (
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/models/agents"
	"portal/models/calls"
	"portal/models/keys"
	"portal/models/people"
	"portal/templates"
)

// keyPages are the list of keys, the page of one, and the form that generates one.
type keyPages struct {
	*site

	views        keyViews
	restrictions restrictionsPages
	trust        trustPages
	usage        usagePages
	keys         *keys.Keys
	keyUsage     *keys.Usage
	workload     *keys.Workload
	agents       *agents.Agents
	calls        *calls.Calls
	people       *people.People
}

// show shows the page of a key, which may be revoked, or to HTMX its row. Cancel in a row leads to
// the latter.
func (p *keyPages) show(c *gin.Context) error {
	key, err := p.views.find(c)
	if err != nil {
		return err
	}
	if key, err = p.views.durable(c, key); err != nil {
		return err
	}
	page := func() (templates.Page, error) { return p.keyPage(c, key) }
	if p.views.ended(key) {
		return p.reply(c, reply{notice: revokedNotice(key, true), fragment: templates.APIKeyRevoked{ID: key.ID}, page: page, event: keysChanged})
	}
	row, err := p.views.readRow(c, key)
	if err != nil {
		return err
	}
	row.MenuFocused = c.Query(paramFocus) == focusMenu
	row.Focused = !row.MenuFocused
	return p.reply(c, reply{fragment: row, page: page})
}

// keyPage returns what a key can do and how it is used.
func (p *keyPages) keyPage(c *gin.Context, key keys.Key) (page templates.KeyPage, err error) {
	ctx, now := c.Request.Context(), p.now()
	view, err := p.usage.view(c, keyPath(key), key.ID)
	if err != nil {
		return page, err
	}
	page = templates.KeyPage{
		Key: key, UsageChoice: view.chosen(key.ID), Support: p.support, All: view.address(usagePath, view.period, uuid.Nil, ""),
		Chart:   templates.NewUsageChart(view.usages[0], view.span, now),
		Expired: key.Expired(now), Ended: optionalMoment(key.EndedAt(now), now), Expires: templates.NewKeyExpires(key.ExpiresAt, now),
		LastUsed: optionalMoment(key.LastUsedAt, now), Created: templates.NewMoment(key.CreatedAt, now),
	}
	if page.Creator, err = p.keys.Creator(ctx, key.AccountID, key.ID); err != nil {
		return page, err
	}
	if page.Rotation, err = p.views.rotation(c, key); err != nil {
		return page, err
	}
	if err := p.addReach(c, &page); err != nil {
		return page, err
	}
	if err := p.addSources(c, &page, view); err != nil {
		return page, err
	}
	if key.IsWorkload() {
		exchanges, err := p.workload.Exchanges(ctx, key.AccountID, key.ID)
		if err != nil {
			return page, err
		}
		page.Exchanges = templates.NewExchangeRows(exchanges, now)
	}
	refusals, err := p.keys.Refusals(ctx, key.AccountID, key.ID)
	page.Refusals = templates.NewKeyRefusals(refusals, now)
	return page, err
}

// addReach adds the agents, the networks and the limits of a key.
func (p *keyPages) addReach(c *gin.Context, page *templates.KeyPage) error {
	key := page.Key
	reach, err := p.restrictions.formOf(c, key)
	if err != nil {
		return err
	}
	page.Agents = reach.Chosen()
	page.Networks = strings.Fields(reach.Networks)
	if key.IsWorkload() && key.Trust != nil {
		page.Trust = p.trust.formOf("", *key.Trust).Sentence
	}
	if !p.calls.Enabled() || key.Limits.IsZero() {
		return nil
	}
	used, err := p.calls.Used(c.Request.Context(), key.AccountID, key.ID)
	page.CallLimits = templates.UsedLimits(used, key.Limits)
	return err
}

// sourceColumns are the columns of the sources of a key.
var sourceColumns = []tableColumn[keys.KeySource]{
	{"address", "Address", func(source keys.KeySource) string { return source.Address }, false},
	{"client", "Client", func(source keys.KeySource) string { return source.Client }, false},
	{"first", "First seen", func(source keys.KeySource) string { return numberRank(source.FirstSeen.UnixNano()) }, false},
	{"last", "Last seen", func(source keys.KeySource) string { return numberRank(source.LastSeen.UnixNano()) }, true},
	{columnRequests, "Requests", func(source keys.KeySource) string { return numberRank(source.Requests) }, true},
}

// addSources adds where the requests with a key came from.
func (p *keyPages) addSources(c *gin.Context, page *templates.KeyPage, view usageView) error {
	sources, err := p.keyUsage.Sources(c.Request.Context(), page.AccountID, page.ID)
	if err != nil {
		return err
	}
	named := sources // without the rest, which has no address and stays last
	if n := len(sources); n > 0 && sources[n-1].Address == "" {
		named = sources[:n-1]
	}
	page.Columns = sortTable(named, sourceColumns, view.order, columnRequests, view.sorted)
	page.Sources = templates.NewKeySources(sources, p.now())
	return nil
}
