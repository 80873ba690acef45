package models

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
)

// What every widget token says of itself (RFC 9068).
const (
	widgetTokenType     = "at+jwt"
	widgetTokenAudience = "widget"
	widgetTokenScope    = "widget:connect"

	// clockSkew is how far the clocks of two instances may be apart: a token
	// is good on each as soon as one has issued it.
	clockSkew = 5 * time.Second

	// maxTokenLength is far above the length of any token of ours, in bytes.
	maxTokenLength = 4096
)

// WidgetClaims are the claims of a widget token: an account's permission for
// one browser to talk to one agent. Times are Unix seconds.
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

// WidgetTokens issues and verifies widget tokens: JWTs in the profile of RFC
// 9068, signed with Ed25519 (RFC 8037). It is safe for concurrent use.
type WidgetTokens struct {
	constant string // the encoded claims that are the same in every token
	ttl      time.Duration
	now      func() time.Time
	sign     func(string) ([]byte, error) // with the current key, which no field holds
	header   string                       // the encoded header, the same for every token
	public   map[string]ed25519.PublicKey // by kid
	jwks     jose.JSONWebKeySet
	parser   *jwt.Parser
}

// NewWidgetTokens returns the issuer and verifier of tokens that name issuer
// and live for ttl. A nil now means time.Now.
func NewWidgetTokens(keyring Keyring, issuer string, ttl time.Duration, now func() time.Time) *WidgetTokens {
	if now == nil {
		now = time.Now
	}
	t := &WidgetTokens{constant: constantClaims(issuer), ttl: ttl, now: now, public: map[string]ed25519.PublicKey{}}
	for i, private := range keyring.signingKeys() {
		public := private.Public().(ed25519.PublicKey)
		jwk := jose.JSONWebKey{Key: public, Algorithm: jwt.SigningMethodEdDSA.Alg(), Use: "sig"}
		jwk.KeyID = thumbprint(jwk)
		if i == 0 {
			t.header = encodedHeader(jwk.KeyID)
			t.sign = func(text string) ([]byte, error) { return jwt.SigningMethodEdDSA.Sign(text, private) }
		}
		t.public[jwk.KeyID] = public
		t.jwks.Keys = append(t.jwks.Keys, jwk)
	}
	t.parser = jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}),
		jwt.WithIssuer(issuer), jwt.WithAudience(widgetTokenAudience),
		jwt.WithExpirationRequired(), jwt.WithStrictDecoding(), jwt.WithTimeFunc(now),
	)
	return t
}

// TTL returns how long a token lives, in whole seconds.
func (t *WidgetTokens) TTL() time.Duration { return t.ttl.Truncate(time.Second) }

// JWKS returns the public keys with which anybody can verify a token (RFC
// 7517): that of the current secret and, during a rotation, of the one before.
func (t *WidgetTokens) JWKS() jose.JSONWebKeySet { return t.jwks }

// Issue returns a token with which a browser may talk to an agent of the
// principal's account. The caller has seen that the agent is one.
func (t *WidgetTokens) Issue(p Principal, agentID uuid.UUID) (string, error) {
	now := t.now().Unix()
	var room [512]byte // so that the claims of a usual issuer stay on the stack
	claims := append(room[:0], t.constant...)
	claims = appendID(claims, `,"sub":"`, p.AccountID)
	claims = appendID(claims, `","client_id":"`, p.KeyID)
	claims = appendID(claims, `","agent_id":"`, agentID)
	claims = appendID(claims, `","jti":"`, uuid.New())
	claims = strconv.AppendInt(append(claims, `","iat":`...), now, 10)
	claims = strconv.AppendInt(append(claims, `,"nbf":`...), now, 10)
	claims = strconv.AppendInt(append(claims, `,"exp":`...), now+int64(t.ttl/time.Second), 10)
	claims = append(claims, '}')
	token := make([]byte, 0, maxTokenLength/4)
	token = append(token, t.header...)
	token = append(token, '.')
	token = base64.RawURLEncoding.AppendEncode(token, claims)
	signature, err := t.sign(string(token))
	if err != nil {
		return "", fmt.Errorf("sign widget token: %w", err)
	}
	token = append(token, '.')
	token = base64.RawURLEncoding.AppendEncode(token, signature)
	return string(token), nil
}

// appendID appends an id, whose text no JSON escapes, and what stands before it.
func appendID(claims []byte, before string, id uuid.UUID) []byte {
	claims = append(claims, before...)
	text, _ := id.MarshalText() // never fails (github.com/google/uuid)
	return append(claims, text...)
}

// constantClaims are the claims that every token of an issuer has, as JSON
// without the brace that ends it.
func constantClaims(issuer string) string {
	claims, err := json.Marshal(struct {
		Issuer   string `json:"iss"`
		Audience string `json:"aud"`
		Scope    string `json:"scope"`
	}{issuer, widgetTokenAudience, widgetTokenScope})
	if err != nil {
		panic(err) // three strings can be encoded
	}
	return strings.TrimSuffix(string(claims), "}")
}

// encodedHeader is the first part of every token that the key with this id
// signs.
func encodedHeader(kid string) string {
	header, err := json.Marshal(struct {
		Type      string `json:"typ"`
		Algorithm string `json:"alg"`
		KeyID     string `json:"kid"`
	}{widgetTokenType, jwt.SigningMethodEdDSA.Alg(), kid})
	if err != nil {
		panic(err) // three strings can be encoded
	}
	return base64.RawURLEncoding.EncodeToString(header)
}

// Verify returns the claims of a token that this service has issued and that
// has not expired, or [ErrTokenInvalid]. Whether its key and agent still hold
// is [Store.WidgetTokenActive]'s to say.
func (t *WidgetTokens) Verify(token string) (WidgetClaims, error) {
	// Go's base64 skips line breaks, even where it is strict.
	if len(token) > maxTokenLength || strings.ContainsAny(token, "\r\n") {
		return WidgetClaims{}, ErrTokenInvalid
	}
	var claims WidgetClaims
	_, err := t.parser.ParseWithClaims(token, &claims, func(parsed *jwt.Token) (any, error) {
		// The library looks at neither of these (RFC 9068 section 4, RFC 7515
		// section 4.1.11).
		if _, critical := parsed.Header["crit"]; critical || parsed.Header["typ"] != widgetTokenType {
			return nil, ErrTokenInvalid
		}
		kid, _ := parsed.Header["kid"].(string)
		public, known := t.public[kid]
		if !known {
			return nil, ErrTokenInvalid
		}
		return public, nil
	})
	if err != nil {
		return WidgetClaims{}, fmt.Errorf("%w: %w", ErrTokenInvalid, err)
	}
	if claims.NotBefore > t.now().Add(clockSkew).Unix() {
		return WidgetClaims{}, fmt.Errorf("%w: it is not valid yet", ErrTokenInvalid)
	}
	return claims, nil
}

// WidgetTokenActive reports whether the claims of a verified token still hold
// for this account: it is the token's own, the key that it was exchanged for is
// not revoked, and its agent is still there. The error may be [ErrUnavailable].
func (s *Store) WidgetTokenActive(ctx context.Context, accountID uuid.UUID, claims WidgetClaims) (bool, error) {
	keyID, keyErr := uuid.Parse(claims.ClientID)
	agentID, agentErr := uuid.Parse(claims.AgentID)
	if keyErr != nil || agentErr != nil || claims.Subject != accountID.String() {
		return false, nil
	}
	active, err := s.db.NewSelect().Model((*APIKey)(nil)).
		Join("JOIN agents AS agent ON agent.account_id = api_key.account_id AND agent.id = ?", agentID).
		Where("api_key.account_id = ? AND api_key.id = ? AND api_key.revoked_at IS NULL", accountID, keyID).
		Exists(ctx)
	if err != nil {
		return false, failed("look up a token's key", err)
	}
	return active, nil
}

// thumbprint is the key's id (RFC 7638).
func thumbprint(jwk jose.JSONWebKey) string {
	sum, err := jwk.Thumbprint(crypto.SHA256)
	if err != nil {
		// Only for keys of a kind that go-jose does not know.
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(sum)
}

// GetExpirationTime and the methods below make WidgetClaims a [jwt.Claims].
func (c WidgetClaims) GetExpirationTime() (*jwt.NumericDate, error) {
	return numericDate(c.ExpiresAt), nil
}

// GetIssuedAt returns the claim iat.
func (c WidgetClaims) GetIssuedAt() (*jwt.NumericDate, error) { return numericDate(c.IssuedAt), nil }

// GetNotBefore returns nothing: the library knows one leeway for nbf and exp,
// and only nbf is to have one. [WidgetTokens.Verify] looks at it.
func (c WidgetClaims) GetNotBefore() (*jwt.NumericDate, error) { return nil, nil } //nolint:nilnil // the interface's word for "no such claim"

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
