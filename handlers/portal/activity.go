package portal

import (
	"cmp"
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"portal/handlers/problem"
	"portal/models/keys"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
	"portal/templates"
)

// activityPages are the activity log and its export.
type activityPages struct {
	*site

	activity *record.ActivityLog
	keys     *keys.Keys
	keyUsage *keys.Usage
	people   *people.People
}

// activitiesPerPage is the number of activities on a page.
const activitiesPerPage = 50

// list shows the account's activities, newest first.
func (p *activityPages) list(c *gin.Context) error {
	page, err := p.read(c, c.Request.URL.Query())
	if err != nil {
		return err
	}
	return p.reply(c, reply{fragment: page, page: present(page)})
}

// filter shows the activities that match a form, which is sent with POST because a key that is
// pasted into the search must not reach a URL.
func (p *activityPages) filter(c *gin.Context) error {
	page, err := p.read(c, c.Request.PostForm)
	if err != nil {
		return err
	}
	return p.reply(c, reply{fragment: page, location: page.Newest, address: page.Newest})
}

// read reads the page of the view that the parameters describe.
func (p *activityPages) read(c *gin.Context, parameters url.Values) (page templates.ActivityPage, err error) {
	view, err := newActivityView(parameters)
	if err != nil {
		return page, err
	}
	if view.Before, err = queryID(c, paramBefore); err != nil {
		return page, err
	}
	view.Limit = activitiesPerPage + 1 // to see whether there are older ones
	account, ctx := sessionFrom(c).AccountID, c.Request.Context()
	page = templates.ActivityPage{Paged: view.Before != uuid.Nil, Newest: view.address(activityPath), Export: view.address(exportPath)}
	// Under load, a statement mostly waits, so the two reads run at the same time.
	var activities []record.Activity
	var reads errgroup.Group
	reads.Go(func() (err error) {
		activities, err = p.activity.List(ctx, account, view.ActivityPage)
		return err
	})
	page.Filter, err = p.filterForm(c, view)
	if err := cmp.Or(reads.Wait(), err); err != nil {
		return page, err
	}
	if len(activities) > activitiesPerPage {
		activities = activities[:activitiesPerPage]
		view.query.Set(paramBefore, activities[activitiesPerPage-1].Position.String())
		page.Older = view.address(activityPath)
	}
	items, err := p.items(ctx, account, activities)
	page.Days = templates.ActivityDays(items)
	return page, err
}

// items returns the activities as the page shows them. A revocation also has the number of
// requests with the key that were refused in the last hour.
func (p *activityPages) items(ctx context.Context, accountID uuid.UUID, activities []record.Activity) ([]templates.ActivityItem, error) {
	var revoked []uuid.UUID
	for _, activity := range activities {
		if activity.RevokesKey() {
			revoked = append(revoked, *activity.SubjectID)
		}
	}
	var usage map[uuid.UUID]keys.KeyUsage
	if len(revoked) > 0 {
		var err error
		if usage, err = p.keyUsage.Of(ctx, accountID, lastHour, revoked...); err != nil {
			return nil, err
		}
	}
	now := p.now()
	var items []templates.ActivityItem
	for _, activity := range activities {
		item := templates.ActivityItem{Activity: activity, When: templates.NewMoment(activity.At, now)}
		if item.KeyLastFour != "" {
			item.KeyAddress = activityPath + "?" + url.Values{paramKey: {activity.SubjectID.String()}}.Encode()
		}
		if activity.RevokesKey() {
			_, refusals := usage[*activity.SubjectID].Total()
			item.Refusals = templates.Count(refusals)
		}
		items = append(items, item)
	}
	return items, nil
}

const exportPath = activityPath + "/export"

// exportColumns are the column names in the first line.
var exportColumns = []string{"time", "actor", "action", "label", "subject_id", "address", "key", "former_label", "replaced_key", "count", "detail"}

// export sends the account's activities as CSV (RFC 4180), newest first.
func (p *activityPages) export(c *gin.Context) error {
	view, err := newActivityView(c.Request.URL.Query())
	if err != nil {
		return err
	}
	view.Limit = exportBatch
	return exportBatches(p.site, c, "activity", exportColumns, exportCells, func(ctx context.Context) ([]record.Activity, error) {
		activities, err := p.activity.List(ctx, sessionFrom(c).AccountID, view.ActivityPage)
		if n := len(activities); n > 0 {
			view.Before = activities[n-1].Position
		}
		return activities, err
	})
}

func exportCells(activity record.Activity) []string {
	subject := ""
	if activity.SubjectID != nil {
		subject = activity.SubjectID.String()
	}
	return []string{
		activity.At.UTC().Format(time.RFC3339), activity.NamedActor(), string(activity.Action),
		activity.Label, subject, activity.Address,
		activity.MaskedKey(), activity.FormerLabel, activity.MaskedReplaced(), strconv.FormatInt(activity.Count+activity.Repeats, 10),
		cmp.Or(activity.Detail, activity.Leak().String()), // a leak has no other detail
	}
}

// The parameters of the filter.
const (
	paramKind = "kind" // an action or a group
	// A user's id, "operator", "system", or "visitor" for someone who was not signed in.
	paramActor  = "who"
	paramFrom   = "from" // a day, such as 2026-03-14
	paramUntil  = "to"   // the last day
	paramSearch = "q"

	// The offsets from UTC, in minutes, at the beginning of the first day and at the end of the
	// last. A script sets them, so that days are those of the user.
	paramFromOffset  = "from_offset"
	paramUntilOffset = "to_offset"
)

// activityView is what the activity page shows: the activities that a filter selects.
type activityView struct {
	record.ActivityPage

	query url.Values // the valid parameters of the filter
}

// newActivityView returns the view that the parameters describe. If the kind is unknown, it returns
// a 404; other invalid values are ignored. API keys in the search are redacted.
func newActivityView(parameters url.Values) (activityView, error) {
	view := activityView{query: url.Values{}}
	set := func(name, value string) {
		if value != "" {
			view.query.Set(name, value)
		}
	}
	kind := parameters.Get(paramKind)
	if view.Actions = actionsOf(kind); view.Actions == nil && kind != "" {
		return activityView{}, problem.NotFound()
	}
	set(paramKind, kind)
	if id, ok := parseID(parameters.Get(paramKey)); ok {
		view.KeyID = id
		set(paramKey, id.String())
	}
	switch actor := record.ActorKind(parameters.Get(paramActor)); actor {
	case record.ActorOperator, record.ActorVisitor, record.ActorSystem:
		view.ActorKind = actor
		set(paramActor, string(actor))
	default:
		if id, ok := parseID(string(actor)); ok {
			view.ActorID = id
			set(paramActor, id.String())
		}
	}
	// day returns the start of the day of the user, or of the day after it. PostgreSQL has no
	// year 0, and nothing is older than 1970. SQLite compares no year of five digits.
	day := func(name, offsetName string, later int) time.Time {
		date, err := time.Parse(time.DateOnly, parameters.Get(name))
		if err != nil || date.Year() < 1970 || date.Year() > 9998 {
			return time.Time{}
		}
		set(name, date.Format(time.DateOnly))
		minutes, err := strconv.Atoi(parameters.Get(offsetName))
		if err != nil || minutes == 0 || max(minutes, -minutes) > 24*60 {
			return date.AddDate(0, 0, later)
		}
		set(offsetName, strconv.Itoa(minutes))
		return date.AddDate(0, 0, later).Add(-time.Duration(minutes) * time.Minute)
	}
	view.From = day(paramFrom, paramFromOffset, 0)
	view.Until = day(paramUntil, paramUntilOffset, 1)
	view.Search = value.ReadSearch(parameters.Get(paramSearch))
	set(paramSearch, view.Search)
	return view, nil
}

// address returns the URL of the view at path.
func (v activityView) address(path string) string {
	return (&url.URL{Path: path, RawQuery: v.query.Encode()}).String()
}

// actionsOf returns the actions of a kind, which is an action or the id of a group, or nil for an
// unknown kind.
func actionsOf(kind string) (actions []record.Action) {
	for _, group := range templates.ActionGroups {
		for _, one := range group.Actions {
			if kind == group.ID || kind == string(one.Action) {
				actions = append(actions, one.Action)
			}
		}
	}
	return actions
}

// filterForm returns the filter form with the values of the view. Its choices of keys are the
// active keys, the keys that were revoked last, and the chosen key.
func (p *activityPages) filterForm(c *gin.Context, view activityView) (templates.ActivityFilter, error) {
	filter := templates.ActivityFilter{
		Kind: view.query.Get(paramKind), Who: view.query.Get(paramActor), Key: view.KeyID, Search: view.Search,
		From: view.query.Get(paramFrom), FromOffset: view.query.Get(paramFromOffset),
		Until: view.query.Get(paramUntil), UntilOffset: view.query.Get(paramUntilOffset),
	}
	for feature, on := range map[templates.Feature]bool{
		templates.FeatureCalls: p.callsOn, templates.FeatureWebhooks: p.webhooksOn, templates.FeatureProvider: p.provider != "",
	} {
		if on {
			filter.Features = append(filter.Features, feature)
		}
	}
	account, ctx := sessionFrom(c).AccountID, c.Request.Context()
	people, err := p.people.List(ctx, account, value.Page{Limit: peoplePerPage})
	if err != nil {
		return filter, err
	}
	filter.People = people.Items
	filter.Keys, filter.Revoked, err = p.keys.Choices(ctx, account, view.KeyID, revokedPerPage)
	return filter, err
}
