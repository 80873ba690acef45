package portal

import (
	"net/url"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
	"portal/models/record"
	"portal/models/value"
	"portal/templates"
)

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
