package workload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"portal/models/keyset"
)

// Limits of a rule.
const (
	MaxClaims = 10       // of a rule, and values of a claim
	MaxJWKS   = 16 << 10 // bytes of pasted public keys

	maxIssuer   = 500 // bytes
	maxAudience = 500
	maxName     = 100
	maxValue    = 500
)

// Rule says whose tokens are accepted: those of one issuer, for one audience, with these claims. It
// has no wildcards, because a pattern such as acme* also matches what others control.
type Rule struct {
	Provider Provider `json:"provider"`
	Issuer   string   `json:"issuer"`
	Audience string   `json:"audience"`
	// A token has one of the values of each.
	Claims map[string][]string `json:"claims"`
	// Of an issuer whose keys are not fetched.
	JWKS json.RawMessage `json:"jwks,omitempty"`
}

// Problem is a mistake in a rule.
type Problem struct {
	// Provider, issuer, audience, claims, jwks, or claims. and the name of a claim.
	Field   string
	Message string // for the user; says what to do
}

// Reserved are the claims that every token has for itself. No rule has a value of them.
var reserved = []string{"iss", "aud", "exp", "iat", "nbf", "jti"}

// Clean returns the rule in its one form, without repeated values, and its mistakes.
func (r Rule) Clean(issuers Issuers) (Rule, []Problem) {
	var problems []Problem
	refuse := func(field, message string) { problems = append(problems, Problem{field, message}) }
	platform, ok := r.Provider.Platform()
	if !ok {
		refuse("provider", "Choose one of the providers.")
		return r, problems
	}
	r.checkIssuer(platform, issuers, refuse)
	if r.Audience == "" || len(r.Audience) > maxAudience || !printable(r.Audience) {
		refuse("audience", fmt.Sprintf("Enter an audience of 1 to %d characters.", maxAudience))
	}
	if len(r.JWKS) > 0 && !issuers.Fetched(r.Issuer) {
		r.JWKS = r.cleanJWKS(refuse)
	}
	r.Claims = r.cleanClaims(refuse)
	r.checkIdentified(platform, refuse)
	return r, problems
}

func (r Rule) checkIssuer(platform Platform, issuers Issuers, refuse func(field, message string)) {
	if !CheckIssuer(r.Issuer, slices.Contains(issuers.Own, r.Issuer)) {
		refuse("issuer", "Enter the https URL of the issuer, as the claim iss of a token has it.")
		return
	}
	own := slices.Contains(issuers.Own, r.Issuer)
	if u, err := url.Parse(r.Issuer); err == nil && !own {
		if of, known := platformOf(u); known && of.Provider != platform.Provider {
			refuse("issuer", "This is an issuer of "+of.Name+". Choose that provider.")
			return
		} else if known && !issuers.Fetched(r.Issuer) {
			refuse("issuer", "Enter the https URL of the issuer, as the claim iss of a token has it.")
			return
		}
	}
	fetched := issuers.Fetched(r.Issuer)
	switch {
	case len(r.JWKS) > 0 && fetched:
		refuse("jwks", "Leave the public keys empty: the portal fetches those of this issuer.")
	case len(r.JWKS) == 0 && !fetched:
		refuse("jwks", "Paste the public keys (JWKS) of this issuer, because the portal does not fetch them.")
	}
}

func (r Rule) cleanJWKS(refuse func(field, message string)) json.RawMessage {
	if len(r.JWKS) > MaxJWKS {
		refuse("jwks", fmt.Sprintf("The public keys must have at most %d bytes.", MaxJWKS))
		return r.JWKS
	}
	set, err := keyset.ParseNamed(r.JWKS)
	var public []byte // Other members are not stored: they could be private.
	if err == nil {
		public, err = set.JSON()
	}
	if set.Private {
		refuse("jwks", "These keys are private. Paste the public keys only, and replace the private ones, because others may have seen them.")
		return nil
	}
	if err != nil {
		message := `Paste a set of public keys, such as {"keys": [{"kty": "RSA", "kid": "1", ...}]}. Each has a key ID (kid).`
		if len(set.Skipped) > 0 {
			message += " None can be used: " + strings.Join(set.Skipped, "; ") + "."
		}
		refuse("jwks", message)
		return r.JWKS
	}
	return public
}

func (r Rule) cleanClaims(refuse func(field, message string)) map[string][]string {
	if len(r.Claims) == 0 || len(r.Claims) > MaxClaims {
		refuse("claims", fmt.Sprintf("Enter 1 to %d claims.", MaxClaims))
	}
	claims := make(map[string][]string, len(r.Claims))
	for _, name := range slices.Sorted(maps.Keys(r.Claims)) {
		field := "claims." + name
		switch {
		case name == "" || len(name) > maxName || !printable(name):
			refuse("claims", fmt.Sprintf("The name of a claim must have 1 to %d characters.", maxName))
			continue
		case slices.Contains(reserved, name):
			refuse(field, "The claim "+name+" cannot be in a rule. The portal checks it for every token.")
		}
		values := distinct(r.Claims[name])
		if len(values) == 0 || len(values) > MaxClaims {
			refuse(field, fmt.Sprintf("Enter 1 to %d values of %s.", MaxClaims, name))
		}
		for _, value := range values {
			switch {
			case value == "" || len(value) > maxValue || !printable(value):
				refuse(field, fmt.Sprintf("A value of %s must have 1 to %d characters, and no control characters.", name, maxValue))
			case strings.Contains(value, "*"):
				refuse(field, "Wildcards are not supported. Enter each value of "+name+" exactly.")
			}
		}
		claims[name] = values
	}
	return claims
}

// distinct returns the values without repetitions, in their order.
func distinct(values []string) (found []string) {
	seen := map[string]bool{}
	for _, value := range values {
		if !seen[value] {
			seen[value] = true
			found = append(found, value)
		}
	}
	return found
}

// checkIdentified refuses a rule that strangers at the same provider could match.
func (r Rule) checkIdentified(platform Platform, refuse func(field, message string)) {
	names := platform.identifying()
	if len(names) == 0 { // only what is reserved would not identify, which is refused
		return
	}
	if !slices.ContainsFunc(names, func(name string) bool { return len(r.Claims[name]) > 0 }) {
		refuse("claims."+names[0], "Enter a "+strings.Join(names, " or ")+". All of "+strings.TrimSuffix(platform.Name, " Actions")+
			" shares this issuer, so the rule has to name yours.")
	}
}

// printable reports whether a text is valid and has neither control characters nor characters that
// are invisible or change the order of others.
func printable(text string) bool {
	return utf8.ValidString(text) && strings.TrimSpace(text) == text && !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
	})
}

// Equal reports whether two rules in their one form are the same.
func (r Rule) Equal(other Rule) bool {
	return r.Provider == other.Provider && r.Issuer == other.Issuer && r.Audience == other.Audience &&
		maps.EqualFunc(r.Claims, other.Claims, sameValues) && bytes.Equal(r.JWKS, other.JWKS)
}

// sameValues reports whether two lists of distinct values are equal but for their order.
func sameValues(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// String returns who can use the key, such as "Jobs of acme/site in environment production".
func (r Rule) String() string {
	platform, _ := r.Provider.Platform()
	words := []string{platform.workloads}
	if r.Provider == Other {
		words = append(words, "of", r.Issuer)
	}
	named := map[string]bool{}
	tell := func(name, format string) {
		if values := r.Claims[name]; len(values) > 0 && !named[name] {
			named[name] = true
			words = append(words, strings.ReplaceAll(format, "%s", strings.Join(values, " or ")))
		}
	}
	for _, claim := range platform.Claims {
		tell(claim.Name, claim.words)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Claims)) {
		tell(name, "with "+name+" %s")
	}
	return strings.Join(words, " ")
}

// Name returns the provider and whose tokens the rule accepts, such as "GitHub Actions: acme/site".
func (r Rule) Name() string {
	platform, _ := r.Provider.Platform()
	for _, claim := range platform.identifying() {
		if values := r.Claims[claim]; len(values) > 0 {
			return platform.Name + ": " + values[0]
		}
	}
	return platform.Name
}

// SingleUse reports whether each token of the provider is accepted once.
func (r Rule) SingleUse() bool {
	platform, _ := r.Provider.Platform()
	return platform.singleUse
}
