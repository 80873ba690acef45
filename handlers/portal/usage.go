package portal

import (
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
	"portal/models/calls"
	"portal/models/keys"
	"portal/models/value"
	"portal/templates"
)

// usagePages show how much the account's keys are used.
type usagePages struct {
	*site

	keys     *keys.Keys
	keyUsage *keys.Usage
	calls    *calls.Calls
}

const paramPeriod = "period"

// usagePeriods are the choices of the page, with their names in the URL.
var usagePeriods = []struct {
	name string
	span keys.UsageSpan
}{
	{"24h", keys.Hours(24)},
	{"7d", keys.Days(7)},
	{"30d", keys.Days(30)},
	{"90d", keys.Days(90)},
}

const defaultPeriod = "30d"

// usageView is what a page or its export shows.
type usageView struct {
	path   string // of the page
	period string
	span   keys.UsageSpan
	usages []keys.KeyUsage // of all keys, or of the one
	order  string          // of the table: the id of a column, after "-" if reversed
}

// view reads the usage of a key, or for the zero id of all keys, in the period of the address. If
// the period or the key is unknown, it returns a 404.
func (p *usagePages) view(c *gin.Context, path string, key uuid.UUID) (view usageView, err error) {
	view.path, view.period, view.order = path, c.DefaultQuery(paramPeriod, defaultPeriod), c.Query(paramSort)
	for _, period := range usagePeriods {
		if period.name == view.period {
			view.span = period.span
		}
	}
	if view.span == (keys.UsageSpan{}) {
		return view, problem.NotFound()
	}
	ctx, account := c.Request.Context(), sessionFrom(c).AccountID
	if key == uuid.Nil {
		view.usages, err = p.keyUsage.OfAccount(ctx, account, view.span)
		return view, err
	}
	usage, err := p.keyUsage.OfKey(ctx, account, view.span, key)
	view.usages = []keys.KeyUsage{usage}
	return view, err
}

// address returns the URL at path of a period, a key, which may be zero, and an order of the table,
// which may be empty.
func (usageView) address(path, period string, key uuid.UUID, order string) string {
	query := url.Values{}
	if period != defaultPeriod {
		query.Set(paramPeriod, period)
	}
	if key != uuid.Nil {
		query.Set(paramKey, key.String())
	}
	if order != "" {
		query.Set(paramSort, order)
	}
	return (&url.URL{Path: path, RawQuery: query.Encode()}).String()
}

// sorted returns the URL of the page in another order of its table.
func (v usageView) sorted(order string) string { return v.address(v.path, v.period, uuid.Nil, order) }

// chosen returns what the page chooses from, with the CSV file of a key, or of all for the zero id.
func (v usageView) chosen(key uuid.UUID) templates.UsageChoice {
	choice := templates.UsageChoice{Export: v.address(usagePath+"/export", v.period, key, "")}
	for _, period := range usagePeriods {
		choice.Periods = append(choice.Periods, templates.UsagePeriod{
			Name: period.span.String(), URL: v.address(v.path, period.name, uuid.Nil, ""), Current: period.name == v.period,
		})
	}
	return choice
}

// columnRequests sorts a table of usage if the address names no column.
const columnRequests = "requests"

var usageColumns = []tableColumn[keys.KeyUsage]{
	{"label", "Key", labelRank, false},
	{columnRequests, "Requests", func(usage keys.KeyUsage) string {
		requests, refusals := usage.Total()
		return numberRank(requests) + numberRank(refusals)
	}, true},
	{"refused", "Refused requests", func(usage keys.KeyUsage) string {
		_, refusals := usage.Total()
		return numberRank(refusals)
	}, true},
}

// show shows the chart of all keys and a table of them. A key in the address has a page of its own.
func (p *usagePages) show(c *gin.Context) error {
	if _, ofKey := c.GetQuery(paramKey); ofKey {
		return p.leadToKey(c)
	}
	view, err := p.view(c, usagePath, uuid.Nil)
	if err != nil {
		return err
	}
	page := templates.UsagePage{UsageChoice: view.chosen(uuid.Nil), Limited: len(view.usages) >= keys.MaxUsageKeys}
	page.Voice = p.hasMinutes(view)
	seconds, err := p.seconds(c, view)
	if err != nil {
		return err
	}
	columns := usageColumns
	if page.Voice {
		minutes := func(usage keys.KeyUsage) string { return numberRank(seconds[usage.ID]) }
		columns = append(slices.Clip(columns), tableColumn[keys.KeyUsage]{id: "minutes", name: "Minutes", rank: minutes, descending: true})
	}
	page.Columns = sortTable(view.usages, columns, view.order, columnRequests, view.sorted)
	all := int64(0)
	for _, usage := range view.usages {
		all += seconds[usage.ID]
		requests, refusals := usage.Total()
		page.Keys = append(page.Keys, templates.UsageRow{
			Key: usage.Key, URL: view.address(keyPath(usage.Key), view.period, uuid.Nil, ""),
			Requests: templates.Count(requests), Refused: templates.Count(refusals), Expired: usage.Expired(p.now()),
			Minutes: templates.Count(seconds[usage.ID] / 60),
		})
	}
	page.Minutes = templates.Count(all / 60)
	if len(view.usages) > 0 {
		sum := keys.SumUsage(view.usages)
		requests, refusals := sum.Total()
		page.Total, page.Refused = templates.Count(requests), templates.Count(refusals)
		page.Chart = templates.NewUsageChart(sum, view.span, p.now())
	} else {
		ended, err := p.keys.Revoked(c.Request.Context(), sessionFrom(c).AccountID, value.Page{Limit: 1})
		if err != nil {
			return err
		}
		page.Keyless, page.Export = len(ended.Items) == 0, ""
	}
	return p.reply(c, reply{fragment: page, page: present(page)})
}

// leadToKey redirects to the page of the key in the query string.
func (p *usagePages) leadToKey(c *gin.Context) error {
	id, ok := parseID(c.Query(paramKey))
	if !ok {
		return value.ErrKeyNotFound
	}
	view, err := p.view(c, usagePath, id)
	if err != nil {
		return err
	}
	return p.redirect(c, view.address(keyPath(view.usages[0].Key), view.period, uuid.Nil, view.order))
}

// hasMinutes reports whether the page has minutes of calls, which are counted by day.
func (p *usagePages) hasMinutes(view usageView) bool {
	return p.calls.Enabled() && view.span.Unit() == "day"
}

// seconds returns how long the calls of each key lasted.
func (p *usagePages) seconds(c *gin.Context, view usageView) (map[uuid.UUID]int64, error) {
	if !p.hasMinutes(view) {
		return map[uuid.UUID]int64{}, nil
	}
	return p.calls.SecondsByKey(c.Request.Context(), value.IDs(view.usages), view.span.Starts(p.now())[0])
}

// export sends the usage as CSV, with a line for each hour or day that a key was used.
func (p *usagePages) export(c *gin.Context) (err error) {
	key, err := queryID(c, paramKey)
	if err != nil {
		return err
	}
	var view usageView
	err = p.readExport(c, func() (err error) {
		view, err = p.view(c, usagePath, key)
		return err
	})
	if err != nil {
		return err
	}
	subject := "usage"
	if key != uuid.Nil {
		subject += "-" + view.usages[0].Label
	}
	starts := view.span.Starts(p.now())
	columns, voice := []string{"time", "key_id", "label", "key", "requests", "refused"}, p.hasMinutes(view)
	if voice {
		columns = append(columns, "minutes")
	}
	lines := p.startCSV(c, subject, columns)
	for _, usage := range view.usages {
		seconds := map[time.Time]int64{}
		if voice {
			p.withDeadline(c, func() { seconds, err = p.calls.SecondsByDay(c.Request.Context(), usage.ID, starts[0]) })
		}
		if err != nil {
			breakOff(c, err)
		}
		lines += usageLines(usage, starts, seconds, voice)
		if sendCSV(c, lines) != nil {
			return nil // the client disconnected
		}
		lines = ""
	}
	_ = sendCSV(c, lines) // without a key, only the first line
	return nil
}

// usageLines returns a line for each hour or day that a key was used or had calls.
func usageLines(usage keys.KeyUsage, starts []time.Time, seconds map[time.Time]int64, voice bool) (lines string) {
	masked := ""
	if !usage.IsWorkload() { // as in the export of Activity
		masked = usage.Masked()
	}
	for i, start := range starts {
		requests, refusals := usage.Requests[i], usage.Refusals[i]
		if requests+refusals+seconds[start] == 0 {
			continue
		}
		cells := []string{
			start.Format(time.RFC3339), usage.ID.String(), usage.Label, masked,
			strconv.FormatInt(requests, 10), strconv.FormatInt(refusals, 10),
		}
		if voice {
			cells = append(cells, strconv.FormatInt(seconds[start]/60, 10))
		}
		lines += csvLine(cells)
	}
	return lines
}
