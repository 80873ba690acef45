package models

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"portal/models/secret"
)

// Constant parts of every widget token (RFC 9068).
const (
	widgetTokenType     = "at+jwt"
	widgetTokenAudience = "widget"
	widgetTokenScope    = "widget:connect"

	// clockSkew is how far apart the clocks of two instances may be. Within this limit, every
	// instance accepts a token that another one has just issued.
	clockSkew = 5 * time.Second

	// verifierSkew is how far behind ours the clock of a customer's verifier may be. The claim
	// nbf is this long before iat, because many verifiers allow no difference.
	verifierSkew = 60 * time.Second

	// maxTokenLength is far above the length of every issued token, in bytes.
	maxTokenLength = 4096
)

// WidgetClaims are the claims of a widget token, which lets a browser talk to one of an account's
// agents. Times are in Unix seconds.
type WidgetClaims struct {
	Issuer    string `json:"iss"`
	Audience  string `json:"aud"`
	Subject   string `json:"sub"`       // the account's id
	ClientID  string `json:"client_id"` // the key's id
	AgentID   string `json:"agent_id"`
	Scope     string `json:"scope"`
	IssuedAt  int64  `json:"iat"`
	NotBefore int64  `json:"nbf"`
	ExpiresAt int64  `json:"exp"`
	ID        string `json:"jti"`
}

// WidgetTokens issues and verifies widget tokens: JWTs in the profile of RFC 9068. It is safe for
// concurrent use.
type WidgetTokens struct {
	issuer string
	ttl    time.Duration
	now    func() time.Time

	algorithms []TokenAlgorithm // the first signs; the keys of all are published
	header     string           // base64url, the same for every token
	sign       func(text string) ([]byte, error)
	known      map[string]tokenKey // every key that verifies, by kid
	jwks       jose.JSONWebKeySet
	parser     *jwt.Parser

	verified verifiedTokens
}

// NewWidgetTokens returns the issuer and verifier of tokens with this issuer and lifetime. A nil
// now means time.Now. The first algorithm signs, and the keys of all listed ones are published;
// without a list it is [EdDSA]. Tokens of every algorithm verify, so that a change of the list does
// not end the tokens from before.
func NewWidgetTokens(
	keyring secret.Keyring, issuer string, ttl time.Duration, now func() time.Time, algorithms ...TokenAlgorithm,
) *WidgetTokens {
	if now == nil {
		now = time.Now
	}
	if len(algorithms) == 0 {
		algorithms = []TokenAlgorithm{EdDSA}
	}
	t := &WidgetTokens{issuer: issuer, ttl: ttl, now: now, algorithms: algorithms, known: map[string]tokenKey{}}
	t.verified.claims = map[[sha256.Size]byte]WidgetClaims{}
	keys := map[TokenAlgorithm][]tokenKey{}
	var methods []string
	for _, algorithm := range TokenAlgorithms() {
		methods = append(methods, algorithm.method().Alg())
		for _, private := range tokenKeys(keyring, algorithm) {
			key := newTokenKey(algorithm, private)
			keys[algorithm] = append(keys[algorithm], key)
			t.known[key.jwk.KeyID] = key
		}
	}
	for _, algorithm := range algorithms {
		for _, key := range keys[algorithm] {
			t.jwks.Keys = append(t.jwks.Keys, key.jwk)
		}
	}
	signing := keys[algorithms[0]][0]
	t.header, t.sign = signing.header(), signing.sign
	t.parser = jwt.NewParser(
		jwt.WithValidMethods(methods),
		jwt.WithIssuer(issuer), jwt.WithAudience(widgetTokenAudience),
		jwt.WithExpirationRequired(), jwt.WithStrictDecoding(), jwt.WithTimeFunc(now),
	)
	return t
}

// Issuer returns the claim iss of every token.
func (t *WidgetTokens) Issuer() string { return t.issuer }

// Algorithms returns the algorithms whose keys are published. The first one signs.
func (t *WidgetTokens) Algorithms() []TokenAlgorithm { return t.algorithms }

// TTL returns the lifetime of a token in whole seconds.
func (t *WidgetTokens) TTL() time.Duration { return t.ttl.Truncate(time.Second) }

// JWKS returns the public keys that verify tokens (RFC 7517), the signing key first. For each
// published algorithm it has the key of the current secret and, during a rotation, of the previous
// one.
func (t *WidgetTokens) JWKS() jose.JSONWebKeySet { return t.jwks }

// Issue returns a token for one of the principal's agents, and its claims. The caller must have
// checked with [Store.CheckAgent] that the agent belongs to the principal's account.
func (t *WidgetTokens) Issue(p Principal, agentID uuid.UUID) (string, WidgetClaims, error) {
	now := t.now().Unix()
	claims := WidgetClaims{
		Issuer: t.issuer, Audience: widgetTokenAudience, Subject: p.AccountID.String(), ClientID: p.KeyID.String(),
		AgentID: agentID.String(), Scope: widgetTokenScope, IssuedAt: now,
		NotBefore: now - int64(verifierSkew/time.Second), ExpiresAt: now + int64(t.ttl/time.Second), ID: uuid.NewString(),
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", WidgetClaims{}, fmt.Errorf("encode widget token: %w", err)
	}
	token := make([]byte, 0, maxTokenLength/4)
	token = append(append(token, t.header...), '.')
	token = base64.RawURLEncoding.AppendEncode(token, payload)
	signature, err := t.sign(string(token))
	if err != nil {
		return "", WidgetClaims{}, fmt.Errorf("sign widget token: %w", err)
	}
	return string(base64.RawURLEncoding.AppendEncode(append(token, '.'), signature)), claims, nil
}

// Verify returns the claims of an unexpired token that this service has issued. Otherwise it
// returns [ErrTokenExpired] or another error that is [ErrTokenInvalid]. It does not check the key
// and the agent; [Store.AuthenticateToken] and [Store.CheckAgent] do.
func (t *WidgetTokens) Verify(token string) (WidgetClaims, error) {
	// Go's base64 ignores line breaks, even in strict mode.
	if len(token) > maxTokenLength || strings.ContainsAny(token, "\r\n") {
		return WidgetClaims{}, ErrTokenInvalid
	}
	hash := sha256.Sum256([]byte(token))
	claims, found := t.verified.find(hash)
	if !found {
		var err error
		if claims, err = t.parse(token); err != nil {
			return WidgetClaims{}, err
		}
	}
	now := t.now()
	if !now.Before(time.Unix(claims.ExpiresAt, 0)) {
		return WidgetClaims{}, ErrTokenExpired
	}
	if claims.NotBefore > now.Add(clockSkew).Unix() {
		return WidgetClaims{}, fmt.Errorf("%w: it is not valid yet", ErrTokenInvalid)
	}
	if !found {
		t.verified.add(hash, claims)
	}
	return claims, nil
}

// parse verifies the signature, the header and the claims of a token, except nbf.
func (t *WidgetTokens) parse(token string) (claims WidgetClaims, err error) {
	_, err = t.parser.ParseWithClaims(token, &claims, func(parsed *jwt.Token) (any, error) {
		// The library checks neither typ (RFC 9068 section 4) nor crit (RFC 7515 section
		// 4.1.11).
		if _, critical := parsed.Header["crit"]; critical || parsed.Header["typ"] != widgetTokenType {
			return nil, ErrTokenInvalid
		}
		kid, _ := parsed.Header["kid"].(string)
		key, known := t.known[kid]
		if !known || key.method != parsed.Method {
			return nil, ErrTokenInvalid
		}
		return key.jwk.Key, nil
	})
	if errors.Is(err, jwt.ErrTokenExpired) {
		return WidgetClaims{}, ErrTokenExpired
	}
	if err != nil {
		return WidgetClaims{}, fmt.Errorf("%w: %w", ErrTokenInvalid, err)
	}
	return claims, nil
}

// GetExpirationTime returns the claim exp. This and the methods below implement [jwt.Claims].
func (c WidgetClaims) GetExpirationTime() (*jwt.NumericDate, error) {
	return numericDate(c.ExpiresAt), nil
}

// GetIssuedAt returns the claim iat.
func (c WidgetClaims) GetIssuedAt() (*jwt.NumericDate, error) { return numericDate(c.IssuedAt), nil }

// GetNotBefore returns nil: the library has one leeway for nbf and exp, but only nbf may have one.
// [WidgetTokens.Verify] checks nbf.
func (c WidgetClaims) GetNotBefore() (*jwt.NumericDate, error) { return nil, nil } //nolint:nilnil // jwt.Claims uses nil for an absent claim

// GetIssuer returns the claim iss.
func (c WidgetClaims) GetIssuer() (string, error) { return c.Issuer, nil }

// GetSubject returns the claim sub.
func (c WidgetClaims) GetSubject() (string, error) { return c.Subject, nil }

// GetAudience returns the claim aud.
func (c WidgetClaims) GetAudience() (jwt.ClaimStrings, error) {
	return jwt.ClaimStrings{c.Audience}, nil
}

func numericDate(seconds int64) *jwt.NumericDate {
	if seconds == 0 {
		return nil
	}
	return jwt.NewNumericDate(time.Unix(seconds, 0))
}
