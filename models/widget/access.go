package widget

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
)

// AccessTTL is the longest lifetime of an access token.
const AccessTTL = 15 * time.Minute

const (
	accessAudience = "api"
	// AccessScope is the scope of every access token.
	AccessScope = "api"
)

// ErrWidgetToken is [ErrInvalid] for a widget token in place of an access token.
var ErrWidgetToken = fmt.Errorf("%w: it is a widget token", ErrInvalid)

// AccessClaims are the claims of an access token, with which a workload uses an API key that has no
// secret. Times are in Unix seconds.
type AccessClaims struct {
	Issuer    string    `json:"iss"`
	Audience  string    `json:"aud"`
	AccountID uuid.UUID `json:"sub"`
	KeyID     uuid.UUID `json:"client_id"`
	Scope     string    `json:"scope"`
	Rule      uuid.UUID `json:"rule"` // the version of the key's trust rule
	IssuedAt  int64     `json:"iat"`
	ExpiresAt int64     `json:"exp"`
	ID        uuid.UUID `json:"jti"`
}

// IssueAccess returns an access token of a key with this version of its trust rule, and its claims.
// It expires after [AccessTTL], and not after the others of these times that are not zero.
func (t *Tokens) IssueAccess(accountID, keyID, rule uuid.UUID, until ...time.Time) (string, AccessClaims, error) {
	now := t.now()
	claims := AccessClaims{
		Issuer: t.issuer, Audience: accessAudience, AccountID: accountID, KeyID: keyID, Scope: AccessScope, Rule: rule,
		IssuedAt: now.Unix(), ExpiresAt: now.Add(AccessTTL).Unix(), ID: uuid.New(),
	}
	for _, end := range until {
		if !end.IsZero() {
			claims.ExpiresAt = min(claims.ExpiresAt, end.Unix())
		}
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", AccessClaims{}, err
	}
	text := t.header + "." + base64.RawURLEncoding.EncodeToString(payload)
	signature, err := t.sign([]byte(text))
	if err != nil {
		return "", AccessClaims{}, fmt.Errorf("sign access token: %w", err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), claims, nil
}

// VerifyAccess is [Tokens.Verify] for access tokens. For a widget token it returns
// [ErrWidgetToken].
func (t *Tokens) VerifyAccess(token string) (AccessClaims, error) {
	// Go's base64 ignores line breaks, even in strict mode.
	if len(token) > maxLength || strings.ContainsAny(token, "\r\n") {
		return AccessClaims{}, ErrInvalid
	}
	hash := sha256.Sum256([]byte(token))
	claims, found := t.verifiedAccess.find(hash)
	if !found {
		_, err := t.accessParser.ParseWithClaims(token, &claims, t.keyOf)
		switch {
		case errors.Is(err, jwt.ErrTokenInvalidAudience): // the signature is right
			return AccessClaims{}, ErrWidgetToken
		case errors.Is(err, jwt.ErrTokenExpired):
			return claims, ErrExpired
		case err != nil:
			return AccessClaims{}, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	if !t.now().Before(time.Unix(claims.ExpiresAt, 0)) {
		return claims, ErrExpired
	}
	if !found {
		t.verifiedAccess.add(hash, claims)
	}
	return claims, nil
}

// GetExpirationTime returns the claim exp. This and the methods below implement [jwt.Claims].
func (c AccessClaims) GetExpirationTime() (*jwt.NumericDate, error) {
	return numericDate(c.ExpiresAt), nil
}

// GetIssuedAt returns the claim iat.
func (c AccessClaims) GetIssuedAt() (*jwt.NumericDate, error) { return numericDate(c.IssuedAt), nil }

// GetNotBefore returns nil: an access token has no nbf.
func (c AccessClaims) GetNotBefore() (*jwt.NumericDate, error) { return nil, nil } //nolint:nilnil // jwt.Claims uses nil for an absent claim

// GetIssuer returns the claim iss.
func (c AccessClaims) GetIssuer() (string, error) { return c.Issuer, nil }

// GetSubject returns the claim sub.
func (c AccessClaims) GetSubject() (string, error) { return c.AccountID.String(), nil }

// GetAudience returns the claim aud.
func (c AccessClaims) GetAudience() (jwt.ClaimStrings, error) {
	return jwt.ClaimStrings{c.Audience}, nil
}
