package portal

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/gorilla/sessions"

	"portal/handlers/middleware"
	"portal/models/people"
	"portal/models/record"
)

const (
	sessionContextKey = "portal.session"
	backgroundKey     = "portal.background"
)

// session returns the browser's session, as [sessionStore.New] does. It is never nil.
func (s *site) session(c *gin.Context) (*sessions.Session, error) {
	if c.Request.Context().Value(visitKey{}) == nil {
		ctx := context.WithValue(c.Request.Context(), visitKey{}, visit{client: clientOf(c), background: c.GetBool(backgroundKey)})
		c.Request = c.Request.WithContext(ctx)
	}
	return s.sessions.Get(c.Request, s.sessions.name)
}

// currentSession returns the session of the request, or nil for a visitor. A request that an open
// page sends by itself does not keep the session alive.
func (s *site) currentSession(c *gin.Context) (*people.Session, error) {
	session, err := s.session(c)
	if err != nil {
		return nil, err
	}
	if stored, ok := storedSession(session); ok {
		return &stored, nil
	}
	return nil, nil //nolint:nilnil // documented above
}

// startSession gives the browser the token of a new session, and ends its earlier one.
func (s *site) startSession(c *gin.Context, token string) error {
	session, err := s.session(c)
	session.ID, session.IsNew = token, true
	return cmp.Or(session.Save(c.Request, c.Writer), err)
}

// renewSession gives the browser the new token of its session.
func (s *site) renewSession(c *gin.Context, token string) error {
	session, err := s.session(c)
	session.ID = token
	return cmp.Or(session.Save(c.Request, c.Writer), err)
}

// endSession signs out, also when the session has already ended.
func (s *site) endSession(c *gin.Context) error {
	session, err := s.session(c)
	if err != nil {
		return err
	}
	session.Options.MaxAge = -1
	return session.Save(c.Request, c.Writer)
}

// lookupSession returns the session that requireSession or recognize has found, if any.
func lookupSession(c *gin.Context) (people.Session, bool) {
	value, _ := c.Get(sessionContextKey)
	session, ok := value.(people.Session)
	return session, ok
}

// sessionFrom returns the signed-in user's session. It panics outside requireSession.
func sessionFrom(c *gin.Context) people.Session {
	return c.MustGet(sessionContextKey).(people.Session)
}

// userHeader names the user of an open page, which HTMX sends with every request of the page.
const userHeader = "Portal-User"

// isOfAnother reports whether the request comes from an open page of another user than the one who
// has signed in since, in another tab. Nothing may be shown or changed there in the wrong account.
func isOfAnother(c *gin.Context, session people.Session) bool {
	user := c.GetHeader(userHeader)
	return user != "" && user != session.UserID.String()
}

// background marks the requests of a route that open pages poll.
func background(c *gin.Context) { c.Set(backgroundKey, true) }

// clientOf returns the client of the request without its device.
func clientOf(c *gin.Context) people.Client {
	return people.Client{Address: middleware.ClientOf(c).String(), UserAgent: c.Request.UserAgent()}
}

// owns reports whether the user of the session is an owner, who may also invite and remove people,
// change roles, and change settings that apply to everyone in the account.
func owns(session people.Session) bool { return session.Role == people.RoleOwner }

// actorOf returns the signed-in user as the actor of an activity.
func actorOf(c *gin.Context) record.Actor {
	return record.UserActor(sessionFrom(c).UserID, middleware.ClientOf(c).String())
}

// newClient returns the client of a sign-in. Its device is zero if the browser is unknown.
func (s *site) newClient(c *gin.Context) people.Client {
	client := clientOf(c)
	s.cookies.read(c, deviceCookie, &client.Device)
	return client
}

// setFlash stores a message for the next full page, in place of an earlier one. It reports the
// result of an action after a redirect, and never holds a secret, because a cookie carries it. A
// message that does not fit into a cookie is dropped, and the error is logged.
func (s *site) setFlash(c *gin.Context, message string) {
	flash := s.cookies.get(c, flashCookie)
	clear(flash.Values)
	flash.AddFlash(message, flashKey(c))
	if err := flash.Save(c.Request, c.Writer); err != nil {
		_ = c.Error(err)
	}
}

// takeFlash deletes the stored message and returns it, or "" if there is none or it is another
// session's.
func (s *site) takeFlash(c *gin.Context) (message string) {
	flash := s.cookies.get(c, flashCookie)
	if flash.IsNew {
		return ""
	}
	for _, stored := range flash.Flashes(flashKey(c)) {
		message, _ = stored.(string)
	}
	s.cookies.drop(c, flashCookie)
	return message
}

// flashKey returns the key of the session's messages: on a shared browser the next user must not
// read them.
func flashKey(c *gin.Context) string {
	session, _ := lookupSession(c)
	return session.ID.String()
}

// returnPath returns the path to open after sign-in: the requested page or, for a form or a
// download, the page of its section.
func (s *site) returnPath(c *gin.Context) string {
	if c.Request.Method == http.MethodGet && slices.Contains(s.pages, c.FullPath()) {
		address, _ := unmarked(c.Request.URL)
		return s.destination(address)
	}
	return s.section(c)
}

// section returns the path of the page of the request's section.
func (s *site) section(c *gin.Context) string {
	section, _, _ := strings.Cut(strings.TrimPrefix(c.Request.URL.Path, "/"), "/")
	return s.destination("/" + section)
}

// maxDestination limits an address in bytes, because a cookie has 4 KiB and may hold it.
const maxDestination = 1024

// destination returns next if it is the address of a page of the portal, and the first page
// otherwise. It builds a new URL from the path and the query, so that no browser can find another
// host in it.
func (s *site) destination(next string) string {
	address, err := url.Parse(next)
	if err != nil || len(next) > maxDestination || strings.Contains(next, "\\") {
		return homePath
	}
	local := url.URL{
		Path: path.Clean("/" + address.Path), RawQuery: address.RawQuery, ForceQuery: address.ForceQuery,
		Fragment: address.Fragment, RawFragment: address.RawFragment,
	}
	if *address != local {
		return homePath
	}
	for _, pattern := range s.pages {
		if matchesRoute(pattern, address.Path) {
			if built := (&url.URL{Path: address.Path, RawQuery: address.Query().Encode()}).String(); len(built) <= maxDestination {
				return built
			}
			return homePath
		}
	}
	return homePath
}

// paramSignedIn marks the address that a sign-in leads to. A visitor who opens it has a browser
// that did not keep the cookie.
const paramSignedIn = "signed-in"

// marked returns the address of a page with the mark of a sign-in. A browser that has a cookie from
// an earlier sign-in keeps cookies, so its addresses stay without the mark.
func (s *site) marked(c *gin.Context, address string) string {
	marked, err := url.Parse(address)
	if err != nil || s.newClient(c).Device != (people.Device{}) {
		return address
	}
	query := marked.Query()
	query.Set(paramSignedIn, "yes")
	marked.RawQuery = query.Encode()
	return marked.String()
}

// unmarked returns the address of a request without the mark of a sign-in, and whether it had one.
func unmarked(address *url.URL) (plain string, had bool) {
	query := address.Query()
	if !query.Has(paramSignedIn) {
		return address.RequestURI(), false
	}
	query.Del(paramSignedIn)
	return (&url.URL{Path: address.Path, RawQuery: query.Encode()}).String(), true
}

// matchesRoute reports whether path matches the pattern of a route, where ":id" matches an id.
func matchesRoute(pattern, path string) bool {
	wanted, segments := strings.Split(pattern, "/"), strings.Split(path, "/")
	return slices.EqualFunc(wanted, segments, func(want, segment string) bool {
		if want == ":id" {
			_, ok := parseID(segment)
			return ok
		}
		return want == segment
	})
}
