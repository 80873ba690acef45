package portal

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"portal/static"
	"portal/templates"
)

// reply is the response of an action as a fragment and as a page. [site.reply] chooses between
// them, so that no handler looks at the request headers.
type reply struct {
	status int // zero: 200; 204: the fragment has not changed
	// What the action did; with a location or a fragment only.
	notice   string
	fragment templates.Fragment             // for HTMX
	page     func() (templates.Page, error) // for a browser
	// For a browser in place of a page: a redirect (303).
	location string
	address  string // for HTMX: the new address of the page
	reveals  bool   // it shows a key
	// For HTMX: what happened, for elements that refresh after it.
	event string
}

// reply sends the fragment to HTMX, and the page or the redirect to a browser.
func (s *site) reply(c *gin.Context, r reply) error {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	if askedByHTMX(c) {
		if r.event != "" {
			c.Header("HX-Trigger", r.event)
		}
		if r.address != "" {
			c.Header("HX-Replace-Url", r.address)
		}
		if r.status == http.StatusNoContent {
			send(c, r.status, nil)
			return nil
		}
		html, err := s.templates.Fragment(r.fragment, r.notice)
		if err != nil {
			return err
		}
		send(c, r.status, html)
		return nil
	}
	if r.location != "" {
		return s.redirectWith(c, r.location, r.notice)
	}
	page, err := r.page()
	if err != nil {
		return err
	}
	if r.reveals {
		if err := s.cookies.put(c, revealedCookie, rand.Text()); err != nil {
			return err
		}
	}
	return s.sendPage(c, r.status, page)
}

// redirectWith redirects to location, where the page shows the notice if there is one.
func (s *site) redirectWith(c *gin.Context, location, notice string) error {
	if notice != "" {
		s.setFlash(c, notice)
	}
	return s.redirect(c, location)
}

// redirect redirects a browser (303), or makes HTMX load the page.
func (s *site) redirect(c *gin.Context, location string) error {
	if askedByHTMX(c) {
		// HTMX would follow a 303 itself and put the other page into this one.
		c.Header("HX-Redirect", location)
		send(c, http.StatusOK, nil)
		return nil
	}
	c.Header("Cache-Control", "no-store")
	c.Redirect(http.StatusSeeOther, location)
	return nil
}

func (s *site) sendPage(c *gin.Context, status int, page templates.Page) error {
	frame := templates.Frame{
		Brand: s.brand, Product: s.product, Support: s.support, OperatorNotice: s.operatorNotice, Now: s.now().UTC().Format(time.RFC3339),
	}
	// An error page may be the response to an image or a script, so it keeps the flash message.
	if status < http.StatusBadRequest {
		frame.Notice = s.takeFlash(c)
	}
	if session, ok := lookupSession(c); ok {
		frame.Account, frame.User, frame.Email = session.AccountName, session.UserID.String(), session.Email
		frame.Owner, frame.Voice = owns(session), s.callsOn
	}
	html, err := s.templates.Page(frame, page)
	if err != nil {
		return err
	}
	s.forgetRevealed(c)
	send(c, status, html)
	return nil
}

// forgetRevealed makes the browser drop the page with a key that it showed before, because going
// back must not show the key again. Browsers keep whole pages in a back/forward cache, over HTTPS
// even some that are no-store. Chromium drops such a page when an HttpOnly cookie changes, and
// other browsers when a response has Clear-Site-Data. A page with a key is the response to a POST
// and sets the cookie, so only the response to a GET deletes it.
func (s *site) forgetRevealed(c *gin.Context) {
	if c.Request.Method == http.MethodGet && !s.cookies.get(c, revealedCookie).IsNew {
		s.cookies.drop(c, revealedCookie)
		c.Header("Clear-Site-Data", `"cache"`)
	}
}

// send writes HTML that no cache may store.
func send(c *gin.Context, status int, html []byte) {
	sendAs(c, status, "text/html; charset=utf-8", html)
}

func sendAs(c *gin.Context, status int, contentType string, body []byte) {
	c.Header("Cache-Control", "no-store")
	c.Writer.Header().Add("Vary", "HX-Request")
	c.Data(status, contentType, compressed(c, body))
}

func askedByHTMX(c *gin.Context) bool { return c.GetHeader("HX-Request") == "true" }

// interrupted reports whether the request is an action on an open page, rather than a navigation.
func interrupted(c *gin.Context) bool {
	return askedByHTMX(c) || c.Request.Method != http.MethodGet && c.Request.Method != http.MethodHead
}

// present returns the page function of a reply whose page exists already.
func present(page templates.Page) func() (templates.Page, error) {
	return func() (templates.Page, error) { return page, nil }
}

// minCompressed is the minimum length in bytes of a page that is compressed. A shorter page fits
// into one packet anyway.
const minCompressed = 1 << 10

// compressionLevel takes two thirds of the time of the default level, and its result is 3% larger.
// Level 3 saves another tenth of the time, for a result that is 8% larger.
const compressionLevel = 4

// compressors are reused: one takes more memory than most pages.
var compressors = sync.Pool{New: func() any {
	compressor, _ := gzip.NewWriterLevel(nil, compressionLevel) // the level is valid
	return compressor
}}

// compressed returns the page, compressed if the client accepts that, and sets the headers.
//
// It compresses responses to GET only: responses to forms may show a key, and the length of
// compressed text depends on its content.
func compressed(c *gin.Context, html []byte) []byte {
	c.Writer.Header().Add("Vary", "Accept-Encoding")
	if c.Request.Method != http.MethodGet || len(html) < minCompressed || !static.AcceptsGzip(c.Request) {
		return html
	}
	compressor := compressors.Get().(*gzip.Writer)
	defer compressors.Put(compressor)
	var smaller bytes.Buffer
	compressor.Reset(&smaller)
	_, _ = compressor.Write(html) // a buffer accepts every write
	_ = compressor.Close()
	c.Header("Content-Encoding", "gzip")
	return smaller.Bytes()
}

// optionalMoment returns the moment of at, or nil if at is nil.
func optionalMoment(at *time.Time, now time.Time) *templates.Moment {
	if at == nil {
		return nil
	}
	return new(templates.NewMoment(*at, now))
}
