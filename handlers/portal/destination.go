package portal

import (
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
)

// returnPath returns the path to open after sign-in: the requested page or, for a form or a
// download, the page of its section.
func (s *site) returnPath(c *gin.Context) string {
	if c.Request.Method == http.MethodGet && slices.Contains(s.pages, c.FullPath()) {
		return s.destination(c.Request.URL.RequestURI())
	}
	return s.section(c)
}

// section returns the path of the page of the request's section.
func (s *site) section(c *gin.Context) string {
	section, _, _ := strings.Cut(strings.TrimPrefix(c.Request.URL.Path, "/"), "/")
	return s.destination("/" + section)
}

// maxDestination limits an address in bytes, because a cookie has 4 KiB and may hold it.
const maxDestination = 1024

// destination returns next if it is the address of a page of the portal, and the first page
// otherwise. It builds a new URL from the path and the query, so that no browser can find another
// host in it.
func (s *site) destination(next string) string {
	address, err := url.Parse(next)
	if err != nil || len(next) > maxDestination || address.IsAbs() || address.Host != "" || address.User != nil || address.RawPath != "" ||
		strings.Contains(next, "\\") || !strings.HasPrefix(next, "/") || path.Clean(address.Path) != address.Path {
		return homePath
	}
	for _, pattern := range s.pages {
		if matchesRoute(pattern, address.Path) {
			if built := (&url.URL{Path: address.Path, RawQuery: address.Query().Encode()}).String(); len(built) <= maxDestination {
				return built
			}
			return homePath
		}
	}
	return homePath
}

// matchesRoute reports whether path matches the pattern of a route, where ":id" matches an id.
func matchesRoute(pattern, path string) bool {
	wanted, segments := strings.Split(pattern, "/"), strings.Split(path, "/")
	return slices.EqualFunc(wanted, segments, func(want, segment string) bool {
		if want == ":id" {
			_, ok := parseID(segment)
			return ok
		}
		return want == segment
	})
}
