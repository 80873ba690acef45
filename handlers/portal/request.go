package portal

import (
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
	"portal/models"
)

// maxForm limits the size of a form in bytes. Valid forms have a few hundred. Larger ones are read
// too, so that the page can show an overlong field again with its error.
const maxForm = 256 << 10

// The parameters that select a page of a list: the id of the last entry on the previous page.
const (
	paramAfter  = "after"
	paramBefore = "before" // in lists with the newest entry first
)

// parseForm reads the form before the handler runs. Otherwise the fields of an unreadable form
// would seem empty.
func parseForm(c *gin.Context) error {
	c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, maxForm)
	err := c.Request.ParseForm()
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return problem.PayloadTooLarge(maxForm)
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
	id, ok := models.ParseID(text)
	return id, ok && id != uuid.Nil
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
