package portal

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/gorilla/sessions"

	"portal/handlers/deps"
	"portal/models/people"
	"portal/models/value"
)

// The names of the portal's cookies.
const (
	sessionCookie   = "session"   // the token of a session, see [sessionStore]
	flashCookie     = "flash"     // the notice for the next page
	revealedCookie  = "revealed"  // the last page has shown a key
	pendingCookie   = "pending"   // a sign-in that waits for its second step
	requestCookie   = "oidc"      // requests to the OpenID Connect provider
	challengeCookie = "challenge" // challenges that the browser's passkeys must answer
	deviceCookie    = "device"    // identifies the device of a user who has signed in
	dismissedCookie = "dismissed" // the notice about leaked keys
	hintsCookie     = "hints"     // what is worth a look, and was dismissed
)

const (
	// leakNotice is how long the page of keys says that a key was revoked as leaked.
	leakNotice = 7 * value.Day
	// hintRest is how long a dismissed hint is not shown.
	hintRest = 30 * value.Day
)

// cookieAges are the lifetimes of what waits in the browser between two requests. With zero, the
// browser keeps the cookie until it closes.
var cookieAges = map[string]time.Duration{
	flashCookie:     time.Minute, // how late a message can appear after an interrupted redirect
	revealedCookie:  0,
	pendingCookie:   10 * time.Minute,
	requestCookie:   10 * time.Minute, // how long the user may take at the provider
	challengeCookie: people.ChallengeLife,
	deviceCookie:    365 * 24 * time.Hour, // it gives no access, so sign-out keeps it
	dismissedCookie: leakNotice,
	hintsCookie:     hintRest,
}

// cookies are the sessions that the browser itself keeps in signed cookies: nobody can change their
// values, but anyone can read them in the browser.
type cookies struct {
	stores map[string]*sessions.CookieStore // by cookie; those of one lifetime share a store
	base   *url.URL
	now    func() time.Time
}

func newCookies(d deps.Deps) cookies {
	k, byAge := cookies{stores: map[string]*sessions.CookieStore{}, base: d.BaseURL, now: d.Now}, map[time.Duration]*sessions.CookieStore{}
	for name, age := range cookieAges {
		if byAge[age] == nil {
			byAge[age] = newCookieStore(d, age)
		}
		k.stores[name] = byAge[age]
	}
	return k
}

// newCookieStore returns a store whose cookies are valid for age.
func newCookieStore(d deps.Deps, age time.Duration) *sessions.CookieStore {
	var pairs [][]byte
	for _, key := range d.CookieKeys {
		pairs = append(pairs, key, nil) // signed, not encrypted
	}
	store := sessions.NewCookieStore(pairs...)
	store.Options = &sessions.Options{Path: "/", HttpOnly: true, Secure: d.BaseURL.Scheme == "https", SameSite: http.SameSiteLaxMode}
	store.MaxAge(int(age / time.Second)) // of the browser's cookie and of its signature
	return store
}

// cookieName returns the name of a cookie in the browser. Under https its prefix makes the browser
// accept the cookie from this host alone. A port other than the scheme's is part of the name,
// because browsers send the cookies of a host to all its ports.
func cookieName(base *url.URL, name string) string {
	usual := "80"
	if base.Scheme == "https" {
		name, usual = "__Host-"+name, "443"
	}
	if port := base.Port(); port != "" && port != usual {
		name += "-" + port
	}
	return name
}

// get returns the values of a cookie. If the cookie is missing, forged or too old, there are none.
// Other programs of the domain may use the cookie's name, so each cookie of this name is tried.
func (k cookies) get(c *gin.Context, name string) *sessions.Session {
	store, name := k.stores[name], cookieName(k.base, name)
	for _, cookie := range c.Request.CookiesNamed(name) {
		only := &http.Request{Header: http.Header{"Cookie": {cookie.String()}}}
		if session, err := store.New(only, name); err == nil {
			return session
		}
	}
	session, _ := store.New(&http.Request{}, name) // has no values
	return session
}

// drop deletes a cookie in the browser.
func (k cookies) drop(c *gin.Context, name string) {
	session := k.get(c, name)
	clear(session.Values)
	session.Options.MaxAge = -1
	if err := session.Save(c.Request, c.Writer); err != nil {
		_ = c.Error(err)
	}
}

// valueKey is the key of the one value of a cookie.
const valueKey = "value"

// put sends the browser a cookie with one value. It returns an error if the value is too long.
func (k cookies) put(c *gin.Context, name string, value any) error {
	text, err := encode(value)
	if err != nil {
		return err
	}
	session := k.get(c, name)
	session.Values[valueKey] = string(text)
	return session.Save(c.Request, c.Writer)
}

// encode returns the value as JSON: the store itself would need each type to be registered. An
// address is not longer than it was, because no "&" is escaped.
func encode(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSpace(text.Bytes()), err
}

// read reads the value of a cookie. If there is none, it returns false.
func (k cookies) read(c *gin.Context, name string, value any) bool {
	text, ok := k.get(c, name).Values[valueKey].(string)
	return ok && json.Unmarshal([]byte(text), value) == nil
}

// maxWaiting limits how many values of one kind wait in a browser at the same time.
const maxWaiting = 4

// waiting is one of the values of a cookie that has one for each tab of the browser.
type waiting struct {
	Key   string
	Since time.Time
	Value json.RawMessage
}

// waiting returns the values that wait in a cookie, the oldest first.
func (k cookies) waiting(c *gin.Context, name string) (all []waiting) {
	k.read(c, name, &all)
	return slices.DeleteFunc(all, func(one waiting) bool { return k.now().Sub(one.Since) >= cookieAges[name] })
}

// add is [cookies.put] for one of several values. The oldest ones make room for it. It returns an
// error if the value alone is too long.
func (k cookies) add(c *gin.Context, name, key string, value any) error {
	text, err := encode(value)
	if err != nil {
		return err
	}
	all := append(k.waiting(c, name), waiting{Key: key, Since: k.now(), Value: text})
	for all = all[max(0, len(all)-maxWaiting):]; ; all = all[1:] {
		if err := k.put(c, name, all); err == nil || len(all) == 1 {
			return err
		}
	}
}

// take is [cookies.read] for the value with this key, which it deletes.
func (k cookies) take(c *gin.Context, name, key string, value any) bool {
	all := k.waiting(c, name)
	i := slices.IndexFunc(all, func(one waiting) bool { return one.Key == key })
	if i < 0 {
		return false
	}
	found := json.Unmarshal(all[i].Value, value) == nil
	if all = slices.Delete(all, i, i+1); len(all) == 0 {
		k.drop(c, name)
	} else if err := k.put(c, name, all); err != nil {
		_ = c.Error(err)
	}
	return found
}
