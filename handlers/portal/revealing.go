package portal

import (
	"crypto/rand"

	"github.com/gin-gonic/gin"
)

// Going back to a page that showed a key must not show the key again. Browsers keep whole pages in
// a back/forward cache, over HTTPS even some that are no-store. Chromium drops such a page when an
// HttpOnly cookie changes, and other browsers when a response has Clear-Site-Data. So a page with
// a key sets a cookie, and the next page deletes the cookie and sends Clear-Site-Data.
const revealedCookie = "revealed"

// markRevealed marks a browser that receives a page with a key.
func (p *Portal) markRevealed(c *gin.Context) {
	p.cookies.set(c.Writer, revealedCookie, rand.Text(), 0)
}

// forgetRevealed makes a marked browser drop the page with the key.
func (p *Portal) forgetRevealed(c *gin.Context) {
	if _, err := c.Request.Cookie(p.cookies.name(revealedCookie)); err != nil {
		return
	}
	p.cookies.set(c.Writer, revealedCookie, "", -1)
	c.Header("Clear-Site-Data", `"cache"`)
}

const revealsKey = "portal.reveals"

// reveals reports whether the response shows a key. Such a response is not compressed, because the
// length of compressed text depends on its content (BREACH).
func reveals(c *gin.Context) bool { return c.GetBool(revealsKey) }
