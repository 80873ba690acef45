package api

import (
	_ "embed"
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
	"portal/models/widget"
)

// cacheDocument allows caching for five minutes. Some verifiers keep the keys for at least fifteen,
// so operators publish a new key twenty minutes before it signs.
const cacheDocument = "public, max-age=300"

// setPublicHeaders sets the headers of a document that caches may store and pages of any origin may
// read.
func setPublicHeaders(c *gin.Context) {
	c.Header("Cache-Control", cacheDocument)
	c.Header("Access-Control-Allow-Origin", "*")
}

// Preflight answers only the request with which a browser asks whether a page of another origin may
// send a request for a public document.
func (s *site) Preflight(c *gin.Context) {
	path := c.Request.URL.Path
	if c.Request.Method != http.MethodOptions || path != descriptionPath && path != signingKeysPath {
		return
	}
	setPublicHeaders(c)
	c.Header("Access-Control-Allow-Methods", "GET, HEAD")
	c.Header("Access-Control-Allow-Headers", "*")
	c.AbortWithStatus(http.StatusNoContent)
}

// discoveryBody is the metadata of RFC 8414 and of OpenID Connect Discovery. Both require the last
// three fields. Because the portal issues no ID tokens and has no authorization endpoint, the
// fields only describe how to verify a widget token, like the metadata of Kubernetes.
type discoveryBody struct {
	Issuer                string             `json:"issuer"`
	JWKSURI               string             `json:"jwks_uri"`
	IntrospectionEndpoint string             `json:"introspection_endpoint"`
	ResponseTypes         []string           `json:"response_types_supported"`
	SubjectTypes          []string           `json:"subject_types_supported"`
	Algorithms            []widget.Algorithm `json:"id_token_signing_alg_values_supported"`
}

//go:embed openapi.json
var description []byte

//go:embed CHANGELOG.md
var changes string

// OpenAPI returns the OpenAPI document of the API.
func OpenAPI() []byte { return description }

// Changelog returns the changes of the API, as Markdown.
func Changelog() string { return changes }

func (s *site) showDescription(c *gin.Context) error {
	setPublicHeaders(c)
	c.Data(http.StatusOK, responseType, description)
	return nil
}

// showDiscovery returns the metadata with which libraries find the signing keys. Unlike the keys,
// it is for servers: no page of another origin may read it.
func (s *site) showDiscovery(c *gin.Context) error {
	issuer := s.Tokens.Issuer()
	c.Header("Cache-Control", cacheDocument)
	c.PureJSON(http.StatusOK, discoveryBody{
		Issuer: issuer, JWKSURI: issuer + signingKeysPath, IntrospectionEndpoint: issuer + introspectionPath,
		ResponseTypes: []string{"id_token"}, SubjectTypes: []string{"public"}, Algorithms: s.Tokens.Algorithms(),
	})
	return nil
}

// showSigningKeys returns the public keys that verify widget tokens, as a JWK set (RFC 7517,
// section 5).
func (s *site) showSigningKeys(c *gin.Context) error {
	setPublicHeaders(c)
	c.PureJSON(http.StatusOK, s.Tokens.JWKS())
	return nil
}

var errStopping = errors.New("the server is stopping")

// showHealth returns 200 while the process lives.
func (s *site) showHealth(c *gin.Context) error {
	c.Header("Cache-Control", "no-store")
	c.PureJSON(http.StatusOK, map[string]string{"status": "ok"})
	return nil
}

// showReadiness returns 200 while the database answers what a token request asks, otherwise 503.
// Once the server begins to stop, it also returns 503, so that proxies send their requests
// elsewhere.
func (s *site) showReadiness(c *gin.Context) error {
	select {
	case <-s.Stopping:
		return problem.Unavailable(errStopping)
	default:
	}
	ctx, cancel := s.withTimeout(c, 0)
	defer cancel()
	if err := s.Store.API.Ready(ctx); err != nil {
		return err
	}
	return s.showHealth(c)
}
