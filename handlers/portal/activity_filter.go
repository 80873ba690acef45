package portal

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
	"portal/models"
	"portal/templates"
)

// The parameters of the filter.
const (
	paramKind   = "kind" // an action or a group
	paramActor  = "who"  // a user's id, "operator", or "visitor" for someone who was not signed in
	paramKey    = "key"
	paramFrom   = "from" // a day, such as 2026-03-14
	paramUntil  = "to"   // the last day
	paramSearch = "q"

	// The offsets from UTC, in minutes, at the beginning of the first day and at the end of the
	// last. A script sets them, so that days are those of the user.
	paramFromOffset  = "from_offset"
	paramUntilOffset = "to_offset"
)

// activityView is the filter of the activity page.
type activityView struct {
	kind        string
	actions     []models.Action
	actorKind   models.ActorKind
	actor       uuid.UUID
	key         uuid.UUID
	from, until activityDay
	search      string
}

// activityDay is a day of a user.
type activityDay struct {
	date   time.Time     // midnight UTC; zero if not set
	offset time.Duration // from UTC
}

// newActivityDay ignores invalid values.
func newActivityDay(date, offset string) (day activityDay) {
	day.date, _ = time.Parse(time.DateOnly, date)
	if minutes, err := strconv.Atoi(offset); err == nil && max(minutes, -minutes) <= 24*60 && !day.date.IsZero() {
		day.offset = time.Duration(minutes) * time.Minute
	}
	return day
}

// start returns the time at which the day, or one so many days later, begins for the user. It is
// zero if the day is not set.
func (d activityDay) start(later int) time.Time {
	if d.date.IsZero() {
		return d.date
	}
	return d.date.AddDate(0, 0, later).Add(-d.offset)
}

// texts returns the day and its offset as parameters, which are empty if they are not set.
func (d activityDay) texts() (date, offset string) {
	if !d.date.IsZero() {
		date = d.date.Format(time.DateOnly)
	}
	if d.offset != 0 {
		offset = strconv.Itoa(int(d.offset / time.Minute))
	}
	return date, offset
}

// newActivityView returns the view that the parameters describe. If the kind is unknown, it returns
// a 404; other invalid values are ignored. API keys in the search are redacted.
func newActivityView(parameters url.Values) (activityView, error) {
	view := activityView{kind: parameters.Get(paramKind)}
	if view.kind != "" {
		if view.actions = actionsOf(view.kind); view.actions == nil {
			return activityView{}, problem.NotFound()
		}
	}
	view.key, _ = parseID(parameters.Get(paramKey))
	switch kind := models.ActorKind(parameters.Get(paramActor)); kind {
	case models.ActorOperator, models.ActorVisitor:
		view.actorKind = kind
	default:
		view.actor, _ = parseID(string(kind))
	}
	view.from = newActivityDay(parameters.Get(paramFrom), parameters.Get(paramFromOffset))
	view.until = newActivityDay(parameters.Get(paramUntil), parameters.Get(paramUntilOffset))
	search := strings.TrimSpace(models.RedactKeys(parameters.Get(paramSearch)))
	view.search = strings.TrimPrefix(search, "nas_...")
	return view, nil
}

// page returns the page of the activity log that the view selects.
func (v activityView) page(limit int) models.ActivityPage {
	return models.ActivityPage{
		Limit: limit, Actions: v.actions, ActorKind: v.actorKind, ActorID: v.actor, KeyID: v.key,
		From: v.from.start(0), Until: v.until.start(1), Search: v.search,
	}
}

// who returns the actor as a parameter.
func (v activityView) who() string {
	if v.actor != uuid.Nil {
		return v.actor.String()
	}
	return string(v.actorKind)
}

// address returns the URL of the view at path. Unless before is empty, the page starts after the
// activity with that id.
func (v activityView) address(path, before string) string {
	query := url.Values{}
	set := func(name, value string) {
		if value != "" {
			query.Set(name, value)
		}
	}
	set(paramKind, v.kind)
	if v.key != uuid.Nil {
		set(paramKey, v.key.String())
	}
	set(paramActor, v.who())
	from, fromOffset := v.from.texts()
	until, untilOffset := v.until.texts()
	set(paramFrom, from)
	set(paramFromOffset, fromOffset)
	set(paramUntil, until)
	set(paramUntilOffset, untilOffset)
	set(paramSearch, v.search)
	set(paramBefore, before)
	return (&url.URL{Path: path, RawQuery: query.Encode()}).String()
}

// actionsOf returns the actions of a kind, which is an action or the id of a group, or nil for an
// unknown kind.
func actionsOf(kind string) (actions []models.Action) {
	for _, group := range templates.ActivityGroups {
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
		Kind: view.kind, Who: view.who(), Key: view.key, Search: view.search,
	}
	filter.From, filter.FromOffset = view.from.texts()
	filter.Until, filter.UntilOffset = view.until.texts()
	account, ctx := sessionFrom(c).AccountID, c.Request.Context()
	keys, err := p.keys.Names(ctx, account, revokedPerPage)
	if err != nil {
		return filter, err
	}
	people, err := p.people.List(ctx, account, models.Page{Limit: peoplePerPage})
	if err != nil {
		return filter, err
	}
	filter.People = people.Items
	isChosen := func(key models.KeyName) bool { return key.ID == view.key }
	if view.key != uuid.Nil && !slices.ContainsFunc(keys, isChosen) {
		key, err := p.keys.Find(ctx, account, view.key)
		if err != nil {
			return filter, err
		}
		keys = append(keys, models.KeyName{ID: key.ID, Label: key.Label, LastFour: key.LastFour, RevokedAt: key.RevokedAt})
	}
	for _, key := range keys {
		if key.RevokedAt == nil {
			filter.Keys = append(filter.Keys, key)
		} else {
			filter.Revoked = append(filter.Revoked, key)
		}
	}
	return filter, nil
}
