package portal

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"portal/handlers/middleware"
	"portal/handlers/problem"
	"portal/models/value"
	"portal/templates"
)

// NotFound writes the error page for an unknown path. Programs that copy or shorten links add a
// slash to them, so a page's path that ends in one leads to the page.
func (s *site) NotFound(c *gin.Context) {
	path, slash := strings.CutSuffix(c.Request.URL.EscapedPath(), "/")
	reads := c.Request.Method == http.MethodGet || c.Request.Method == http.MethodHead
	// "//host" would lead to another site.
	if !slash || path == "" || strings.Contains(path, "//") || !reads {
		s.Render(c, problem.NotFound())
		return
	}
	if c.Request.URL.RawQuery != "" {
		path += "?" + c.Request.URL.RawQuery
	}
	_ = s.redirect(c, path)
}

// MethodNotAllowed writes the error page for a method that the address does not support. A browser
// that opens the address of a form goes to the form's page.
func (s *site) MethodNotAllowed(c *gin.Context) {
	if c.Request.Method != http.MethodGet && c.Request.Method != http.MethodHead {
		s.Render(c, problem.MethodNotAllowed())
		return
	}
	page := "/" + strings.SplitN(c.Request.URL.Path, "/", 3)[1]
	if !slices.Contains(s.pages, page) {
		page = homePath
	}
	_ = s.redirect(c, page)
}

// errorTitles are the headings of the error pages.
var errorTitles = map[int]string{
	http.StatusBadRequest:            "Invalid form",
	http.StatusUnauthorized:          "Your session has ended",
	http.StatusForbidden:             "Request refused",
	http.StatusNotFound:              "Page not found",
	http.StatusConflict:              "This can’t be done right now",
	http.StatusRequestEntityTooLarge: "The form is too large",
	http.StatusTooManyRequests:       "Too many requests",
	http.StatusServiceUnavailable:    "The portal is unavailable",
}

// errorMessages replace the messages of package problem that address API clients.
var errorMessages = map[string]string{
	problem.CodeAgentNotFound:   "Agent not found in this account.",
	problem.CodeKeyNotFound:     "This key doesn’t exist in your account. It may have been removed.",
	problem.CodePayloadTooLarge: "The text is too long. Shorten it, then try again.",
	problem.CodeUnavailable: "Something isn’t working on our side. Your request wasn’t the problem. " +
		"Try again in a moment.",
}

// refusalOf returns the problem that a form explains beside its fields, if err is one of these
// errors or a limit of sign-ins, whose response says when to try again.
func refusalOf(c *gin.Context, err error, explained ...error) (problem.Problem, bool) {
	_, limited := errors.AsType[*value.SignInLimitError](err)
	if !limited && !slices.ContainsFunc(explained, func(one error) bool { return errors.Is(err, one) }) {
		return problem.Problem{}, false
	}
	refusal := problem.From(err)
	setRetryAfter(c, refusal)
	return refusal, true
}

func errorPage(c *gin.Context, shown problem.Problem) templates.ErrorPage {
	page := templates.ErrorPage{Status: shown.Status, Title: errorTitles[shown.Status], Message: shown.Message}
	if page.Title == "" {
		page.Title = "Something went wrong"
	}
	if message := errorMessages[shown.Code]; message != "" {
		page.Message = message
	}
	switch {
	case shown.Code != problem.CodeNotFound:
	case strings.HasPrefix(c.FullPath(), homePath+"/:id"): // it is no id
		page.Message = errorMessages[problem.CodeKeyNotFound]
	case c.FullPath() == "":
		page.Message = "There is no page at this address."
	}
	if shown.Status == http.StatusForbidden && c.Request.Method == http.MethodGet {
		switch path, _, _ := strings.Cut(c.FullPath(), "/:"); path {
		case settingsPath:
			page.Title, page.Message = "Only owners can open Settings", "Ask an owner to change the settings of this account."
		case webhooksPath:
			page.Title, page.Message = "Only owners can open Webhooks", "Ask an owner to add an endpoint or to change one."
		}
	}
	retryable := shown.Status == http.StatusTooManyRequests || shown.Status >= http.StatusInternalServerError
	switch {
	case !retryable:
	case c.Request.Method == http.MethodGet:
		page.Again = c.Request.URL.RequestURI()
	case c.Request.Method == http.MethodPost:
		page.Retry = retryOf(c)
	}
	return page
}

// retryOf returns the request's form without its secrets, or nil if it cannot be read.
func retryOf(c *gin.Context) *templates.Retry {
	// The request may have failed before the form was read.
	if err := parseForm(c); err != nil {
		return nil
	}
	return templates.NewRetry(c.Request.URL.RequestURI(), c.Request.PostForm)
}

// Render writes err as an error page, or for HTMX as an alert. It logs the cause of a 5xx.
func (s *site) Render(c *gin.Context, err error) {
	shown := problem.From(err)
	setRetryAfter(c, shown)
	page := errorPage(c, shown)
	if shown.Status >= http.StatusInternalServerError {
		_ = c.Error(err) // for the log
		page.RequestID = middleware.RequestIDOf(c)
	}
	if err := s.sendError(c, page); err != nil {
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

func (s *site) sendError(c *gin.Context, page templates.ErrorPage) error {
	if !askedByHTMX(c) {
		s.recognize(c, page.Status)
		return s.sendPage(c, page.Status, page)
	}
	html, err := s.templates.Fragment(templates.Failure{Message: page.Message, RequestID: page.RequestID}, "")
	if err != nil {
		return err
	}
	send(c, page.Status, html)
	return nil
}

// recognize looks up the session for an error page outside requireSession, so that the page of a
// signed-in user keeps its navigation. After a 5xx the lookup would probably fail too, so recognize
// skips it.
func (s *site) recognize(c *gin.Context, status int) {
	if _, ok := lookupSession(c); ok || status >= http.StatusInternalServerError {
		return
	}
	session, err := s.currentSession(c)
	if err != nil {
		_ = c.Error(err) // the page works without a session
	} else if session != nil {
		c.Set(sessionContextKey, *session)
	}
}

// inputErrors returns the errors about input in err, which may join several.
func inputErrors(err error) (found []*value.InvalidError) {
	joined, ok := errors.AsType[interface {
		error
		Unwrap() []error
	}](err)
	if !ok {
		if invalid, ok := errors.AsType[*value.InvalidError](err); ok {
			found = append(found, invalid)
		}
		return found
	}
	for _, one := range joined.Unwrap() {
		found = append(found, inputErrors(one)...)
	}
	return found
}
