package portal

import (
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"portal/models"
	"portal/templates"
)

// paramShow is what a list is filtered by.
const paramShow = "show"

// showWithoutFactor filters the list of people.
const showWithoutFactor = "no-two-step"

// keyShow is a filter of the list of keys.
type keyShow struct {
	id    string
	text  func(n int) string // says what n keys have in common, after their number
	holds func(key models.Key, now time.Time) bool
}

// keyShows are what is worth a look.
var keyShows = []keyShow{
	{"never-used", hasOrHave("never been used and %s older than 7 days", "is", "are"), func(key models.Key, now time.Time) bool {
		return key.LastUsedAt == nil && now.Sub(key.CreatedAt) >= 7*models.Day
	}},
	{"unused", hasOrHave("not been used for 90 days%s", "", ""), func(key models.Key, now time.Time) bool {
		return key.LastUsedAt != nil && now.Sub(*key.LastUsedAt) >= 90*models.Day
	}},
	{"unrestricted", hasOrHave("no expiry and no restrictions, and %s older than a year", "is", "are"), func(key models.Key, now time.Time) bool {
		return key.ExpiresAt == nil && key.Agents == nil && key.Networks == nil && key.Limits.IsZero() && now.Sub(key.CreatedAt) >= 365*models.Day
	}},
}

func hasOrHave(format, singular, plural string) func(n int) string {
	return func(n int) string {
		if n == 1 {
			return "key has " + fmt.Sprintf(format, singular)
		}
		return "keys have " + fmt.Sprintf(format, plural)
	}
}

// keyShowOf returns the filter of the query string, or nil. An unknown value is ignored.
func keyShowOf(c *gin.Context) *keyShow {
	i := slices.IndexFunc(keyShows, func(show keyShow) bool { return show.id == c.Query(paramShow) })
	if i < 0 {
		return nil
	}
	return &keyShows[i]
}

// among returns the keys that the filter selects.
func (s *keyShow) among(keys []models.KeyUsage, now time.Time) (found []models.KeyUsage) {
	for _, key := range keys {
		if s == nil || s.holds(key.Key, now) {
			found = append(found, key)
		}
	}
	return found
}

// worthALook returns links to lists of what an owner or a member should look at.
func (p *keyPages) worthALook(c *gin.Context, keys []models.KeyUsage) ([]templates.WorthALook, error) {
	var links []templates.WorthALook
	add := func(n int, path, show, text string) {
		if n > 0 {
			address := url.URL{Path: path, RawQuery: url.Values{paramShow: {show}}.Encode()}
			links = append(links, templates.WorthALook{URL: address.String(), Text: fmt.Sprintf("%d %s", n, text), Current: path == homePath && c.Query(paramShow) == show})
		}
	}
	for _, show := range keyShows {
		n := len(show.among(keys, p.Now()))
		add(n, homePath, show.id, show.text(n))
	}
	session := sessionFrom(c)
	if !owns(session) { // who alone can do something about people
		return links, nil
	}
	people, err := p.people.CountWithoutFactor(c.Request.Context(), session.AccountID)
	text := "people have no two-step verification"
	if people == 1 {
		text = "person has no two-step verification"
	}
	add(people, peoplePath, showWithoutFactor, text)
	return links, err
}

// firstSteps returns the steps of a new account to its first request. They end when there is a
// second key, or a key has been used or has ended.
func (p *keyPages) firstSteps(c *gin.Context, active []models.KeyUsage) ([]templates.FirstStep, error) {
	account := sessionFrom(c).AccountID
	if len(active) > 1 || slices.ContainsFunc(active, func(key models.KeyUsage) bool { return key.LastUsedAt != nil }) {
		return nil, nil
	}
	ended, err := p.keys.Revoked(c.Request.Context(), account, models.Page{Limit: 1})
	if err != nil || len(ended.Items) > 0 {
		return nil, err
	}
	agents, err := p.agents.List(c.Request.Context(), account, models.Page{Limit: 1})
	if err != nil {
		return nil, err
	}
	steps := []templates.FirstStep{
		{Name: "Create an agent", Text: "Your visitors talk to it.", URL: agentsPath, Done: len(agents.Items) > 0},
		{Name: "Generate an API key", Text: "Your server authenticates with it.", URL: homePath + "#label", Done: len(active) > 0},
		{Name: "Send the first request", Text: "Integrate has examples. This list notices the request.", URL: "/integrate"},
	}
	next := slices.IndexFunc(steps, func(step templates.FirstStep) bool { return !step.Done })
	steps[next].Current = true
	return steps, nil
}
