package api

import (
	_ "embed"
	"net/http"

	"github.com/gin-gonic/gin"
)

// cacheDocument allows caching for five minutes. Five minutes after a rotation of the secret, all
// verifiers have the new signing key.
const cacheDocument = "public, max-age=300"

// setPublicHeaders sets the headers of a public document. Caches may store it, and pages of any
// origin may read it.
func setPublicHeaders(c *gin.Context) {
	c.Header("Cache-Control", cacheDocument)
	c.Header("Access-Control-Allow-Origin", "*")
}

//go:embed openapi.json
var description []byte

//go:embed CHANGELOG.md
var changelog string

// OpenAPI returns the OpenAPI document of the API.
func OpenAPI() []byte { return description }

// Changelog returns the changes of the API, as Markdown.
func Changelog() string { return changelog }

// showDescription returns the OpenAPI document.
func (a *API) showDescription(c *gin.Context) error {
	setPublicHeaders(c)
	c.Data(http.StatusOK, "application/json; charset=utf-8", description)
	return nil
}

// showSigningKeys returns the public keys that verify widget tokens, as a JWK set (RFC 7517,
// section 5).
func (a *API) showSigningKeys(c *gin.Context) error {
	setPublicHeaders(c)
	c.PureJSON(http.StatusOK, a.tokens.JWKS())
	return nil
}
