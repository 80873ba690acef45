package widget_test

import (
	"strings"
	"testing"

	"portal/models/widget"
)

func TestRotatedSecret(t *testing.T) {
	t.Parallel()
	clock := newClock()
	before := widgetTokens(t, clock, oldSecret, "")
	during := widgetTokens(t, clock, newSecret, oldSecret)
	after := widgetTokens(t, clock, newSecret, "")
	kid := func(token string) any { return decode(t, strings.Split(token, ".")[0])["kid"] }
	grant := newGrant()
	oldToken, newToken := issue(t, before, grant), issue(t, during, grant)
	if kid(newToken) != kid(issue(t, after, grant)) || kid(newToken) == kid(oldToken) {
		t.Error("the previous secret signs")
	}
	for name, test := range map[string]struct {
		tokens *widget.Tokens
		token  string
		want   error
	}{
		"old token, before":         {before, oldToken, nil},
		"old token, during":         {during, oldToken, nil},
		"old token, after":          {after, oldToken, widget.ErrInvalid},
		"new token, before":         {before, newToken, widget.ErrInvalid},
		"new token, during":         {during, newToken, nil},
		"new token, after":          {after, newToken, nil},
		"new token, other instance": {widgetTokens(t, clock, newSecret, oldSecret), newToken, nil},
	} {
		checkError(t, name, errOf(test.tokens.Verify(test.token)), test.want)
	}
	// A token with the id of the current key, but signed with the previous one.
	forged := forger{decode(t, strings.Split(newToken, ".")[0]), decode(t, strings.Split(newToken, ".")[1]), widget.PrivateKeys(keyring(t, oldSecret, ""), widget.EdDSA)[0]}
	checkError(t, "signed with the previous key", errOf(during.Verify(forged.token(t))), widget.ErrInvalid)
}

// The steps of a change from EdDSA to ES256 for several instances.
func TestTokensOfEveryAlgorithmVerifyOnEveryInstance(t *testing.T) {
	t.Parallel()
	clock := newClock()
	lists := [][]widget.Algorithm{
		{widget.EdDSA}, {widget.EdDSA, widget.ES256}, {widget.ES256, widget.EdDSA}, {widget.ES256},
	}
	for _, signing := range lists {
		for _, secrets := range [][2]string{{newSecret, ""}, {newSecret, oldSecret}, {oldSecret, newSecret}} {
			token := issue(t, widgetTokens(t, clock, secrets[0], secrets[1], signing...), newGrant())
			if alg := decode(t, strings.Split(token, ".")[0])["alg"]; alg != string(signing[0]) {
				t.Errorf("%v: signed with %v", signing, alg)
			}
			for _, verifying := range lists {
				other := widgetTokens(t, clock, newSecret, oldSecret, verifying...)
				if _, err := other.Verify(token); err != nil {
					t.Errorf("signed by %v, verified by %v: %v", signing, verifying, err)
				}
			}
		}
	}
}
