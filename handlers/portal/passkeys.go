package portal

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"portal/handlers/deps"
	"portal/handlers/middleware"
	"portal/models/people"
)

// credentialField is the name of the field with the browser's answer, as JSON.
const credentialField = "credential"

type relyingParty struct {
	*webauthn.WebAuthn

	cookies cookies // with the challenges that the browser's passkeys must answer
}

// OffersPasskeys reports whether browsers offer passkeys at a base URL: not at an IP address, and
// without https only on localhost. The library refuses other names without a dot.
func OffersPasskeys(baseURL *url.URL) bool {
	host := strings.ToLower(baseURL.Hostname())
	_, err := netip.ParseAddr(host)
	local := host == "localhost" || strings.HasSuffix(host, ".localhost")
	return local || err != nil && baseURL.Scheme == "https" && strings.Contains(host, ".")
}

// newRelyingParty returns nil if browsers offer no passkeys at the base URL.
func newRelyingParty(d deps.Deps, k cookies) (*relyingParty, error) {
	if !OffersPasskeys(d.BaseURL) {
		return nil, nil //nolint:nilnil // documented above
	}
	host := strings.ToLower(d.BaseURL.Hostname())
	party, err := webauthn.New(&webauthn.Config{
		RPID: host, RPDisplayName: d.Name, RPOrigins: []string{middleware.Origin(d.BaseURL)},
		AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			ResidentKey: protocol.ResidentKeyRequirementRequired, UserVerification: protocol.VerificationRequired,
		},
	})
	return &relyingParty{party, k}, err
}

// sendOptions sends the options of a WebAuthn call as JSON, and their challenge as a cookie. The
// database remembers answered challenges, so that each works once.
func (p *relyingParty) sendOptions(c *gin.Context, options any, challenge *webauthn.SessionData) error {
	text, err := json.Marshal(options)
	if err != nil {
		return err
	}
	if err := p.cookies.add(c, challengeCookie, challenge.Challenge, challenge); err != nil {
		return err
	}
	c.Header("Cache-Control", "no-store")
	c.Data(http.StatusOK, "application/json", text)
	return nil
}

// takeChallenge returns the challenge that the browser has answered, and deletes it there. It
// returns false if the browser has none, or a forged or old one.
func (p *relyingParty) takeChallenge(c *gin.Context, answered protocol.CollectedClientData) (challenge webauthn.SessionData, known bool) {
	known = p.cookies.take(c, challengeCookie, answered.Challenge, &challenge)
	return challenge, known
}

// errPasskeyRefused is the error of an answer that the portal does not accept.
var errPasskeyRefused = errors.New("the passkey was refused")

var (
	errChallengeUnknown = errors.New("its challenge is older than 5 minutes, of another browser or answered before")
	errCounter          = errors.New("its signature counter has not grown, so it may be a copy")
)

// refusedBecause returns an errPasskeyRefused with the cause in words.
func refusedBecause(cause error) error {
	text := cause.Error()
	if detailed, ok := errors.AsType[*protocol.Error](cause); ok && detailed.DevInfo != "" {
		text += ": " + strings.TrimSpace(detailed.DevInfo)
	}
	if inner := errors.Unwrap(cause); inner != nil && !strings.Contains(text, inner.Error()) {
		text += ": " + inner.Error()
	}
	return fmt.Errorf("%w: %.500s", errPasskeyRefused, text)
}

// ignoreCopies makes an answer agree with its credential, which may be nil, on whether the passkey
// is copied to other devices, which the portal does not use. The library refuses a change, but
// password managers change it. It also removes the counter of a passkey that can be copied: each
// copy counts by itself.
func ignoreCopies(credential *webauthn.Credential, data *protocol.AuthenticatorData) {
	copied := data.Flags.HasBackupEligible()
	if copied {
		data.Counter = 0
	} else {
		data.Flags &^= protocol.FlagBackupState
	}
	if credential != nil {
		credential.Flags.BackupEligible = copied
		if copied {
			credential.Authenticator.SignCount = 0
		}
	}
}

// passkeyUser is a user as the WebAuthn library sees it.
type passkeyUser struct {
	session     people.Session
	credentials []webauthn.Credential
}

func (u passkeyUser) WebAuthnID() []byte                         { return u.session.UserID[:] }
func (u passkeyUser) WebAuthnName() string                       { return u.session.Email }
func (u passkeyUser) WebAuthnDisplayName() string                { return u.session.Email }
func (u passkeyUser) WebAuthnCredentials() []webauthn.Credential { return u.credentials }

// credentialsOf returns the credential records of passkeys.
func credentialsOf(passkeys ...people.Passkey) ([]webauthn.Credential, error) {
	credentials := make([]webauthn.Credential, len(passkeys))
	for i, passkey := range passkeys {
		if err := json.Unmarshal([]byte(passkey.Credential), &credentials[i]); err != nil {
			return nil, err
		}
	}
	return credentials, nil
}
