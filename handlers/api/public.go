package api

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"portal/handlers/deps"
	"portal/handlers/problem"
	"portal/models/widget"
	"portal/models/workload"
	"portal/static"
)

// cacheDocument allows caching for five minutes. Some verifiers keep the keys for at least fifteen,
// so operators publish a new key twenty minutes before it signs.
const cacheDocument = "public, max-age=300"

// newDocuments returns the public documents by path. They do not change while the portal runs.
func newDocuments(d deps.Deps) map[string]static.Asset {
	document := func(content []byte) static.Asset { return static.NewAsset(responseType, cacheDocument, content) }
	metadata := document(encoded(newMetadata(d.Tokens, d.Store.Workload.Issuers())))
	return map[string]static.Asset{
		descriptionPath:    document(describe(d.BaseURL.String())),
		SigningKeysPath:    document(encoded(d.Tokens.JWKS())),
		serverMetadataPath: metadata,
		openIDMetadataPath: metadata,
	}
}

// encoded returns a document of our own as JSON.
func encoded(document any) []byte {
	content, err := json.Marshal(document)
	if err != nil {
		panic(err)
	}
	return content
}

// allowAnyOrigin lets pages of any origin read the response.
func allowAnyOrigin(c *gin.Context) { c.Header("Access-Control-Allow-Origin", "*") }

// Preflight answers only the request with which a browser asks whether a page of another origin may
// send a request for a public document.
func (e *Endpoints) Preflight(c *gin.Context) {
	if _, public := e.documents[c.Request.URL.Path]; !public || c.Request.Method != http.MethodOptions {
		return
	}
	c.Header("Cache-Control", cacheDocument)
	allowAnyOrigin(c)
	c.Header("Access-Control-Allow-Methods", "GET, HEAD")
	c.Header("Access-Control-Allow-Headers", "*, Authorization") // * is not for Authorization
	c.AbortWithStatus(http.StatusNoContent)
}

// metadata is that of RFC 8414 and of OpenID Connect Discovery, with which libraries find the
// signing keys. Both require the last three fields. Because the portal issues no ID tokens and has
// no authorization endpoint, the fields only describe how to verify a widget token, like the
// metadata of Kubernetes.
type metadata struct {
	Issuer                string             `json:"issuer"`
	JWKSURI               string             `json:"jwks_uri"`
	IntrospectionEndpoint string             `json:"introspection_endpoint"`
	ResponseTypes         []string           `json:"response_types_supported"`
	SubjectTypes          []string           `json:"subject_types_supported"`
	Algorithms            []widget.Algorithm `json:"id_token_signing_alg_values_supported"`

	// Of the exchange of a platform's token for an access token, unless it is off.
	TokenEndpoint string   `json:"token_endpoint,omitempty"`
	GrantTypes    []string `json:"grant_types_supported,omitempty"`
	ClientMethods []string `json:"token_endpoint_auth_methods_supported,omitempty"`
}

func newMetadata(tokens *widget.Tokens, issuers workload.Issuers) metadata {
	issuer := tokens.Issuer()
	m := metadata{
		Issuer: issuer, JWKSURI: issuer + SigningKeysPath, IntrospectionEndpoint: issuer + introspectionPath,
		ResponseTypes: []string{"id_token"}, SubjectTypes: []string{"public"}, Algorithms: tokens.Algorithms(),
	}
	if !issuers.Off {
		m.TokenEndpoint, m.GrantTypes, m.ClientMethods = issuer+tokenPath, []string{exchangeGrant}, []string{"none"}
	}
	return m
}

//go:embed openapi.json
var description []byte

//go:embed CHANGELOG.md
var changes string

// OpenAPI returns the OpenAPI document of the API.
func OpenAPI() []byte { return description }

// Changelog returns the changes of the API, as Markdown.
func Changelog() string { return changes }

// describe returns the OpenAPI document with the address of this portal.
func describe(baseURL string) []byte {
	return bytes.Replace(description, []byte(`"url": "/"`), slices.Concat([]byte(`"url": `), encoded(baseURL)), 1)
}

var errStopping = errors.New("the server is stopping")

// showHealth returns 200 while the process lives.
func (e *Endpoints) showHealth(c *gin.Context) error {
	c.Header("Cache-Control", "no-store")
	c.PureJSON(http.StatusOK, map[string]string{"status": "ok"})
	return nil
}

// showReadiness returns 200 while the database answers what a token request asks, otherwise 503.
// Once the server begins to stop, it also returns 503, so that proxies send their requests
// elsewhere.
func (e *Endpoints) showReadiness(c *gin.Context) error {
	select {
	case <-e.stopping:
		return problem.Unavailable(errStopping)
	default:
	}
	ctx, cancel := e.withTimeout(c, 0)
	defer cancel()
	if err := e.api.Ready(ctx); err != nil {
		return err
	}
	return e.showHealth(c)
}
