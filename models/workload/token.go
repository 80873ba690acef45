package workload

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4"

	"portal/models/keyset"
)

// MaxToken is the longest subject token, in bytes.
const MaxToken = 16 << 10

const (
	maxLife = 24*time.Hour + 5*time.Minute // of a subject token
	leeway  = 60 * time.Second             // of iat and nbf, because clocks differ
)

// ErrInvalid means that a token is malformed or forged.
var ErrInvalid = errors.New("the subject token is invalid")

// algorithms are those of subject tokens. None is symmetric.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.ES256, jose.ES384, jose.EdDSA, keyset.Ed25519,
}

// Token is a subject token whose signature is not verified yet.
type Token struct {
	KeyID  string
	Issuer string

	algorithm jose.SignatureAlgorithm
	text      string
	parsed    *jose.JSONWebSignature
}

// Parse returns a token of three parts with an accepted header, or [ErrInvalid].
func Parse(text string) (*Token, error) {
	parts := strings.Split(text, ".")
	if len(text) > MaxToken || len(parts) != 3 {
		return nil, ErrInvalid
	}
	var decoded [3][]byte
	for i, part := range parts {
		var err error
		// Go's base64 ignores line breaks, even in strict mode.
		if decoded[i], err = base64.RawURLEncoding.Strict().DecodeString(part); err != nil || part == "" || strings.ContainsAny(part, "\r\n") {
			return nil, ErrInvalid
		}
	}
	header, headerErr := parseObject(decoded[0])
	claims, claimsErr := parseObject(decoded[1])
	if headerErr != nil || claimsErr != nil {
		return nil, ErrInvalid
	}
	for _, name := range []string{"jku", "x5u", "jwk", "crit"} {
		if _, present := header[name]; present {
			return nil, ErrInvalid
		}
	}
	parsed, err := jose.ParseSignedCompact(text, algorithms)
	if err != nil || len(parsed.Signatures) != 1 {
		return nil, ErrInvalid
	}
	keyID, _ := header["kid"].(string)
	algorithm := keyset.Algorithm(parsed.Signatures[0].Header.Algorithm)
	issuer, _ := claims["iss"].(string)
	if keyID == "" || issuer == "" {
		return nil, ErrInvalid
	}
	return &Token{KeyID: keyID, Issuer: issuer, algorithm: algorithm, text: text, parsed: parsed}, nil
}

// Verify returns the claims of the token if one of the keys verifies its signature, or
// [ErrInvalid].
func (t *Token) Verify(keys []jose.JSONWebKey) (Claims, error) {
	for _, key := range keys {
		if key.Algorithm != "" && key.Algorithm != string(t.algorithm) {
			continue
		}
		payload, err := keyset.Verify(key, t.text, t.parsed)
		if err != nil {
			continue
		}
		values, err := parseObject(payload)
		if err != nil {
			return Claims{}, ErrInvalid
		}
		return Claims{values: values}, nil
	}
	return Claims{}, ErrInvalid
}

// parseObject returns the fields of exactly one JSON object.
func parseObject(text []byte) (fields map[string]any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if !json.Valid(text) || !utf8.Valid(text) || decoder.Decode(&fields) != nil || fields == nil {
		return nil, ErrInvalid
	}
	return fields, nil
}

// Claims are the claims of a token with a right signature.
type Claims struct{ values map[string]any }

// Check returns "" if the rule and the pins accept the claims now, and otherwise the reason, such
// as "environment is staging". No pins means that none are set yet.
func (c Claims) Check(r Rule, pins map[string]string, now time.Time) string {
	for _, reason := range []func() string{
		func() string { return c.checkAudience(r.Audience) },
		func() string { return c.checkTimes(now) },
		func() string { return c.checkValues(r) },
		func() string { return c.checkPins(pins) },
	} {
		if text := reason(); text != "" {
			return text
		}
	}
	for name := range c.pinned(r) {
		if _, present := c.value(name); !present {
			return name + " is missing"
		}
	}
	if r.SingleUse() && c.ID() == "" {
		return "jti is missing"
	}
	return ""
}

func (c Claims) checkAudience(want string) string {
	audience := c.values["aud"]
	if list, ok := audience.([]any); ok {
		if len(list) != 1 {
			return fmt.Sprintf("aud has %d values", len(list))
		}
		audience = list[0]
	}
	text, ok := audience.(string)
	if !ok {
		return "aud is missing"
	}
	if text != want {
		return "aud is " + shown(text)
	}
	return ""
}

func (c Claims) checkTimes(now time.Time) string {
	issued, hasIssued := c.time("iat")
	expires, hasExpiry := c.time("exp")
	switch {
	case !hasIssued:
		return "iat is missing"
	case !hasExpiry:
		return "exp is missing"
	case !now.Before(expires):
		return "the token expired at " + expires.UTC().Format(time.RFC3339)
	case issued.After(now.Add(leeway)):
		return "iat is in the future"
	case expires.Sub(issued) > maxLife:
		return "the token is valid for more than 24 hours and 5 minutes"
	case !expires.After(issued):
		return "exp is not after iat"
	}
	from, hasStart := c.time("nbf")
	switch {
	case hasStart && from.After(now.Add(leeway)):
		return "nbf is in the future"
	case !hasStart && c.values["nbf"] != nil && c.values["nbf"] != json.Number("0"):
		return "nbf is not a time"
	}
	return ""
}

func (c Claims) checkValues(r Rule) string {
	for _, name := range slices.Sorted(maps.Keys(r.Claims)) {
		value, present := c.value(name)
		if !present {
			return name + " is missing"
		}
		if !slices.Contains(r.Claims[name], value) {
			return name + " is " + shown(value)
		}
	}
	if _, byEmail := r.Claims["email"]; byEmail && r.Provider == Google {
		if verified, _ := c.value("email_verified"); verified != "true" {
			return "email is not verified"
		}
	}
	return ""
}

func (c Claims) checkPins(pins map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(pins)) {
		value, present := c.value(name)
		switch {
		case !present:
			return name + " is missing"
		case value != pins[name]:
			return name + " is " + shown(value) + " instead of " + shown(pins[name])
		}
	}
	return ""
}

// Pins returns the values that the first exchange pins, or nil if the provider has none.
func (c Claims) Pins(r Rule) map[string]string { return c.pinned(r) }

func (c Claims) pinned(r Rule) map[string]string {
	platform, _ := r.Provider.Platform()
	var pins map[string]string
	for _, name := range platform.pins {
		if pins == nil {
			pins = map[string]string{}
		}
		pins[name], _ = c.value(name)
	}
	return pins
}

// ID returns the claim jti, or "" if it is missing.
func (c Claims) ID() string {
	id, _ := c.values["jti"].(string)
	return id
}

// ExpiresAt returns the claim exp of claims that [Claims.Check] has accepted.
func (c Claims) ExpiresAt() time.Time {
	at, _ := c.time("exp")
	return at
}

// value returns a string, or the JSON text of a number or boolean.
func (c Claims) value(name string) (string, bool) {
	switch value := c.values[name].(type) {
	case string:
		return value, true
	case json.Number:
		return value.String(), true
	case bool:
		return fmt.Sprint(value), true
	}
	return "", false
}

// latestTime is the last second that is taken for a time.
const latestTime = 1 << 40

func (c Claims) time(name string) (time.Time, bool) {
	number, ok := c.values[name].(json.Number)
	seconds, err := number.Float64()
	if !ok || err != nil || seconds < 1 || seconds > latestTime {
		return time.Time{}, false
	}
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(part*float64(time.Second))), true
}

// maxShown is how much of a foreign value a reason has, in characters.
const maxShown = 100

// shown returns a foreign value for people to read.
func shown(value string) string {
	if value == "" {
		return "empty"
	}
	runes := []rune(strings.Map(func(r rune) rune {
		if !printable(string(r)) && r != ' ' {
			return '\uFFFD'
		}
		return r
	}, value))
	if len(runes) > maxShown {
		return string(runes[:maxShown]) + "…"
	}
	return string(runes)
}
