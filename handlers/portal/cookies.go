package portal

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
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

// The lifetimes of cookies.
const (
	flashAge   = time.Minute      // how late a message can appear after an interrupted redirect
	pendingAge = 10 * time.Minute // of a sign-in that waits for its second step
	// deviceAge is that of the cookie that identifies the device of a user who has signed in.
	// It gives no access, so sign-out keeps it.
	deviceAge = 365 * 24 * time.Hour
	// authRequestAge is how long the user may take at the provider.
	authRequestAge = 10 * time.Minute
)

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
