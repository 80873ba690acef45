package portal

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"
	"github.com/gorilla/securecookie"

	"portal/models"
)

// challengeCookie holds the challenge that the browser's passkey must answer. The cookie is signed
// and expires. The database remembers answered challenges, so that each works once.
const challengeCookie = "challenge"

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

// sendOptions sends the options of a WebAuthn call as JSON, and their challenge as a cookie.
func (p *Portal) sendOptions(c *gin.Context, options any, challenge *webauthn.SessionData) error {
	value, err := securecookie.EncodeMulti(challengeCookie, challenge, p.challenges...)
	if err != nil {
		return err
	}
	text, err := json.Marshal(options)
	if err != nil {
		return err
	}
	p.cookies.set(c.Writer, challengeCookie, value, int(models.ChallengeLife/time.Second))
	c.Header("Cache-Control", "no-store")
	c.Data(http.StatusOK, "application/json", text)
	return nil
}

// takeChallenge returns the challenge of the browser and deletes its cookie. It returns false if
// the cookie is missing, forged or too old.
func (p *Portal) takeChallenge(c *gin.Context) (challenge webauthn.SessionData, known bool) {
	cookie, err := c.Request.Cookie(p.cookies.name(challengeCookie))
	if err != nil {
		return challenge, false
	}
	p.cookies.set(c.Writer, challengeCookie, "", -1)
	err = securecookie.DecodeMulti(challengeCookie, cookie.Value, &challenge, p.challenges...)
	return challenge, err == nil
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
