package portal

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
	"github.com/gorilla/securecookie"

	"portal/handlers/deps"
)

// cookie is one of the portal's cookies. Its value is signed, so that nobody can change it, but
// anyone can read it in the browser.
type cookie struct {
	name   string // in the signature
	sent   string // to the browser
	age    time.Duration
	secure bool
	codecs []securecookie.Codec
}

// newCookie returns a cookie that is valid for age. If age is zero, the browser keeps it until it
// closes. Under https the prefix of its name makes the browser accept it from this host alone.
func newCookie(d deps.Deps, name string, age time.Duration) cookie {
	k := cookie{name: name, sent: name, age: age, secure: d.BaseURL.Scheme == "https"}
	if k.secure {
		k.sent = "__Host-" + name
	}
	for _, key := range d.CookieKeys {
		codec := securecookie.New(key, nil)
		codec.MaxAge(int(age / time.Second))
		k.codecs = append(k.codecs, codec)
	}
	return k
}

// set gives the browser the cookie. It returns an error if the value is too long.
func (k cookie) set(c *gin.Context, value any) error {
	text, err := securecookie.EncodeMulti(k.name, value, k.codecs...)
	if err == nil {
		k.send(c, text, int(k.age/time.Second))
	}
	return err
}

// get reads the cookie of the request into value. If the cookie is missing, forged or too old, it
// returns false.
func (k cookie) get(c *gin.Context, value any) bool {
	sent, err := c.Request.Cookie(k.sent)
	return err == nil && securecookie.DecodeMulti(k.name, sent.Value, value, k.codecs...) == nil
}

// drop deletes the cookie in the browser.
func (k cookie) drop(c *gin.Context) { k.send(c, "", -1) }

func (k cookie) send(c *gin.Context, text string, maxAge int) {
	http.SetCookie(c.Writer, &http.Cookie{ //nolint:gosec // Secure follows the scheme of the base URL
		Name: k.sent, Value: text, Path: "/", MaxAge: maxAge, HttpOnly: true, Secure: k.secure, SameSite: http.SameSiteLaxMode,
	})
}

// flashAge limits how late a flash message can appear after an interrupted redirect.
const flashAge = time.Minute

// flash is a message that reports the result of an action on the next full page, after a redirect.
// A cookie carries it, so it never holds a secret.
type flash struct {
	Session uuid.UUID // on a shared browser the next user must not read the message
	Message string
}

// setFlash stores a message for the next full page. A message that does not fit into a cookie is
// dropped, and the error is logged.
func (s *site) setFlash(c *gin.Context, message string) {
	session, _ := lookupSession(c)
	if err := s.flash.set(c, flash{session.ID, message}); err != nil {
		_ = c.Error(err)
	}
}

// takeFlash deletes the stored message and returns it, or "" if there is none or it is another
// session's.
func (s *site) takeFlash(c *gin.Context) string {
	var stored flash
	if !s.flash.get(c, &stored) {
		return ""
	}
	s.flash.drop(c)
	if session, _ := lookupSession(c); session.ID != stored.Session {
		return ""
	}
	return stored.Message
}
