package middleware

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/munnerz/goautoneg"

	"portal/handlers/problem"
)

// Accepted has the ranges of media types that a client accepts.
type Accepted []goautoneg.Accept

// AcceptedBy returns the ranges in the Accept header.
func AcceptedBy(r *http.Request) Accepted {
	return Accepted(goautoneg.ParseAccept(strings.Join(r.Header.Values("Accept"), ",")))
}

// Quality returns how much the client accepts a media type, such as "text/html", and whether it
// names the type. The most specific range decides (RFC 9110, section 12.5.1).
func (a Accepted) Quality(media string) (q float64, named bool) {
	kind, _, _ := strings.Cut(media, "/")
	for i, media := range []string{media, kind + "/*", "*/*"} {
		for _, r := range a {
			if strings.EqualFold(r.Type+"/"+r.SubType, media) {
				return r.Q, i == 0
			}
		}
	}
	return 0, false
}

// CheckCoding returns a 415 for a body with a content coding, such as gzip. Nothing decodes bodies,
// because a small one may become a large one. Each reader of a body calls it.
func CheckCoding(c *gin.Context) error {
	for _, header := range c.Request.Header.Values("Content-Encoding") {
		for coding := range strings.SplitSeq(header, ",") {
			if coding = strings.TrimSpace(coding); coding != "" && !strings.EqualFold(coding, "identity") {
				c.Header("Accept-Encoding", "identity") // RFC 9110, section 15.5.16
				return problem.UnsupportedCoding()
			}
		}
	}
	return nil
}
