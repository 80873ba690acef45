package portal

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"portal/handlers/middleware"
	"portal/templates"
)

// negotiate sends the page as Markdown to a client that prefers it, and otherwise as HTML.
func (s *site) negotiate(c *gin.Context, page templates.Page, markdown func() ([]byte, error)) error {
	c.Writer.Header().Add("Vary", "Accept")
	if prefersMarkdown(c) {
		return sendMarkdown(c, markdown)
	}
	return s.sendPage(c, http.StatusOK, page)
}

func sendMarkdown(c *gin.Context, markdown func() ([]byte, error)) error {
	text, err := markdown()
	if err != nil {
		return err
	}
	sendAs(c, http.StatusOK, "text/markdown; charset=utf-8", text) // RFC 7763
	return nil
}

// prefersMarkdown reports whether the client accepts Markdown at least as much as HTML (RFC 9110,
// section 12.5.1). If it accepts both equally, it must name Markdown, because browsers and curl
// accept everything.
func prefersMarkdown(c *gin.Context) bool {
	accepted := middleware.AcceptedBy(c.Request)
	markdown, named := accepted.Quality("text/markdown")
	html, _ := accepted.Quality("text/html")
	return markdown > html || named && markdown == html && markdown > 0
}
