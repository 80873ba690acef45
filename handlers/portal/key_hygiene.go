package portal

import (
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/models/keys"
	"portal/models/value"
	"portal/templates"
)

const hintsPath = homePath + "/hints/dismissal"

// dismissedHints are the hints that a user has dismissed in this browser, and when they are shown
// again.
type dismissedHints struct {
	User  uuid.UUID // on a shared browser the next user must see the hints
	Until map[string]time.Time
}

// keyShow is a filter of the list of keys.
type keyShow struct {
	id    string
	text  func(n int) string // says what n keys have in common, after their number
	holds func(key keys.Key, now time.Time) bool
}

// keyShows are what is worth a look.
var keyShows = []keyShow{
	{"never-used", func(n int) string {
		if n == 1 {
			return "key unused since it was generated"
		}
		return "keys unused since they were generated"
	}, func(key keys.Key, now time.Time) bool {
		return key.LastUsedAt == nil && now.Sub(key.CreatedAt) >= 7*value.Day
	}},
	{"unused", hasOrHave("not been used for 90 days%s", "", ""), func(key keys.Key, now time.Time) bool {
		return key.LastUsedAt != nil && now.Sub(*key.LastUsedAt) >= 90*value.Day
	}},
	{"unrestricted", hasOrHave("no expiry and no restrictions, and %s older than a year", "is", "are"), func(key keys.Key, now time.Time) bool {
		return key.ExpiresAt == nil && key.Agents == nil && key.Networks == nil && key.Limits.IsZero() && now.Sub(key.CreatedAt) >= 365*value.Day
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
func (s *keyShow) among(keys []keys.KeyUsage, now time.Time) (found []keys.KeyUsage) {
	for _, key := range keys {
		if s == nil || s.holds(key.Key, now) {
			found = append(found, key)
		}
	}
	return found
}

// worthALook returns links to lists of what an owner or a member should look at.
func (p *keyPages) worthALook(c *gin.Context, keys []keys.KeyUsage) ([]templates.WorthALook, error) {
	var links []templates.WorthALook
	var dismissed dismissedHints
	if !p.cookies.read(c, hintsCookie, &dismissed) || dismissed.User != sessionFrom(c).UserID {
		dismissed.Until = nil
	}
	add := func(path, show, text string) {
		if !p.now().Before(dismissed.Until[show]) {
			links = append(links, templates.WorthALook{ID: show, URL: path, Text: text, Current: keyShowOf(c) != nil && c.Query(paramShow) == show})
		}
	}
	list := func(path, show string) string { return path + "?" + url.Values{paramShow: {show}}.Encode() }
	for _, show := range keyShows {
		if n := len(show.among(keys, p.now())); n > 0 {
			add(list(homePath, show.id), show.id, fmt.Sprintf("%d %s", n, show.text(n)))
		}
	}
	session := sessionFrom(c)
	if !owns(session) { // who alone can do something about people
		return links, nil
	}
	people, oneself, err := p.people.CountWithoutFactor(c.Request.Context(), session.AccountID, session.UserID)
	if err != nil || people == 0 {
		return links, err
	}
	switch {
	case oneself && people == 1:
		add(accountPath+"#two-step", showWithoutFactor, "Turn on two-step verification for yourself")
	case oneself && people == 2:
		add(list(peoplePath, showWithoutFactor), showWithoutFactor, "You and 1 other person have no two-step verification")
	case oneself:
		add(list(peoplePath, showWithoutFactor), showWithoutFactor, fmt.Sprintf("You and %d other people have no two-step verification", people-1))
	case people == 1:
		add(list(peoplePath, showWithoutFactor), showWithoutFactor, "1 person has no two-step verification")
	default:
		add(list(peoplePath, showWithoutFactor), showWithoutFactor, fmt.Sprintf("%d people have no two-step verification", people))
	}
	return links, nil
}

// dismissHints hides the hints of the form for 30 days.
func (p *keyPages) dismissHints(c *gin.Context) error {
	session := sessionFrom(c)
	var dismissed dismissedHints
	p.cookies.read(c, hintsCookie, &dismissed)
	if dismissed.User != session.UserID || dismissed.Until == nil {
		dismissed = dismissedHints{User: session.UserID, Until: map[string]time.Time{}}
	}
	known := []string{showWithoutFactor}
	for _, show := range keyShows {
		known = append(known, show.id)
	}
	for _, hint := range c.PostFormArray("hint") {
		if slices.Contains(known, hint) {
			dismissed.Until[hint] = p.now().Add(hintRest)
		}
	}
	if err := p.cookies.put(c, hintsCookie, dismissed); err != nil {
		return err
	}
	return p.reply(c, reply{fragment: templates.HintsDismissed{}, location: homePath})
}

// firstSteps returns the steps of a new account to its first request. They end when there is a
// second key, or a key has been used or has ended.
func (p *keyPages) firstSteps(active []keys.KeyUsage, ended bool, hasAgent func() (bool, error)) ([]templates.FirstStep, error) {
	if ended || len(active) > 1 || slices.ContainsFunc(active, func(key keys.KeyUsage) bool { return key.LastUsedAt != nil }) {
		return nil, nil
	}
	agent, err := hasAgent()
	if err != nil {
		return nil, err
	}
	steps := []templates.FirstStep{
		{Name: "Create an agent", Text: "Your visitors talk to it.", URL: agentsPath, Done: agent},
		{Name: "Generate an API key", Text: "Your server authenticates with it.", URL: homePath + "#label", Done: len(active) > 0},
		{Name: "Send the first request", Text: "Integrate has examples. This list notices the request.", URL: "/integrate"},
	}
	next := slices.IndexFunc(steps, func(step templates.FirstStep) bool { return !step.Done })
	steps[next].Current = true
	return steps, nil
}

// noticedLeaks is how many keys the notice names.
const noticedLeaks = 3

const paramReplacing = "replacing"

// dismissedLeaks is the notice that a user has dismissed. A cookie carries it, so each reader
// dismisses the notice alone.
type dismissedLeaks struct {
	User  uuid.UUID // on a shared browser the next user must see the notice
	Until time.Time // the latest revocation in the notice
}

// leakedSince returns the time since which the notice names keys that were revoked as leaked.
func (p *keyPages) leakedSince(c *gin.Context) time.Time {
	since := p.now().Add(-leakNotice)
	var dismissed dismissedLeaks
	if p.cookies.read(c, dismissedCookie, &dismissed) && dismissed.User == sessionFrom(c).UserID && dismissed.Until.After(since) {
		since = dismissed.Until
	}
	return since
}

// showLeaks shows the list, which has the notice.
func (p *keyPages) showLeaks(c *gin.Context) error {
	if _, err := p.views.find(c); err != nil {
		return err
	}
	return p.redirect(c, homePath)
}

// dismissLeaks hides the notice about leaked keys whose latest one is in the path.
func (p *keyPages) dismissLeaks(c *gin.Context) error {
	key, err := p.views.find(c)
	if err == nil && key.RevokedAt != nil {
		err = p.cookies.put(c, dismissedCookie, dismissedLeaks{User: sessionFrom(c).UserID, Until: *key.RevokedAt})
	}
	if err != nil {
		return err
	}
	return p.reply(c, reply{fragment: templates.LeaksDismissed{}, location: homePath})
}

// replacing returns the key whose replacement the form generates: the one of the query string, or
// the zero key. The replacement does not keep its expiry.
func (p *keyPages) replacing(c *gin.Context) (keys.Key, error) {
	id, err := queryID(c, paramReplacing)
	if err != nil || id == uuid.Nil {
		return keys.Key{}, err
	}
	key, err := p.keys.Find(c.Request.Context(), sessionFrom(c).AccountID, id)
	return keys.Key{Label: key.Label, Access: key.Access, Agents: key.Agents, Networks: key.Networks, Limits: key.Limits}, err
}
