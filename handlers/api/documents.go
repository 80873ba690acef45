package api

import (
	_ "embed"
	"net/http"

	"github.com/gin-gonic/gin"
)

// cacheDocument lets anyone keep a public document for five minutes: with a
// rotation of the secret the new signing key is known everywhere after that.
const cacheDocument = "public, max-age=300"

//go:embed openapi.json
var description []byte

// showDescription answers with the OpenAPI document of this API.
func (a *API) showDescription(c *gin.Context) error {
	c.Header("Cache-Control", cacheDocument)
	c.Data(http.StatusOK, "application/json; charset=utf-8", description)
	return nil
}

// showSigningKeys answers with the public keys that verify widget tokens, as a
// JWK set (RFC 7517, section 5).
func (a *API) showSigningKeys(c *gin.Context) error {
	c.Header("Cache-Control", cacheDocument)
	c.PureJSON(http.StatusOK, a.tokens.JWKS())
	return nil
}
