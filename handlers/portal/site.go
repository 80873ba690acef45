package portal

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/middleware"
	"portal/handlers/problem"
	"portal/models/value"
	"portal/templates"
)

const (
	// maxActions limits how many actions run at once, and apart from them how many wait for
	// password hashing, and how many for the OpenID Connect provider.
	maxActions = 256
	// maxReads limits how many requests of one user that change nothing run at once. The tabs
	// of a browser share them, so that requests wait for up to readWait.
	maxReads = 4
	readWait = time.Second
)

// changeRate limits the changes of one user on this instance, and accountChangeRate those of all
// users of an account, because each adds a row to the activity log for 400 days. One user alone
// cannot use up the changes of the others. Generations count on their own, so that a script that
// generates keys does not keep the account from other changes. Revocations do not count, because
// nothing may delay them: an account can revoke no more keys than it has generated.
var (
	changeRate        = middleware.RateLimit{PerSecond: 1, Burst: 120}
	accountChangeRate = middleware.RateLimit{PerSecond: 3, Burst: 360}
	generationRate    = middleware.RateLimit{PerSecond: 1, Burst: 300} // of each account
)

// site has what every page needs: the settings, the sessions and the templates.
type site struct {
	baseURL        *url.URL // the public URL
	now            func() time.Time
	timeout        time.Duration // of each use of the database
	product        string
	operatorNotice string // stands above every page; may be empty
	support        string // URL that leads users to help; may be empty
	provider       string // name of the OpenID Connect provider; empty: none
	passwordsOff   bool   // nobody signs in with a password
	callsOn        bool
	mailsOn        bool
	webhooksOn     bool

	sessions       *sessionStore
	cookies        cookies
	templates      *templates.Templates
	actions        middleware.Slots
	passwords      middleware.Slots // of actions that wait for password hashing
	waiting        middleware.Slots // of actions that wait for the OpenID Connect provider
	exports        *exports
	reads          *middleware.SlotsOf // of each user
	changes        *middleware.Limiter // of each user
	accountChanges *middleware.Limiter // of the users of each account
	generations    *middleware.Limiter // of keys, in each account
	brand          templates.Brand
	pages          []string // patterns of the paths that sign-in may lead back to
}

// url returns the public URL of a path.
func (s *site) url(path ...string) string { return s.baseURL.JoinPath(path...).String() }

// withDeadline calls f while the request's context has the database's time limit.
func (s *site) withDeadline(c *gin.Context, f func()) {
	whole := c.Request.Context()
	ctx, cancel := context.WithTimeout(whole, s.timeout)
	defer cancel()
	c.Request = c.Request.WithContext(ctx)
	f()
	c.Request = c.Request.WithContext(whole)
}

// These limit the size of a form in bytes: of a visitor, and of a signed-in user. Valid forms have
// a few hundred. Larger ones are read too, so that the page can show an overlong field again with
// its error.
const (
	maxVisitorForm = 64 << 10
	maxForm        = 256 << 10
)

// The parameters that select a page of a list: the id of the last entry on the previous page.
const (
	paramAfter  = "after"
	paramBefore = "before" // in lists with the newest entry first
)

// These select what a list shows: paramShow by a name, paramKey by the id of a key.
const (
	paramShow = "show"
	paramKey  = "key"
)

// parseForm reads the form before the handler runs. Otherwise the fields of an unreadable form
// would seem empty.
func parseForm(c *gin.Context) error {
	if err := middleware.CheckCoding(c); err != nil {
		return err
	}
	limit := int64(maxVisitorForm)
	if _, signedIn := c.Get(sessionContextKey); signedIn {
		limit = maxForm
	}
	if c.Request.ContentLength > limit {
		return problem.PayloadTooLarge(limit)
	}
	c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, limit)
	err := c.Request.ParseForm()
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return problem.PayloadTooLarge(limit)
	}
	if err != nil {
		return problem.InvalidRequest("The form could not be read. Go back and try again.")
	}
	return nil
}

// idOf returns the id in the path, which [site.handle] has checked.
func idOf(c *gin.Context) uuid.UUID {
	id, _ := parseID(c.Param("id"))
	return id
}

// parseID parses an id other than the zero id.
func parseID(text string) (uuid.UUID, bool) {
	id, ok := value.ParseID(text)
	return id, ok && id != uuid.Nil
}

// pageAfter returns the address of the page of a list that begins after or, with the newest entry
// first, before the entry with this id. For the zero id, which the last page has, it is empty.
func pageAfter(path, param string, last uuid.UUID) string {
	if last == uuid.Nil {
		return ""
	}
	return path + "?" + url.Values{param: {last.String()}}.Encode()
}

// queryID returns an id in the query string, or the zero id if there is none.
func queryID(c *gin.Context, name string) (uuid.UUID, error) {
	text, found := c.GetQuery(name)
	id, ok := parseID(text)
	if found && !ok {
		return uuid.Nil, problem.NotFound()
	}
	return id, nil
}
