// Package widget issues and verifies widget tokens: JWTs in the profile of RFC 9068, which let a
// browser talk to one of an account's agents. With the same keys it issues and verifies the access
// tokens of API keys without a secret. It depends on package secret only.
package widget

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

// MaxTTL is the longest lifetime of a token, and of the LiveKit token beside it.
const MaxTTL = time.Hour

// Constant parts of every token (RFC 9068).
const (
	tokenType = "at+jwt"
	audience  = "widget"
	scope     = "widget:connect"
)

const (
	// clockSkew is how far apart the clocks of two instances may be. Within this limit, every
	// instance accepts a token that another one has just issued.
	clockSkew = 5 * time.Second

	// verifierSkew is how far behind ours the clock of a customer's verifier may be. Because
	// many verifiers allow no difference, the claim nbf is this long before iat.
	verifierSkew = 60 * time.Second

	// maxLength is above the length of every issued token, in bytes: the longest context, of
	// line separators (U+2028), makes one of 8,200, and the longest host name adds 340.
	maxLength = 9216

	// usualClaims is above the length of the claims without a context, in bytes. Longer ones
	// make append allocate.
	usualClaims = 512
)

// ErrInvalid means that a token is malformed or forged, or that it is for somebody else.
var ErrInvalid = errors.New("the widget token is invalid")

// ErrExpired is [ErrInvalid] for a token that was valid and has expired.
var ErrExpired = fmt.Errorf("%w: it has expired", ErrInvalid)

// Grant is the access that a token gives: with a key of an account to one of its agents.
type Grant struct {
	AccountID, KeyID, AgentID uuid.UUID

	Context *Context      // nil: none
	Life    time.Duration // at most [Tokens.TTL]; zero: that
	Until   time.Time     // the token expires then at the latest; zero: no limit
}

// Context is what the customer's backend says about the visitor. It is signed, not secret: the
// visitor can read it.
type Context struct {
	User     *User             `json:"user,omitempty"`
	Metadata map[string]string `json:"metadata,omitzero"`
}

// User is the visitor in the customer's own system.
type User struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
}

// Claims are the claims of a token. Times are in Unix seconds.
type Claims struct {
	Issuer    string    `json:"iss"`
	Audience  string    `json:"aud"`
	AccountID uuid.UUID `json:"sub"`
	KeyID     uuid.UUID `json:"client_id"`
	AgentID   uuid.UUID `json:"agent_id"`
	Scope     string    `json:"scope"`
	IssuedAt  int64     `json:"iat"`
	NotBefore int64     `json:"nbf"`
	ExpiresAt int64     `json:"exp"`
	ID        uuid.UUID `json:"jti"`

	*Context // nil: none
}

// Tokens issues and verifies tokens. It is safe for concurrent use.
type Tokens struct {
	issuer string
	ttl    time.Duration
	now    func() time.Time

	algorithms []Algorithm // the first signs; the keys of all are published
	header     string      // base64url, the same for every token
	claims     string      // the JSON of the first claims, the same for every token
	sign       func(text []byte) ([]byte, error)
	known      map[string]keyPair // every key that verifies, by kid
	jwks       jose.JSONWebKeySet
	parser     *jwt.Parser

	verified memory[Claims]

	// Of access tokens.
	accessParser   *jwt.Parser
	verifiedAccess memory[AccessClaims]
}

// NewTokens returns the issuer and verifier of tokens with this issuer and lifetime. A nil now
// means time.Now. The first algorithm signs, and the keys of all listed ones are published; without
// a list it is [EdDSA]. Tokens of every algorithm verify, so that a change of the list does not end
// the tokens from before.
func NewTokens(
	keyring secret.Keyring, issuer string, ttl time.Duration, now func() time.Time, algorithms ...Algorithm,
) *Tokens {
	if now == nil {
		now = time.Now
	}
	if len(algorithms) == 0 {
		algorithms = []Algorithm{EdDSA}
	}
	t := &Tokens{issuer: issuer, ttl: ttl, now: now, algorithms: algorithms, known: map[string]keyPair{}}
	t.verified.claims = map[[sha256.Size]byte]Claims{}
	pairs := map[Algorithm][]keyPair{}
	var methods []string
	for _, algorithm := range Algorithms() {
		methods = append(methods, algorithm.method().Alg())
		for _, private := range privateKeys(keyring, algorithm) {
			pair := newKeyPair(algorithm, private)
			pairs[algorithm] = append(pairs[algorithm], pair)
			t.known[pair.jwk.KeyID] = pair
		}
	}
	for _, algorithm := range algorithms {
		for _, pair := range pairs[algorithm] {
			t.jwks.Keys = append(t.jwks.Keys, pair.jwk)
		}
	}
	signing := pairs[algorithms[0]][0]
	t.header, t.claims, t.sign = signing.header(), constantClaims(issuer), signing.sign
	newParser := func(audience string) *jwt.Parser {
		return jwt.NewParser(
			jwt.WithValidMethods(methods),
			jwt.WithIssuer(issuer), jwt.WithAudience(audience),
			jwt.WithExpirationRequired(), jwt.WithStrictDecoding(), jwt.WithTimeFunc(now),
		)
	}
	t.parser, t.accessParser = newParser(audience), newParser(accessAudience)
	t.verifiedAccess.claims = map[[sha256.Size]byte]AccessClaims{}
	return t
}

// Issuer returns the claim iss of every token.
func (t *Tokens) Issuer() string { return t.issuer }

// Algorithms returns the algorithms whose keys are published, the one that signs first.
func (t *Tokens) Algorithms() []Algorithm { return t.algorithms }

// TTL returns the lifetime of a token in whole seconds.
func (t *Tokens) TTL() time.Duration { return t.ttl.Truncate(time.Second) }

// JWKS returns the public keys that verify tokens (RFC 7517), the signing key first. For each
// published algorithm it has the key of the current secret and, during a rotation, of the previous
// one.
func (t *Tokens) JWKS() jose.JSONWebKeySet { return t.jwks }

// Issue appends a token to b and returns the result and the token's claims. Before that the caller
// must have checked that the key is active and that the agent belongs to its account.
func (t *Tokens) Issue(b []byte, grant Grant) ([]byte, Claims, error) {
	now := t.now().Unix()
	claims := Claims{
		Issuer: t.issuer, Audience: audience, AccountID: grant.AccountID, KeyID: grant.KeyID,
		AgentID: grant.AgentID, Scope: scope, IssuedAt: now,
		NotBefore: now - int64(verifierSkew/time.Second), ExpiresAt: t.expiry(now, grant), ID: uuid.New(),
		Context: grant.Context,
	}
	var payload [usualClaims]byte
	start := len(b)
	b = append(append(b, t.header...), '.')
	b = base64.RawURLEncoding.AppendEncode(b, t.appendClaims(payload[:0], claims))
	signature, err := t.sign(b[start:])
	if err != nil {
		return nil, Claims{}, fmt.Errorf("sign widget token: %w", err)
	}
	return base64.RawURLEncoding.AppendEncode(append(b, '.'), signature), claims, nil
}

// expiry returns the claim exp of a token that is issued now.
func (t *Tokens) expiry(now int64, grant Grant) int64 {
	life := t.ttl
	if grant.Life > 0 {
		life = min(life, grant.Life)
	}
	expiry := now + int64(life/time.Second)
	if !grant.Until.IsZero() {
		expiry = min(expiry, grant.Until.Unix())
	}
	return expiry
}

// Verify returns the claims of an unexpired token that this service has issued. Otherwise it
// returns [ErrExpired], also with the claims, or another error that is [ErrInvalid]. The caller
// must check the key, the account and the agent.
func (t *Tokens) Verify(token string) (Claims, error) {
	// Go's base64 ignores line breaks, even in strict mode.
	if len(token) > maxLength || strings.ContainsAny(token, "\r\n") {
		return Claims{}, ErrInvalid
	}
	hash := sha256.Sum256([]byte(token))
	claims, found := t.verified.find(hash)
	if !found {
		var err error
		if claims, err = t.parse(token); err != nil {
			return claims, err
		}
	} else if claims.Context != nil {
		claims.Context = contextOf(token)
	}
	now := t.now()
	if !now.Before(time.Unix(claims.ExpiresAt, 0)) {
		return claims, ErrExpired
	}
	if claims.NotBefore > now.Add(clockSkew).Unix() {
		return Claims{}, fmt.Errorf("%w: it is not valid yet", ErrInvalid)
	}
	if !found {
		remembered := claims
		if claims.Context != nil {
			remembered.Context = inToken
		}
		t.verified.add(hash, remembered)
	}
	return claims, nil
}

// parse verifies the signature, the header and the claims of a token, except nbf.
func (t *Tokens) parse(token string) (claims Claims, err error) {
	_, err = t.parser.ParseWithClaims(token, &claims, t.keyOf)
	if errors.Is(err, jwt.ErrTokenExpired) { // the signature is right
		return claims, ErrExpired
	}
	if err != nil {
		return Claims{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return claims, nil
}

// keyOf returns the public key of a token whose header is that of a token of this service.
func (t *Tokens) keyOf(parsed *jwt.Token) (any, error) {
	// The library checks neither typ (RFC 9068 section 4) nor crit (RFC 7515 section 4.1.11).
	if _, critical := parsed.Header["crit"]; critical || parsed.Header["typ"] != tokenType {
		return nil, ErrInvalid
	}
	kid, _ := parsed.Header["kid"].(string)
	pair, known := t.known[kid]
	if !known || pair.method != parsed.Method {
		return nil, ErrInvalid
	}
	return pair.jwk.Key, nil
}

// contextOf returns the context in a verified token.
func contextOf(token string) *Context {
	payload := token[strings.IndexByte(token, '.')+1 : strings.LastIndexByte(token, '.')]
	var context Context
	text, err := base64.RawURLEncoding.DecodeString(payload)
	if err == nil {
		err = json.Unmarshal(text, &context)
	}
	if err != nil {
		panic(err) // the token was parsed before
	}
	return &context
}

// GetExpirationTime returns the claim exp. This and the methods below implement [jwt.Claims].
func (c Claims) GetExpirationTime() (*jwt.NumericDate, error) { return numericDate(c.ExpiresAt), nil }

// GetIssuedAt returns the claim iat.
func (c Claims) GetIssuedAt() (*jwt.NumericDate, error) { return numericDate(c.IssuedAt), nil }

// GetNotBefore returns nil: the library has one leeway for nbf and exp, but only nbf may have one.
// [Tokens.Verify] checks nbf.
func (c Claims) GetNotBefore() (*jwt.NumericDate, error) { return nil, nil } //nolint:nilnil // jwt.Claims uses nil for an absent claim

// GetIssuer returns the claim iss.
func (c Claims) GetIssuer() (string, error) { return c.Issuer, nil }

// GetSubject returns the claim sub.
func (c Claims) GetSubject() (string, error) { return c.AccountID.String(), nil }

// GetAudience returns the claim aud.
func (c Claims) GetAudience() (jwt.ClaimStrings, error) { return jwt.ClaimStrings{c.Audience}, nil }

func numericDate(seconds int64) *jwt.NumericDate {
	if seconds == 0 {
		return nil
	}
	return jwt.NewNumericDate(time.Unix(seconds, 0))
}
