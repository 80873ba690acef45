package portal

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
	"portal/templates"
)

// NotFound answers for an address that nothing answers to.
func (p *Portal) NotFound(c *gin.Context) { p.Render(c, problem.NotFound()) }

// MethodNotAllowed answers for an address that is not asked in this way.
func (p *Portal) MethodNotAllowed(c *gin.Context) { p.Render(c, problem.MethodNotAllowed()) }

// errorTitles are the headings of the error pages.
var errorTitles = map[int]string{
	http.StatusBadRequest:            "This form could not be read",
	http.StatusForbidden:             "Request refused",
	http.StatusNotFound:              "Page not found",
	http.StatusMethodNotAllowed:      "This is not a page",
	http.StatusRequestEntityTooLarge: "This form is too large",
	http.StatusTooManyRequests:       "Too many requests",
	http.StatusServiceUnavailable:    "The portal is unavailable",
}

// errorMessages are the portal's own words where the common ones are meant for
// programs.
var errorMessages = map[int]string{
	http.StatusMethodNotAllowed:      "This address takes forms and cannot be opened by itself. Go back and use the buttons of the page.",
	http.StatusRequestEntityTooLarge: "This is far more text than any field takes, so it was not read. Shorten it, then send it again.",
	http.StatusServiceUnavailable: "The portal cannot reach its database at the moment. Nothing is wrong with your request: " +
		"try again in a moment.",
}

func errorPage(c *gin.Context, told problem.Problem) templates.ErrorPage {
	page := templates.ErrorPage{Status: told.Status, Title: errorTitles[told.Status], Message: told.Message}
	if page.Title == "" {
		page.Title = "Something went wrong"
	}
	if message := errorMessages[told.Status]; message != "" {
		page.Message = message
	}
	worthAnother := told.Status == http.StatusTooManyRequests || told.Status >= http.StatusInternalServerError
	switch {
	case !worthAnother:
	case c.Request.Method == http.MethodGet:
		page.Again = c.Request.URL.RequestURI()
	case c.Request.Method == http.MethodPost:
		page.Retry = retryOf(c)
	}
	return page
}
