package api

import "strings"

// The paths that several files name. The discovery documents name the last two.
const (
	authorizePath       = "/api/authorize"
	authorizeWidgetPath = "/widget/authorize"
	leaksPath           = "/leaks"
	operatorPath        = "/operator"
	descriptionPath     = "/openapi.json"
	signingKeysPath     = "/.well-known/jwks.json"
	introspectionPath   = "/api/widget/introspect"
)

// Owns reports whether path is under /api, /operator, /leaks or /widget/authorize, where this
// package also handles paths without a route. So it is false for the portal's /api-keys.
func Owns(path string) bool {
	return under(path, "/api") || under(path, operatorPath) || under(path, leaksPath) || under(path, authorizeWidgetPath)
}

// AnyMethod reports whether path answers every method like GET. A gateway that calls such a path,
// to learn whether it may forward a request, may use the method of that request and append its
// path, which is ignored.
func AnyMethod(path string) bool {
	return under(path, authorizePath) || under(path, authorizeWidgetPath)
}

// under reports whether path is base or below it.
func under(path, base string) bool {
	rest, found := strings.CutPrefix(path, base)
	return found && (rest == "" || rest[0] == '/')
}
