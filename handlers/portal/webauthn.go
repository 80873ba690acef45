package portal

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"portal/models"
)

// newWebAuthn returns the relying party of passkeys, or nil if browsers offer no passkeys at this
// base URL: at an IP address, or without https except on localhost.
func newWebAuthn(base *url.URL, product string) (*webauthn.WebAuthn, error) {
	host := strings.ToLower(base.Hostname())
	_, err := netip.ParseAddr(host)
	local := host == "localhost" || strings.HasSuffix(host, ".localhost")
	if err == nil || base.Scheme != "https" && !local {
		return nil, nil //nolint:nilnil // documented above
	}
	return webauthn.New(&webauthn.Config{
		RPID: host, RPDisplayName: product, RPOrigins: []string{base.Scheme + "://" + base.Host},
		AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			ResidentKey: protocol.ResidentKeyRequirementRequired, UserVerification: protocol.VerificationRequired,
		},
	})
}

// sendOptions sends the options of a WebAuthn call as JSON, and their challenge as a cookie. The
// database remembers answered challenges, so that each works once.
func (p *Portal) sendOptions(c *gin.Context, options any, challenge *webauthn.SessionData) error {
	text, err := json.Marshal(options)
	if err != nil {
		return err
	}
	if err := p.challenges.set(c, challenge); err != nil {
		return err
	}
	c.Header("Cache-Control", "no-store")
	c.Data(http.StatusOK, "application/json", text)
	return nil
}

// takeChallenge returns the challenge of the browser and deletes its cookie. It returns false if
// the cookie is missing, forged or too old.
func (p *Portal) takeChallenge(c *gin.Context) (challenge webauthn.SessionData, known bool) {
	known = p.challenges.get(c, &challenge)
	p.challenges.drop(c)
	return challenge, known
}

// passkeyUser is a user as the WebAuthn library sees it.
type passkeyUser struct {
	session     models.Session
	credentials []webauthn.Credential
}

func (u passkeyUser) WebAuthnID() []byte                         { return u.session.UserID[:] }
func (u passkeyUser) WebAuthnName() string                       { return u.session.Email }
func (u passkeyUser) WebAuthnDisplayName() string                { return u.session.Email }
func (u passkeyUser) WebAuthnCredentials() []webauthn.Credential { return u.credentials }

// credentialsOf returns the credential records of passkeys.
func credentialsOf(passkeys ...models.Passkey) ([]webauthn.Credential, error) {
	credentials := make([]webauthn.Credential, len(passkeys))
	for i, passkey := range passkeys {
		if err := json.Unmarshal([]byte(passkey.Credential), &credentials[i]); err != nil {
			return nil, err
		}
	}
	return credentials, nil
}
