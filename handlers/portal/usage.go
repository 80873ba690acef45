package portal

import (
	"net/http"
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

	keys  *models.Keys
	calls *models.Calls
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
	key    uuid.UUID         // zero: all keys
	usages []models.KeyUsage // of all keys, or of the one
	order  string            // of the table: the id of a column, after "-" if reversed
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
	view.order = c.Query(paramSort)
	ctx, account := c.Request.Context(), sessionFrom(c).AccountID
	if view.key == uuid.Nil {
		view.usages, err = p.keys.AccountUsage(ctx, account, view.span)
		return view, err
	}
	found, err := p.keys.Usage(ctx, account, view.span, view.key)
	if err != nil {
		return view, err
	}
	usage, ok := found[view.key]
	if !ok {
		return view, problem.NotFound()
	}
	view.usages = []models.KeyUsage{usage}
	return view, nil
}

// address returns the URL at path of a period, a key, which may be zero, and an order of the table,
// which may be empty.
func (usageView) address(path, period string, key uuid.UUID, order string) string {
	query := url.Values{paramPeriod: {period}}
	if key != uuid.Nil {
		query.Set(paramKey, key.String())
	}
	if order != "" {
		query.Set(paramSort, order)
	}
	return (&url.URL{Path: path, RawQuery: query.Encode()}).String()
}

func (p *usagePages) chartedKey(c *gin.Context, key models.Key) (*templates.ChartedKey, error) {
	creator, err := p.keys.Creator(c.Request.Context(), key.AccountID, key.ID)
	now := p.Now()
	return &templates.ChartedKey{
		Key: key, Expired: key.Expired(now), LastUsed: optionalMoment(key.LastUsedAt, now), Created: templates.NewMoment(key.CreatedAt, now), Creator: creator,
	}, err
}

// columnRequests sorts both tables if the address names no column.
const columnRequests = "requests"

// usageColumns are the columns of the table of keys, and sourceColumns those of the sources of a
// key.
var (
	usageColumns = []tableColumn[models.KeyUsage]{
		{"label", "Key", labelRank, false},
		{columnRequests, "Requests", func(usage models.KeyUsage) string {
			requests, refusals := usage.Total()
			return numberRank(requests) + numberRank(refusals)
		}, true},
		{"refused", "Refused requests", func(usage models.KeyUsage) string {
			_, refusals := usage.Total()
			return numberRank(refusals)
		}, true},
	}
	sourceColumns = []tableColumn[models.KeySource]{
		{"address", "Address", func(source models.KeySource) string { return source.Address }, false},
		{"client", "Client", func(source models.KeySource) string { return source.Client }, false},
		{"first", "First seen", func(source models.KeySource) string { return numberRank(source.FirstSeen.UnixNano()) }, false},
		{"last", "Last seen", func(source models.KeySource) string { return numberRank(source.LastSeen.UnixNano()) }, true},
		{columnRequests, "Requests", func(source models.KeySource) string { return numberRank(source.Requests) }, true},
	}
)

// show shows the chart of all keys and a table of them, or the chart of one key and its sources.
func (p *usagePages) show(c *gin.Context) error {
	view, err := p.view(c)
	if err != nil {
		return err
	}
	sorted := func(order string) string { return view.address(usagePath, view.period, view.key, order) }
	page := templates.UsagePage{
		All: view.address(usagePath, view.period, uuid.Nil, ""), Export: view.address(usagePath+"/export", view.period, view.key, ""),
		Limited: len(view.usages) >= models.MaxUsageKeys,
	}
	for _, period := range usagePeriods {
		page.Periods = append(page.Periods, templates.UsagePeriod{
			Name: period.span.String(), URL: view.address(usagePath, period.name, view.key, ""), Current: period.name == view.period,
		})
	}
	page.Voice = p.hasMinutes(view)
	seconds, err := p.seconds(c, view)
	if err != nil {
		return err
	}
	columns := usageColumns
	if page.Voice {
		minutes := func(usage models.KeyUsage) string { return numberRank(seconds[usage.ID]) }
		columns = append(slices.Clip(columns), tableColumn[models.KeyUsage]{id: "minutes", name: "Minutes", rank: minutes, descending: true})
	}
	page.Columns = sortTable(view.usages, columns, view.order, columnRequests, sorted)
	all := int64(0)
	for _, usage := range view.usages {
		all += seconds[usage.ID]
		requests, refusals := usage.Total()
		page.Keys = append(page.Keys, templates.UsageRow{
			Key: usage.Key, URL: view.address(usagePath, view.period, usage.ID, ""),
			Requests: templates.Count(requests), Refused: templates.Count(refusals), Expired: usage.Expired(p.Now()),
			Minutes: templates.Count(seconds[usage.ID] / 60),
		})
	}
	page.Minutes = templates.Count(all / 60)
	if len(view.usages) > 0 {
		charted := models.SumUsage(view.usages)
		requests, refusals := charted.Total()
		page.Total, page.Refused = templates.Count(requests), templates.Count(refusals)
		if view.key != uuid.Nil {
			charted = view.usages[0]
			if err := p.addKey(c, &page, charted.Key, view.order, sorted); err != nil {
				return err
			}
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

// addKey adds what the page of one key has.
func (p *usagePages) addKey(c *gin.Context, page *templates.UsagePage, key models.Key, order string, sorted func(order string) string) (err error) {
	if page.Key, err = p.chartedKey(c, key); err != nil {
		return err
	}
	if page.CallLimits, err = p.callLimits(c, key); err != nil {
		return err
	}
	sources, err := p.keys.Sources(c.Request.Context(), key.AccountID, key.ID)
	if err != nil {
		return err
	}
	if key.IsWorkload() {
		exchanges, err := p.keys.Exchanges(c.Request.Context(), key.AccountID, key.ID)
		if err != nil {
			return err
		}
		page.Exchanges = templates.NewExchangeRows(exchanges, p.Now())
	}
	named := sources // without the rest, which has no address and stays last
	if n := len(sources); n > 0 && sources[n-1].Address == "" {
		named = sources[:n-1]
	}
	page.Columns = sortTable(named, sourceColumns, order, columnRequests, sorted)
	page.Sources = templates.NewKeySources(sources, p.Now())
	refusals, err := p.keys.Refusals(c.Request.Context(), key.AccountID, key.ID)
	page.Refusals = templates.NewKeyRefusals(refusals, p.Now())
	return err
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
	ids := make([]uuid.UUID, len(view.usages))
	for i, usage := range view.usages {
		ids[i] = usage.ID
	}
	return p.calls.SecondsByKey(c.Request.Context(), ids, view.span.Starts(p.Now())[0])
}

// callLimits says how much of its limits a key uses, or "".
func (p *usagePages) callLimits(c *gin.Context, key models.Key) (string, error) {
	if !p.calls.Enabled() || key.Limits.IsZero() {
		return "", nil
	}
	used, err := p.calls.Used(c.Request.Context(), key.AccountID, key.ID)
	return templates.UsedLimits(used, key.Limits), err
}

// export sends the usage as CSV, with a line for each hour or day that a key was used.
func (p *usagePages) export(c *gin.Context) (err error) {
	var view usageView
	err = p.readExport(c, func() (err error) {
		view, err = p.view(c)
		return err
	})
	if err != nil {
		return err
	}
	subject := "usage"
	if view.key != uuid.Nil {
		subject += "-" + view.usages[0].Label
	}
	starts := view.span.Starts(p.Now())
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
			_ = c.Error(err)
			// The client must not accept an incomplete file.
			panic(http.ErrAbortHandler)
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
func usageLines(usage models.KeyUsage, starts []time.Time, seconds map[time.Time]int64, voice bool) (lines string) {
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
