package api

import (
	"slices"
	"strings"
)

// The paths that several files name. The discovery documents name the last two.
const (
	authorizePath       = "/api/authorize"
	authorizeWidgetPath = "/widget/authorize"
	leaksPath           = "/leaks"
	eventsPath          = "/livekit/webhook"
	operatorPath        = "/operator"
	descriptionPath     = "/openapi.json"
	introspectionPath   = "/api/widget/introspect"
	serverMetadataPath  = "/.well-known/oauth-authorization-server"
	openIDMetadataPath  = "/.well-known/openid-configuration"
	tokenPath           = "/oauth/token" //nolint:gosec // no credentials
)

// The paths that other packages name.
const (
	HealthPath      = "/healthz"
	ReadinessPath   = "/readyz"
	SigningKeysPath = "/.well-known/jwks.json"
)

// Owns reports whether path is one that programs request, or under one. This package also handles
// those without a route. So it is false for the portal's /api-keys. A client whose base URL ends in
// a slash sends two at the beginning.
func Owns(path string) bool {
	path = "/" + strings.TrimLeft(path, "/")
	return slices.ContainsFunc([]string{
		"/api", operatorPath, leaksPath, "/widget", "/livekit", "/oauth", "/.well-known", descriptionPath, HealthPath, ReadinessPath,
	}, func(base string) bool { return under(path, base) })
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
