package portal

import (
	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/models/agents"
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
	people       *people.People
}

// show shows the page of a key, which may be revoked. HTMX gets the row of the key instead, because
// Cancel in a row leads here. The address of Cancel has no period, so the row has its usual one.
func (p *keyPages) show(c *gin.Context) error {
	view, err := p.usage.view(c, "", idOf(c))
	if err != nil {
		return err
	}
	usage := view.usages[0]
	if usage.Key, err = p.views.durable(c, usage.Key); err != nil {
		return err
	}
	row, err := p.views.readRow(c, usage)
	if err != nil {
		return err
	}
	view.path = keyPath(row.Key)
	page := func() (templates.Page, error) { return p.keyPage(c, row, view) }
	if p.views.ended(row.Key) {
		return p.reply(c, reply{notice: revokedNotice(row.Key, true), fragment: templates.APIKeyRevoked{ID: row.ID}, page: page, event: keysChanged})
	}
	row.MenuFocused = c.Query(paramFocus) == focusMenu
	row.Focused = !row.MenuFocused
	return p.reply(c, reply{fragment: row, page: page})
}

// keyPage returns what a key can do and how it is used.
func (p *keyPages) keyPage(c *gin.Context, row templates.APIKeyRow, view usageView) (page templates.KeyPage, err error) {
	ctx, now, key := c.Request.Context(), p.now(), row.Key
	page = templates.KeyPage{
		Key: key, UsageChoice: view.chosen(key.ID), Support: p.support, All: view.address(usagePath, view.period, uuid.Nil, ""),
		Chart:   templates.NewUsageChart(view.usages[0], view.span, now),
		Expired: key.Expired(now), Ended: optionalMoment(key.EndedAt(now), now), Expires: row.Expires,
		LastUsed: row.LastUsed, Created: row.Created, Rotation: row.Rotation, CallLimits: row.CallLimits,
	}
	if page.Creator, err = p.keys.Creator(ctx, key.AccountID, key.ID); err != nil {
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
	refusals, err := p.keyUsage.Refusals(ctx, key.AccountID, key.ID)
	page.Refusals = templates.NewKeyRefusals(refusals, now)
	return page, err
}

// addReach adds the agents and the networks of a key, and who can use one without a secret.
func (p *keyPages) addReach(c *gin.Context, page *templates.KeyPage) error {
	for _, network := range page.Key.Networks {
		page.Networks = append(page.Networks, networkText(network))
	}
	if page.IsWorkload() && page.Key.Trust != nil {
		page.Trust = p.trust.formOf("", *page.Key.Trust).Sentence
	}
	if !page.Restricted() {
		return nil
	}
	reach, err := p.restrictions.formOf(c, page.Key)
	page.Agents = reach.Chosen()
	return err
}

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
