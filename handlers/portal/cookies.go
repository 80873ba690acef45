package portal

import (
	"net/http"
	"time"

	"github.com/gorilla/securecookie"
	"github.com/gorilla/sessions"
)

// cookies sets the portal's cookies, all with the same attributes.
type cookies struct{ secure bool }

// name returns the browser's name for a cookie. Under https its prefix makes the browser accept
// the cookie from this host alone.
func (k cookies) name(name string) string {
	if k.secure {
		return "__Host-" + name
	}
	return name
}

// options returns the attributes of a cookie. A maxAge of zero keeps the cookie until the browser
// closes, a negative one deletes it.
func (k cookies) options(maxAge int) sessions.Options {
	return sessions.Options{
		Path: "/", MaxAge: maxAge, HttpOnly: true, Secure: k.secure, SameSite: http.SameSiteLaxMode,
	}
}

func (k cookies) set(w http.ResponseWriter, name, value string, maxAge int) {
	options := k.options(maxAge)
	http.SetCookie(w, sessions.NewCookie(k.name(name), value, &options))
}

// newCodecs returns one codec for each key. They refuse values older than age.
func newCodecs(keys [][]byte, age time.Duration) []securecookie.Codec {
	var codecs []securecookie.Codec
	for _, key := range keys {
		codec := securecookie.New(key, nil)
		codec.MaxAge(int(age / time.Second))
		codecs = append(codecs, codec)
	}
	return codecs
}
