package portal

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"portal/handlers/middleware"
	"portal/handlers/problem"
	"portal/templates"
)

// reply is what an action answers with, in both forms. Which of them is sent is
// decided here: no handler looks at how it was asked.
type reply struct {
	status   int                            // zero: 200; 204: the fragment has not changed
	notice   string                         // what the action did: in a live region, or after the redirect
	fragment templates.Fragment             // what HTMX puts into the page
	page     func() (templates.Page, error) // the whole page for a browser
	location string                         // or where a browser goes instead (303)
	reveals  bool                           // a key is shown
}

// reply sends the answer in the form in which it was asked for.
func (p *Portal) reply(c *gin.Context, r reply) error {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	c.Set(revealsKey, r.reveals)
	if askedByHTMX(c) {
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
		p.hasRevealed(c)
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

// redirect sends the browser on to another page.
func (p *Portal) redirect(c *gin.Context, location string) error {
	if askedByHTMX(c) {
		// A status that is followed within the request would put the other
		// page into this one.
		c.Header("HX-Redirect", location)
		send(c, http.StatusOK, nil)
		return nil
	}
	c.Header("Cache-Control", "no-store")
	c.Redirect(http.StatusSeeOther, location)
	return nil
}

// Render tells whoever asked what became of the request: as a page, or in the
// alert of the page that the request came from, of which nothing else changes.
// It leaves the cause of a 5xx for the log.
func (p *Portal) Render(c *gin.Context, err error) {
	told := problem.From(err)
	if seconds := told.RetryAfterSeconds(); seconds != "" {
		c.Header("Retry-After", seconds)
	}
	page := errorPage(c, told)
	if told.Status >= http.StatusInternalServerError {
		_ = c.Error(err) // returns what it was given
		page.RequestID = middleware.RequestIDOf(c)
	}
	if err := p.sendError(c, page); err != nil {
		_ = c.Error(err)
		c.Header("Cache-Control", "no-store")
		c.String(http.StatusInternalServerError, page.Message)
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
	frame := templates.Frame{Now: p.now().UTC().Format(time.RFC3339)}
	// An error page leaves the message to the page after it: it may answer a mere subresource.
	if status < http.StatusBadRequest {
		frame.Notice = p.takeFlash(c)
	}
	if session, ok := sessionOf(c); ok {
		frame.Account, frame.Email = session.AccountName, session.Email
	}
	html, err := p.templates.Page(frame, page)
	if err != nil {
		return err
	}
	if !Reveals(c) {
		p.forgetRevealed(c)
	}
	send(c, status, html)
	return nil
}

// send writes an answer that belongs to one person at one moment.
func send(c *gin.Context, status int, html []byte) {
	c.Header("Cache-Control", "no-store")
	c.Header("Vary", "HX-Request")
	c.Data(status, "text/html; charset=utf-8", compressed(c, html))
}

// sendNothing answers that nothing has changed.
func sendNothing(c *gin.Context) {
	c.Header("Cache-Control", "no-store")
	c.Status(http.StatusNoContent)
	c.Writer.WriteHeaderNow()
}

func askedByHTMX(c *gin.Context) bool { return c.GetHeader("HX-Request") == "true" }

// interrupted tells a request that comes from a page, and was to change
// something or the page, from one that opens a page.
func interrupted(c *gin.Context) bool {
	return askedByHTMX(c) || c.Request.Method != http.MethodGet && c.Request.Method != http.MethodHead
}

// present is the page of a reply that is at hand already.
func present(page templates.Page) func() (templates.Page, error) {
	return func() (templates.Page, error) { return page, nil }
}
