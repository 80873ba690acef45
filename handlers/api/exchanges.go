package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-jose/go-jose/v4"
	"github.com/google/uuid"

	"portal/handlers/deps"
	"portal/handlers/middleware"
	"portal/handlers/problem"
	"portal/handlers/publickeys"
	"portal/models/keys"
	"portal/models/keyset"
	"portal/models/value"
	"portal/models/widget"
	"portal/models/workload"
)

const (
	exchangeGrant    = "urn:ietf:params:oauth:grant-type:token-exchange"
	tokenTypePrefix  = "urn:ietf:params:oauth:token-type:" //nolint:gosec // no credentials
	maxExchangeBody  = 20 << 10
	maxExchanges     = 60 // of an address and of a key, in each exchangeWindow
	exchangeWindow   = time.Minute
	invalidGrant     = "invalid_grant"
	invalidRequest   = "invalid_request"
	unavailableGrant = "temporarily_unavailable"
)

// exchanges have the endpoint at which a workload exchanges the token of its platform for an access
// token (RFC 8693).
type exchanges struct {
	*site

	api    *keys.API
	tokens *widget.Tokens
	logger *slog.Logger

	// See limitKey.
	ofAddress, ofKey, ofKeyRefused *rateLimiter
	// Of the issuers whose keys are fetched.
	keys *publickeys.Signers[[]jose.JSONWebKey]
}

func newExchanges(s *site, d deps.Deps) *exchanges {
	limiter := func(name, things string) *rateLimiter {
		return newWindowLimiter(name, things, maxExchanges, exchangeWindow, s.now)
	}
	e := &exchanges{
		site: s, api: d.Store.API, tokens: d.Tokens, logger: d.Logger,
		ofAddress: limiter("address", "from this address"),
		ofKey:     limiter("key", "for this API key"), ofKeyRefused: limiter("key", "for this API key"),
	}
	e.keys = publickeys.NewSigners(e.signer)
	return e
}

// signer describes an issuer, whose public keys are found by OpenID Connect Discovery.
func (e *exchanges) signer(issuer string) publickeys.Config[[]jose.JSONWebKey] {
	return publickeys.Config[[]jose.JSONWebKey]{
		URL: strings.TrimSuffix(issuer, "/") + "/.well-known/openid-configuration",
		Resolve: func(document []byte) (string, error) {
			var found workload.Metadata
			if err := json.Unmarshal(withoutMark(document), &found); err != nil {
				return "", err
			}
			switch {
			case found.Issuer != issuer:
				return "", errors.New("the discovery document is that of another issuer")
			case !e.issuers.AllowsKeys(issuer, found.JWKSURI):
				return "", errors.New("the public keys are on another host")
			}
			return found.JWKSURI, nil
		},
		Parse: func(ctx context.Context, body []byte) (map[string][]jose.JSONWebKey, error) {
			set, err := keyset.ParseNamed(body)
			keyset.LogSkipped(ctx, e.logger, issuer, set.Skipped)
			return set.ByID(), err
		},
		Logger: e.logger, Now: e.now,
	}
}

// exchangeError is an error response of RFC 6749, section 5.2.
type exchangeError struct {
	status      int
	code        string
	description string
	retryAfter  time.Duration
	cause       error // for the log only
}

func (e exchangeError) Error() string {
	if e.cause != nil {
		return e.cause.Error()
	}
	return e.code + ": " + e.description
}

// errNotGranted is the one response to everything that is wrong with a key, a token or a rule, so
// that a stranger learns nothing. The page of the key has the reason.
var errNotGranted = exchangeError{
	status: http.StatusBadRequest, code: invalidGrant,
	description: "The token is not accepted for this key. If its issuer and signature are right, the page of the key has the reason under Exchanges.",
}

func malformed(description string) exchangeError {
	return exchangeError{status: http.StatusBadRequest, code: invalidRequest, description: description}
}

// errKeysMissing is the response while the public keys of an issuer, or new ones, cannot be
// fetched.
func errKeysMissing(retryAfter time.Duration, cause error) exchangeError {
	return exchangeError{
		status: http.StatusServiceUnavailable, code: unavailableGrant, description: "The public keys of the issuer cannot be had. Try again later.",
		retryAfter: max(time.Second, retryAfter), cause: cause,
	}
}

func exchangeErrorOf(err error) exchangeError {
	if e, ok := errors.AsType[exchangeError](err); ok {
		return e
	}
	if errors.Is(err, value.ErrKeyUnknown) {
		return errNotGranted
	}
	if missing, ok := errors.AsType[*publickeys.MissingError](err); ok {
		return errKeysMissing(missing.RetryAfter, err)
	}
	p := problem.From(err)
	e := exchangeError{status: p.Status, code: "server_error", description: p.Message, retryAfter: p.RetryAfter, cause: err}
	switch p.Status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		e.code, e.retryAfter = unavailableGrant, max(time.Second, p.RetryAfter)
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		e.code = invalidRequest
	}
	return e
}

// handle writes the response to an exchange.
func (e *exchanges) handle(c *gin.Context) {
	c.Header("Cache-Control", "no-store")
	body, err := e.create(c)
	if err == nil {
		c.PureJSON(http.StatusOK, body)
		return
	}
	response := exchangeErrorOf(err)
	if response.status >= http.StatusInternalServerError {
		_ = c.Error(err) // for the log
	}
	middleware.SetCode(c, response.code)
	if seconds := (problem.Problem{RetryAfter: response.retryAfter}).RetryAfterSeconds(); seconds != "" {
		c.Header("Retry-After", seconds)
	}
	c.AbortWithStatusPureJSON(response.status, struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}{response.code, response.description})
}

// exchangeBody is the response of RFC 8693, section 2.2.1.
type exchangeBody struct {
	AccessToken string `json:"access_token"`
	IssuedType  string `json:"issued_token_type"`
	TokenType   string `json:"token_type"`
	ExpiresIn   int64  `json:"expires_in"`
	Scope       string `json:"scope"`
}

// create exchanges a token. The cheap checks come first, and nothing is fetched for an unknown key
// or another issuer than that of its rule.
func (e *exchanges) create(c *gin.Context) (exchangeBody, error) {
	if err := e.ofAddress.limit(c, addressID(middleware.ClientOf(c))); err != nil {
		return exchangeBody{}, err
	}
	keyID, token, err := readExchange(c)
	if err != nil {
		return exchangeBody{}, err
	}
	key, err := query(e.site, c, 0, func(ctx context.Context) (keys.Key, error) { return e.api.WorkloadKey(ctx, keyID) })
	if err != nil {
		return exchangeBody{}, err
	}
	if token.Issuer != key.Trust.Issuer {
		return exchangeBody{}, errNotGranted
	}
	claims, err := e.verify(c, key, token)
	if err != nil {
		return exchangeBody{}, err
	}
	presented := e.presented(c, key, claims)
	if err := e.limitKey(c, key, presented); err != nil {
		return exchangeBody{}, err
	}
	reason, err := query(e.site, c, 0, func(ctx context.Context) (string, error) { return e.api.Exchange(ctx, key, presented) })
	if err != nil {
		return exchangeBody{}, err
	}
	if reason != "" {
		return exchangeBody{}, errNotGranted
	}
	middleware.SetCaller(c, middleware.Caller{Account: key.AccountID, Key: key.ID})
	return e.issue(key, claims)
}

// limitKey counts an exchange for the key. Because others may have old tokens of the workload, and
// tokens of the issuer that the rule of the key does not accept, those count apart.
func (e *exchanges) limitKey(c *gin.Context, key keys.Key, presented keys.WorkloadToken) error {
	if presented.Check(key.TrustPins) != "" {
		return e.ofKeyRefused.limit(c, key.ID)
	}
	used, err := query(e.site, c, 0, func(ctx context.Context) (bool, error) { return e.api.UsedBefore(ctx, key, presented) })
	switch {
	case err != nil:
		return err
	case used:
		return e.ofKeyRefused.limit(c, key.ID)
	}
	return e.ofKey.limit(c, key.ID)
}

func (e *exchanges) issue(key keys.Key, claims workload.Claims) (exchangeBody, error) {
	var expiry time.Time
	if key.ExpiresAt != nil {
		expiry = *key.ExpiresAt
	}
	text, issued, err := e.tokens.IssueAccess(key.AccountID, key.ID, *key.TrustVersion, claims.ExpiresAt(), expiry)
	if err != nil {
		return exchangeBody{}, err
	}
	if issued.ExpiresAt <= issued.IssuedAt { // the last second of the token or the key
		return exchangeBody{}, errNotGranted
	}
	return exchangeBody{
		AccessToken: text, IssuedType: tokenTypePrefix + "access_token", TokenType: "Bearer",
		ExpiresIn: issued.ExpiresAt - issued.IssuedAt, Scope: widget.AccessScope,
	}, nil
}

// verify returns the claims of a token whose signature is right.
func (e *exchanges) verify(c *gin.Context, key keys.Key, token *workload.Token) (workload.Claims, error) {
	var public []jose.JSONWebKey
	var err error
	if len(key.Trust.JWKS) > 0 {
		var set keyset.Set
		if set, err = keyset.ParseNamed(key.Trust.JWKS); err == nil {
			public = set.ByID()[token.KeyID]
		}
	} else if e.issuers.Fetched(token.Issuer) {
		// A stranger may know the id of the key, but sends from another network.
		caller := key.ID.String() + " " + addressID(middleware.ClientOf(c)).String()
		public, err = e.keys.Get(c.Request.Context(), token.Issuer, token.KeyID, caller)
	}
	unconfirmed, isUnconfirmed := errors.AsType[*publickeys.UnconfirmedError](err)
	switch {
	case isUnconfirmed: // the issuer may have a new key
		return workload.Claims{}, errKeysMissing(unconfirmed.RetryAfter, err)
	case errors.Is(err, publickeys.ErrUnknown):
		return workload.Claims{}, errNotGranted
	case errors.Is(err, publickeys.ErrBusy):
		return workload.Claims{}, problem.Unavailable(fmt.Errorf("%w exchange tokens: %w", value.ErrBusy, err))
	case err != nil:
		return workload.Claims{}, err
	}
	claims, err := token.Verify(public)
	if err != nil {
		return workload.Claims{}, errNotGranted
	}
	return claims, nil
}

// presented returns a token for [keys.API.Exchange].
func (e *exchanges) presented(c *gin.Context, key keys.Key, claims workload.Claims) keys.WorkloadToken {
	client := middleware.ClientOf(c)
	presented := keys.WorkloadToken{
		ExpiresAt: claims.ExpiresAt(), Pins: claims.Pins(*key.Trust), Address: client.String(),
		Check: func(pins map[string]string) string {
			if !key.AllowsAddress(client.Address) {
				return "the address is in none of the networks of the key"
			}
			return claims.Check(*key.Trust, pins, e.now())
		},
	}
	if key.Trust.SingleUse() {
		presented.Issuer, presented.ID = key.Trust.Issuer, claims.ID()
	}
	return presented
}

func readExchange(c *gin.Context) (keyID uuid.UUID, token *workload.Token, err error) {
	form, err := readExchangeForm(c)
	if err != nil {
		return uuid.Nil, nil, err
	}
	for name, values := range form {
		if len(values) > 1 && name != "resource" && name != "audience" { // RFC 8693, section 2.1
			return uuid.Nil, nil, malformed(fmt.Sprintf("The parameter %.50q must not be repeated.", name))
		}
		values[0] = strings.TrimSpace(values[0]) // a file ends in a line break
	}
	switch kind := form.Get("subject_token_type"); {
	case form.Get("grant_type") == "":
		return uuid.Nil, nil, malformed("The parameter grant_type is missing. Send " + exchangeGrant + ".")
	case form.Get("grant_type") != exchangeGrant:
		return uuid.Nil, nil, exchangeError{status: http.StatusBadRequest, code: "unsupported_grant_type", description: "Send the grant_type " + exchangeGrant + "."}
	case kind != tokenTypePrefix+"jwt" && kind != tokenTypePrefix+"id_token":
		return uuid.Nil, nil, malformed("Send the subject_token_type " + tokenTypePrefix + "jwt.")
	case form.Get("requested_token_type") != "" && form.Get("requested_token_type") != tokenTypePrefix+"access_token":
		return uuid.Nil, nil, malformed("Only an access token can be requested. Leave out requested_token_type.")
	case form.Get("actor_token") != "":
		return uuid.Nil, nil, malformed("An actor_token is not supported.")
	case form.Get("subject_token") == "":
		return uuid.Nil, nil, malformed("The parameter subject_token is missing. Send the token of your platform.")
	case form.Get("client_id") == "":
		return uuid.Nil, nil, malformed("The parameter client_id is missing. Send the id of the API key, which its page shows.")
	case len(form.Get("subject_token")) > workload.MaxToken:
		return uuid.Nil, nil, problem.PayloadTooLarge(workload.MaxToken)
	}
	keyID, ok := value.ParseID(form.Get("client_id"))
	token, err = workload.Parse(form.Get("subject_token"))
	if !ok || err != nil {
		return uuid.Nil, nil, errNotGranted
	}
	return keyID, token, nil
}

func readExchangeForm(c *gin.Context) (url.Values, error) {
	if len(c.Request.Header.Values("Authorization")) > 0 {
		return nil, malformed("An Authorization header is not accepted here. Send the token of your platform as subject_token.")
	}
	if kind, _, err := mime.ParseMediaType(c.GetHeader("Content-Type")); err != nil || kind != formType {
		return nil, malformed("Send the body as " + formType + " and set the Content-Type header to that type.")
	}
	body, err := readAll(c, maxExchangeBody)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, malformed("The request body is not a valid form.")
	}
	return form, nil
}
