package portal

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
	"portal/models"
	"portal/templates"
)

// usagePages show how much the account's keys are used.
type usagePages struct {
	*site

	keys *models.Keys
}

const (
	usagePath   = "/usage"
	paramPeriod = "period"
)

// usagePeriods are the choices of the page, with their names in the URL.
var usagePeriods = []struct {
	name string
	span models.UsageSpan
}{
	{"24h", models.Hours(24)},
	{"7d", models.Days(7)},
	{"30d", models.Days(30)},
	{"90d", models.Days(90)},
}

const defaultPeriod = "30d"

// usageView is what the page and its export show.
type usageView struct {
	period string
	span   models.UsageSpan
	key    uuid.UUID // zero: all keys
	usages []models.KeyUsage
}

// view reads the usage that the address selects. If the period or the key is unknown, it returns a
// 404.
func (p *usagePages) view(c *gin.Context) (view usageView, err error) {
	view.period = c.DefaultQuery(paramPeriod, defaultPeriod)
	for _, period := range usagePeriods {
		if period.name == view.period {
			view.span = period.span
		}
	}
	if view.span == (models.UsageSpan{}) {
		return view, problem.NotFound()
	}
	if view.key, err = queryID(c, paramKey); err != nil {
		return view, err
	}
	ctx, account := c.Request.Context(), sessionFrom(c).AccountID
	if view.usages, err = p.keys.AccountUsage(ctx, account, view.span); err != nil || view.key == uuid.Nil || view.chosen() >= 0 {
		return view, err
	}
	// The key was not used in the period.
	found, err := p.keys.Usage(ctx, account, view.span, view.key)
	if err != nil {
		return view, err
	}
	usage, ok := found[view.key]
	if !ok {
		return view, problem.NotFound()
	}
	view.usages = append(view.usages, usage)
	return view, nil
}

// chosen returns the index of the key of the view, or -1.
func (v usageView) chosen() int {
	return slices.IndexFunc(v.usages, func(usage models.KeyUsage) bool { return usage.ID == v.key })
}

// address returns the URL at path of a period and a key, which may be zero.
func (usageView) address(path, period string, key uuid.UUID) string {
	query := url.Values{paramPeriod: {period}}
	if key != uuid.Nil {
		query.Set(paramKey, key.String())
	}
	return (&url.URL{Path: path, RawQuery: query.Encode()}).String()
}

func (p *usagePages) chartedKey(c *gin.Context, key models.Key) (*templates.ChartedKey, error) {
	creator, err := p.keys.Creator(c.Request.Context(), key.AccountID, key.ID)
	now := p.Now()
	return &templates.ChartedKey{
		Key: key, LastUsed: optionalMoment(key.LastUsedAt, now), Created: templates.NewMoment(key.CreatedAt, now), Creator: creator,
	}, err
}

// show shows the chart of one key or of all, and a table of all keys.
func (p *usagePages) show(c *gin.Context) error {
	view, err := p.view(c)
	if err != nil {
		return err
	}
	slices.SortStableFunc(view.usages, mostUsedFirst)
	page := templates.UsagePage{
		All: view.address(usagePath, view.period, uuid.Nil), Export: view.address(usagePath+"/export", view.period, view.key),
		Limited: len(view.usages) >= models.MaxUsageKeys,
	}
	for _, period := range usagePeriods {
		page.Periods = append(page.Periods, templates.UsagePeriod{
			Name: period.span.String(), URL: view.address(usagePath, period.name, view.key), Current: period.name == view.period,
		})
	}
	for _, usage := range view.usages {
		requests, refusals := usage.Total()
		page.Keys = append(page.Keys, templates.UsageRow{
			Key: usage.Key, URL: view.address(usagePath, view.period, usage.ID),
			Requests: templates.Count(requests), Refused: templates.Count(refusals), Charted: usage.ID == view.key, Expired: usage.Expired(p.Now()),
		})
	}
	if len(view.usages) > 0 {
		charted := models.SumUsage(view.usages)
		requests, refusals := charted.Total()
		page.Total, page.Refused = templates.Count(requests), templates.Count(refusals)
		if view.key != uuid.Nil {
			charted = view.usages[view.chosen()]
			if page.Key, err = p.chartedKey(c, charted.Key); err != nil {
				return err
			}
			sources, err := p.keys.Sources(c.Request.Context(), charted.AccountID, charted.ID)
			if err != nil {
				return err
			}
			page.Sources = templates.NewKeySources(sources, p.Now())
		}
		page.Chart = templates.NewUsageChart(charted, view.span, p.Now())
	} else {
		ended, err := p.keys.Revoked(c.Request.Context(), sessionFrom(c).AccountID, models.Page{Limit: 1})
		if err != nil {
			return err
		}
		page.Keyless = len(ended.Items) == 0
	}
	return p.reply(c, reply{fragment: page, page: present(page)})
}

func mostUsedFirst(a, b models.KeyUsage) int {
	requestsA, refusalsA := a.Total()
	requestsB, refusalsB := b.Total()
	return cmp.Or(cmp.Compare(requestsB, requestsA), cmp.Compare(refusalsB, refusalsA))
}

// export sends the usage as CSV, with a line for each hour or day that a key was used.
func (p *usagePages) export(c *gin.Context) (err error) {
	var view usageView
	p.withDeadline(c, func() { view, err = p.view(c) })
	if err != nil {
		return err
	}
	p.startCSV(c, "usage")
	starts := view.span.Starts(p.Now())
	lines := csvLine([]string{"time", "key_id", "label", "key", "requests", "refused"})
	for _, usage := range view.usages {
		if view.key != uuid.Nil && usage.ID != view.key {
			continue
		}
		for i, start := range starts {
			if requests, refusals := usage.Requests[i], usage.Refusals[i]; requests+refusals > 0 {
				lines += csvLine([]string{
					start.Format(time.RFC3339), usage.ID.String(), usage.Label, usage.Masked(),
					strconv.FormatInt(requests, 10), strconv.FormatInt(refusals, 10),
				})
			}
		}
		if sendCSV(c, lines) != nil {
			return nil // the client disconnected
		}
		lines = ""
	}
	_ = sendCSV(c, lines) // without a key, only the first line
	return nil
}
