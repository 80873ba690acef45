package portal

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/munnerz/goautoneg"

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
	ranges := goautoneg.ParseAccept(strings.Join(c.Request.Header.Values("Accept"), ","))
	markdown, named := quality(ranges, "markdown")
	html, _ := quality(ranges, "html")
	return markdown > html || named && markdown == html && markdown > 0
}

// quality returns how much a client accepts text of a subtype, and whether it names the subtype.
// The most specific range decides.
func quality(ranges []goautoneg.Accept, subtype string) (q float64, named bool) {
	for i, media := range []string{"text/" + subtype, "text/*", "*/*"} {
		for _, r := range ranges {
			if strings.EqualFold(r.Type+"/"+r.SubType, media) {
				return r.Q, i == 0
			}
		}
	}
	return 0, false
}
