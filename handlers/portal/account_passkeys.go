package portal

import (
	"encoding/json"
	"errors"

	"github.com/gin-gonic/gin"
	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"portal/handlers/problem"
	"portal/models"
	"portal/templates"
)

// passkeyOptions returns the options with which a browser creates a passkey.
func (p *accountPages) passkeyOptions(c *gin.Context) error {
	passkeys, err := p.credentials.Passkeys(c.Request.Context(), sessionFrom(c))
	if err != nil {
		return err
	}
	user := passkeyUser{session: sessionFrom(c)}
	if user.credentials, err = credentialsOf(passkeys...); err != nil {
		return err
	}
	options, challenge, err := p.passkeys.BeginRegistration(user,
		webauthn.WithExclusions(webauthn.Credentials(user.credentials).CredentialDescriptors()))
	if err != nil {
		return err
	}
	return p.passkeys.sendOptions(c, options, challenge)
}

// createPasskey stores the passkey that the browser has created. If the form came without one,
// because the user first had to enter the password, it redirects to the page with the button.
func (p *accountPages) createPasskey(c *gin.Context) error {
	if c.PostForm(credentialField) == "" {
		page := accountPath
		if sessionFrom(c).FactorDue {
			page = secondFactorPath
		}
		return p.redirect(c, page+"?"+paramConfirmed+"=passkey")
	}
	challenge, known := p.passkeys.takeChallenge(c)
	answer, err := protocol.ParseCredentialCreationResponseBytes([]byte(c.PostForm(credentialField)))
	if !known || err != nil {
		return p.passkeyRefused(c)
	}
	session := sessionFrom(c)
	credential, err := p.passkeys.CreateCredential(passkeyUser{session: session}, challenge, answer)
	if err != nil {
		return p.passkeyRefused(c)
	}
	record, err := json.Marshal(credential)
	if err != nil {
		return err
	}
	err = p.credentials.AddPasskey(c.Request.Context(), session, models.Passkey{
		CredentialID: credential.ID, Credential: string(record), SignCount: int64(credential.Authenticator.SignCount),
		Name: templates.Device(c.Request.UserAgent()),
	}, challenge.Challenge, actorOf(c))
	switch {
	case errors.Is(err, models.ErrPasskeyLimit):
		return p.redirectWith(c, accountPath, "You have 10 passkeys, which is the limit. Remove one first.")
	case errors.Is(err, models.ErrPasskeyTaken), errors.Is(err, models.ErrChallengeUsed):
		return p.passkeyRefused(c)
	case err != nil:
		return err
	}
	return p.redirectWith(c, accountPath, "Passkey added.")
}

func (p *accountPages) passkeyRefused(c *gin.Context) error {
	return p.redirectWith(c, accountPath, "The passkey could not be added. Try again.")
}

// removePasskey removes one of the user's passkeys.
func (p *accountPages) removePasskey(c *gin.Context) error {
	err := p.credentials.RemovePasskey(c.Request.Context(), sessionFrom(c), idOf(c), actorOf(c))
	switch {
	case errors.Is(err, models.ErrOnlySignIn):
		return p.redirectWith(c, accountPath, "This is your only way to sign in. Set a password or add another passkey first.")
	case errors.Is(err, models.ErrPasskeyNotFound):
		return problem.NotFound()
	case err != nil:
		return err
	}
	return p.redirectWith(c, accountPath, "Passkey removed. Signed out of all other sessions.")
}
