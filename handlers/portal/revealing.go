package portal

import (
	"crypto/rand"

	"github.com/gin-gonic/gin"
)

// Going back to a page that showed a key must not show it again. Browsers keep
// whole pages for going back, over HTTPS even some that ask them not to: Chromium
// lets go of such a page when an HttpOnly cookie changes, others when they are
// told to clear their cache. So a page with a key sets a cookie, and the next page
// takes it away and tells the browser to clear its cache. The cookie says nothing
// but that.
const revealedCookie = "revealed"

// hasRevealed marks the browser as one that may keep a page with a key.
func (p *Portal) hasRevealed(c *gin.Context) {
	p.cookies.set(c.Writer, revealedCookie, rand.Text(), 0)
}

// forgetRevealed makes a browser that may keep a page with a key let go of it.
func (p *Portal) forgetRevealed(c *gin.Context) {
	if _, err := c.Request.Cookie(p.cookies.name(revealedCookie)); err != nil {
		return
	}
	p.cookies.set(c.Writer, revealedCookie, "", -1)
	c.Header("Clear-Site-Data", `"cache"`)
}

const revealsKey = "portal.reveals"

// Reveals reports whether the answer shows a key: such an answer is not compressed,
// because the length of what is compressed tells of its content (BREACH).
func Reveals(c *gin.Context) bool { return c.GetBool(revealsKey) }
