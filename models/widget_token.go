package models

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
)

// Constant parts of every widget token (RFC 9068).
const (
	widgetTokenType     = "at+jwt"
	widgetTokenAudience = "widget"
	widgetTokenScope    = "widget:connect"

	// clockSkew is how far apart the clocks of two instances may be. Within it, every instance
	// accepts a token that another has just issued.
	clockSkew = 5 * time.Second

	// verifierSkew is how far behind ours the clock of a customer's verifier may be. The claim nbf
	// is this long before iat, because many verifiers allow no difference.
	verifierSkew = 60 * time.Second

	// maxTokenLength is far above the length of every issued token, in bytes.
	maxTokenLength = 4096
)

// WidgetClaims are the claims of a widget token, with which a browser may talk to one of an
// account's agents. Times are Unix seconds.
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

// WidgetTokens issues and verifies widget tokens: JWTs in the profile of RFC 9068, signed with
// Ed25519 (RFC 8037). It is safe for concurrent use.
type WidgetTokens struct {
	issuer string
	ttl    time.Duration
	now    func() time.Time
	sign   func(string) ([]byte, error) // a closure, so that no field holds the private key
	header string                       // base64url, the same for every token
	public map[string]ed25519.PublicKey // by kid
	jwks   jose.JSONWebKeySet
	parser *jwt.Parser
}

// NewWidgetTokens returns the issuer and verifier of tokens with this issuer and lifetime. A nil
// now means time.Now.
func NewWidgetTokens(keyring Keyring, issuer string, ttl time.Duration, now func() time.Time) *WidgetTokens {
	if now == nil {
		now = time.Now
	}
	t := &WidgetTokens{issuer: issuer, ttl: ttl, now: now, public: map[string]ed25519.PublicKey{}}
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

// TTL returns the lifetime of a token in whole seconds.
func (t *WidgetTokens) TTL() time.Duration { return t.ttl.Truncate(time.Second) }

// JWKS returns the public keys that verify tokens (RFC 7517): the key of the current secret and,
// during a rotation, of the previous one.
func (t *WidgetTokens) JWKS() jose.JSONWebKeySet { return t.jwks }

// Issue returns a token for one of the principal's agents. The caller must have checked with
// [Store.CheckAgent] that the agent belongs to the principal's account.
func (t *WidgetTokens) Issue(p Principal, agentID uuid.UUID) (string, error) {
	now := t.now().Unix()
	claims, err := json.Marshal(WidgetClaims{
		Issuer: t.issuer, Audience: widgetTokenAudience, Subject: p.AccountID.String(), ClientID: p.KeyID.String(),
		AgentID: agentID.String(), Scope: widgetTokenScope, IssuedAt: now,
		NotBefore: now - int64(verifierSkew/time.Second), ExpiresAt: now + int64(t.ttl/time.Second), ID: uuid.NewString(),
	})
	if err != nil {
		return "", fmt.Errorf("encode widget token: %w", err)
	}
	token := make([]byte, 0, maxTokenLength/4)
	token = append(append(token, t.header...), '.')
	token = base64.RawURLEncoding.AppendEncode(token, claims)
	signature, err := t.sign(string(token))
	if err != nil {
		return "", fmt.Errorf("sign widget token: %w", err)
	}
	return string(base64.RawURLEncoding.AppendEncode(append(token, '.'), signature)), nil
}

// encodedHeader returns the first part of every token that the key with this id signs.
func encodedHeader(kid string) string {
	header, err := json.Marshal(struct {
		Type      string `json:"typ"`
		Algorithm string `json:"alg"`
		KeyID     string `json:"kid"`
	}{widgetTokenType, jwt.SigningMethodEdDSA.Alg(), kid})
	if err != nil {
		panic(err) // encoding three strings cannot fail
	}
	return base64.RawURLEncoding.EncodeToString(header)
}

// Verify returns the claims of an unexpired token that this service has issued, or
// [ErrTokenInvalid]. It does not check the key and the agent; [Store.WidgetTokenActive] does.
func (t *WidgetTokens) Verify(token string) (WidgetClaims, error) {
	// Go's base64 ignores line breaks, even in strict mode.
	if len(token) > maxTokenLength || strings.ContainsAny(token, "\r\n") {
		return WidgetClaims{}, ErrTokenInvalid
	}
	var claims WidgetClaims
	_, err := t.parser.ParseWithClaims(token, &claims, func(parsed *jwt.Token) (any, error) {
		// The library checks neither header (RFC 9068 section 4, RFC 7515 section 4.1.11).
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

// WidgetTokenActive reports whether a verified token is still active: it belongs to this account,
// the key that requested it is not revoked, and its agent exists. The error may be
// [ErrUnavailable].
func (s *Store) WidgetTokenActive(ctx context.Context, accountID uuid.UUID, claims WidgetClaims) (bool, error) {
	keyID, keyErr := uuid.Parse(claims.ClientID)
	agentID, agentErr := uuid.Parse(claims.AgentID)
	if keyErr != nil || agentErr != nil || claims.Subject != accountID.String() {
		return false, nil
	}
	active, err := s.api.NewSelect().Model((*APIKey)(nil)).
		Join("JOIN agents AS agent ON agent.account_id = api_key.account_id AND agent.id = ?", agentID).
		Where("api_key.account_id = ? AND api_key.id = ? AND api_key.revoked_at IS NULL", accountID, keyID).
		Exists(ctx)
	return active, failed("look up a token's key", err)
}

// thumbprint returns the id of a key (RFC 7638).
func thumbprint(jwk jose.JSONWebKey) string {
	sum, err := jwk.Thumbprint(crypto.SHA256)
	if err != nil {
		// go-jose fails only for key types that it does not support.
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(sum)
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
