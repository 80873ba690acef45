package portal

import (
	"crypto/rand"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"portal/handlers/middleware"
	"portal/handlers/problem"
	"portal/templates"
)

// reply is the response of an action as a fragment and as a page. [Portal.reply] chooses between
// them, so that no handler looks at the request headers.
type reply struct {
	status   int                            // zero: 200; 204: the fragment has not changed
	notice   string                         // what the action did; with a location or a fragment only
	fragment templates.Fragment             // for HTMX
	page     func() (templates.Page, error) // for a browser
	location string                         // for a browser in place of a page: a redirect (303)
	reveals  bool                           // it shows a key
	event    string                         // for HTMX: what happened, for elements that refresh after it
}

// reply sends the fragment to HTMX, and the page or the redirect to a browser.
func (p *Portal) reply(c *gin.Context, r reply) error {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	if askedByHTMX(c) {
		if r.event != "" {
			c.Header("HX-Trigger", r.event)
		}
		if r.status == http.StatusNoContent {
			sendNothing(c)
			return nil
		}
		html, err := p.templates.Fragment(r.fragment, r.notice)
		if err != nil {
			return err
		}
		send(c, r.status, html)
		return nil
	}
	if r.location != "" {
		return p.redirectWith(c, r.location, r.notice)
	}
	page, err := r.page()
	if err != nil {
		return err
	}
	if r.reveals {
		if err := p.revealed.set(c, rand.Text()); err != nil {
			return err
		}
	}
	return p.sendPage(c, r.status, page)
}

// redirectWith redirects to location, where the page shows the notice if there is one.
func (p *Portal) redirectWith(c *gin.Context, location, notice string) error {
	if notice != "" {
		p.setFlash(c, notice)
	}
	return p.redirect(c, location)
}

// redirect redirects a browser (303), or makes HTMX load the page.
func (p *Portal) redirect(c *gin.Context, location string) error {
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

// plainAddress redirects an address that ends in "?" to the same without it. Browsers add the "?"
// when they send a form without fields, such as Done.
func (p *Portal) plainAddress(c *gin.Context) {
	if c.Request.URL.ForceQuery {
		_ = p.redirect(c, c.Request.URL.EscapedPath())
		c.Abort()
	}
}

// Render writes err as an error page, or for HTMX as an alert. It logs the cause of a 5xx.
func (p *Portal) Render(c *gin.Context, err error) {
	shown := problem.From(err)
	setRetryAfter(c, shown)
	page := errorPage(c, shown)
	if shown.Status >= http.StatusInternalServerError {
		_ = c.Error(err) // for the log
		page.RequestID = middleware.RequestIDOf(c)
	}
	if err := p.sendError(c, page); err != nil {
		_ = c.Error(err)
		c.Header("Cache-Control", "no-store")
		c.String(http.StatusInternalServerError, page.Message)
	}
}

func setRetryAfter(c *gin.Context, shown problem.Problem) {
	if seconds := shown.RetryAfterSeconds(); seconds != "" {
		c.Header("Retry-After", seconds)
	}
}

func (p *Portal) sendError(c *gin.Context, page templates.ErrorPage) error {
	if !askedByHTMX(c) {
		p.recognize(c, page.Status)
		return p.sendPage(c, page.Status, page)
	}
	html, err := p.templates.Fragment(templates.Failure{Message: page.Message, RequestID: page.RequestID}, "")
	if err != nil {
		return err
	}
	send(c, page.Status, html)
	return nil
}

func (p *Portal) sendPage(c *gin.Context, status int, page templates.Page) error {
	frame := templates.Frame{Product: p.name, Now: p.now().UTC().Format(time.RFC3339)}
	// An error page may be the response to an image or a script, so it keeps the flash message.
	if status < http.StatusBadRequest {
		frame.Notice = p.takeFlash(c)
	}
	if session, ok := lookupSession(c); ok {
		frame.Account, frame.Email = session.AccountName, session.Email
	}
	html, err := p.templates.Page(frame, page)
	if err != nil {
		return err
	}
	p.forgetRevealed(c)
	send(c, status, html)
	return nil
}

// forgetRevealed makes the browser drop the page with a key that it showed before, because going
// back must not show the key again. Browsers keep whole pages in a back/forward cache, over HTTPS
// even some that are no-store. Chromium drops such a page when an HttpOnly cookie changes, and
// other browsers when a response has Clear-Site-Data. A page with a key is the response to a POST
// and sets the cookie, so only the response to a GET deletes it.
func (p *Portal) forgetRevealed(c *gin.Context) {
	if c.Request.Method == http.MethodGet && p.revealed.get(c, new(string)) {
		p.revealed.drop(c)
		c.Header("Clear-Site-Data", `"cache"`)
	}
}

// send writes HTML that no cache may store.
func send(c *gin.Context, status int, html []byte) {
	c.Header("Cache-Control", "no-store")
	c.Header("Vary", "HX-Request")
	c.Data(status, "text/html; charset=utf-8", compressed(c, html))
}

// sendNothing writes a 204.
func sendNothing(c *gin.Context) {
	c.Header("Cache-Control", "no-store")
	c.Status(http.StatusNoContent)
	c.Writer.WriteHeaderNow()
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
