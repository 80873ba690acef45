package portal

import (
	"errors"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
	"portal/models"
	"portal/static"
)

// maxForm is the largest form that is read, in bytes. Ours have a few hundred, and
// the rule of a field refuses what is too long for it: but only a form that is
// read can be answered with what was typed.
const maxForm = 256 << 10

// handler answers one action; an error that it returns is rendered for it.
type handler func(*gin.Context) error

// handle makes a handler one of gin's.
func (p *Portal) handle(h handler) gin.HandlerFunc {
	return func(c *gin.Context) {
		err := parseForm(c)
		if err == nil {
			err = h(c)
		}
		if err != nil {
			p.Render(c, err)
		}
	}
}

// parseForm reads the form before the handler does: a field of a form that
// cannot be read would look empty.
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

// idOf returns the id in the address. What is not an id is no one's, like an id
// that no one has.
func idOf(c *gin.Context) (uuid.UUID, error) {
	id, ok := parseID(c.Param("id"))
	if !ok {
		return uuid.Nil, problem.NotFound()
	}
	return id, nil
}

// parseID takes the id of something that can be there.
func parseID(text string) (uuid.UUID, bool) {
	id, ok := models.ParseID(text)
	return id, ok && id != uuid.Nil
}

func (p *Portal) showAsset(c *gin.Context) error {
	asset, ok := p.assets.Find(strings.TrimPrefix(c.Request.URL.Path, static.Prefix))
	if !ok {
		return problem.NotFound()
	}
	asset.ServeHTTP(c.Writer, c.Request)
	return nil
}
