package portal

import (
	"net/url"
	"slices"
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
	paramKey    = "key"
	paramFrom   = "from" // a UTC day, such as 2026-03-14
	paramUntil  = "to"   // the last UTC day
	paramSearch = "q"
)

// activityView is the filter of the activity page.
type activityView struct {
	kind        string
	actions     []models.Action
	key         uuid.UUID
	from, until time.Time // days; zero if not set
	search      string
}

// newActivityView returns the view that the parameters describe. It returns a 404 for an unknown
// kind and ignores other invalid values. API keys in the search are redacted.
func newActivityView(parameters url.Values) (activityView, error) {
	view := activityView{kind: parameters.Get(paramKind)}
	if view.kind != "" {
		if view.actions = actionsOf(view.kind); view.actions == nil {
			return activityView{}, problem.NotFound()
		}
	}
	view.key, _ = parseID(parameters.Get(paramKey))
	view.from, _ = time.Parse(time.DateOnly, parameters.Get(paramFrom))
	view.until, _ = time.Parse(time.DateOnly, parameters.Get(paramUntil))
	search := strings.TrimSpace(models.RedactKeys(parameters.Get(paramSearch)))
	view.search = strings.TrimPrefix(search, "nas_...")
	return view, nil
}

// page returns the page of the activity log that the view selects.
func (v activityView) page(limit int) models.ActivityPage {
	page := models.ActivityPage{Limit: limit, Actions: v.actions, KeyID: v.key, From: v.from, Search: v.search}
	if !v.until.IsZero() {
		page.Until = v.until.AddDate(0, 0, 1)
	}
	return page
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
	set(paramFrom, dateOf(v.from))
	set(paramUntil, dateOf(v.until))
	set(paramSearch, v.search)
	set(paramBefore, before)
	return (&url.URL{Path: path, RawQuery: query.Encode()}).String()
}

// dateOf formats the day for a date field. It returns "" for the zero day.
func dateOf(day time.Time) string {
	if day.IsZero() {
		return ""
	}
	return day.Format(time.DateOnly)
}

// filter redirects to the filtered page. The filter is sent with POST, because a key that
// is pasted into the search must not reach a URL.
func (p *activityPages) filter(c *gin.Context) error {
	view, err := newActivityView(c.Request.PostForm)
	if err != nil {
		return err
	}
	return p.redirect(c, view.address(activityPath, ""))
}

// actionsOf returns the actions of a kind, which is an action or the id of a group. It returns nil
// for an unknown kind.
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

// filterForm returns the filter form with the values of the view. Its choices of keys are the active
// keys, the keys that were revoked last, and the chosen key.
func (p *activityPages) filterForm(c *gin.Context, view activityView) (templates.ActivityFilter, error) {
	filter := templates.ActivityFilter{
		Kind: view.kind, Key: view.key, From: dateOf(view.from), Until: dateOf(view.until), Search: view.search,
		Active: view.address(activityPath, "") != activityPath,
	}
	account, ctx := sessionFrom(c).AccountID, c.Request.Context()
	keys, err := p.keys.Names(ctx, account, revokedPerPage)
	if err != nil {
		return filter, err
	}
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
