package portal

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
	"portal/templates"
)

// NotFound writes the error page for an unknown address.
func (p *Portal) NotFound(c *gin.Context) { p.Render(c, problem.NotFound()) }

// MethodNotAllowed writes the error page for a method that the address does not support.
func (p *Portal) MethodNotAllowed(c *gin.Context) { p.Render(c, problem.MethodNotAllowed()) }

// errorTitles are the headings of the error pages.
var errorTitles = map[int]string{
	http.StatusBadRequest:            "Invalid form",
	http.StatusUnauthorized:          "Your session has ended",
	http.StatusForbidden:             "Request refused",
	http.StatusNotFound:              "Page not found",
	http.StatusMethodNotAllowed:      "This page can’t be opened directly",
	http.StatusConflict:              "This can’t be done right now",
	http.StatusRequestEntityTooLarge: "The form is too large",
	http.StatusTooManyRequests:       "Too many requests",
	http.StatusServiceUnavailable:    "The portal is unavailable",
}

// errorMessages replace the messages of package problem that address API clients.
var errorMessages = map[string]string{
	problem.CodeAgentNotFound:    "Agent not found in this account.",
	problem.CodeMethodNotAllowed: "This address only accepts forms. Go back and use the buttons on the page.",
	problem.CodePayloadTooLarge:  "The text is too long. Shorten it, then try again.",
	problem.CodeUnavailable: "The portal can’t reach its database right now. Your request is fine. " +
		"Try again in a moment.",
}

func errorPage(c *gin.Context, shown problem.Problem) templates.ErrorPage {
	page := templates.ErrorPage{Status: shown.Status, Title: errorTitles[shown.Status], Message: shown.Message}
	if page.Title == "" {
		page.Title = "Something went wrong"
	}
	if message := errorMessages[shown.Code]; message != "" {
		page.Message = message
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
