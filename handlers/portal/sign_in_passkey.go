package portal

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"portal/handlers/problem"
	"portal/models"
)

const passkeySignInPath = signInPath + "/passkey"

// passkeySignInOptions returns the options with which a browser signs in. They do not depend on the
// user.
func (p *signInPages) passkeySignInOptions(c *gin.Context) error {
	options, challenge, err := p.passkeys.BeginDiscoverableLogin()
	if err != nil {
		return err
	}
	return p.passkeys.sendOptions(c, options, challenge)
}

// signInWithPasskey signs in the user whose passkey has answered the challenge.
func (p *signInPages) signInWithPasskey(c *gin.Context) error {
	form := p.form(p.destination(c.PostForm("next")))
	passkey, challenge, err := p.verifyPasskey(c)
	var signedIn models.SignedIn
	if err == nil {
		signedIn, err = p.signIns.WithPasskey(c.Request.Context(), passkey, challenge, p.newClient(c))
	}
	switch {
	case err == nil:
		return p.signedIn(c, signedIn, form.Next)
	case errors.Is(err, models.ErrPasskeyNotFound), errors.Is(err, models.ErrChallengeUsed):
		form.Problem = "This passkey was not accepted. Try again, or sign in another way."
	case errors.Is(err, models.ErrSignInDisabled):
		form.Problem = problem.From(err).Message
	default:
		return err
	}
	return p.reply(c, reply{status: http.StatusUnprocessableEntity, fragment: form, page: present(p.page(form))})
}

// verifyPasskey checks the answer in the form and returns the passkey with its new counter, and the
// challenge. If the answer is not valid, the error is [models.ErrPasskeyNotFound].
func (p *signInPages) verifyPasskey(c *gin.Context) (models.Passkey, string, error) {
	challenge, known := p.passkeys.takeChallenge(c)
	answer, err := protocol.ParseCredentialRequestResponseBytes([]byte(c.PostForm(credentialField)))
	if !known || err != nil {
		return models.Passkey{}, "", models.ErrPasskeyNotFound
	}
	passkey, err := p.credentials.FindPasskey(c.Request.Context(), answer.RawID)
	if err != nil {
		return models.Passkey{}, "", err
	}
	user := passkeyUser{session: models.Session{UserID: passkey.UserID}}
	if user.credentials, err = credentialsOf(passkey); err != nil {
		return models.Passkey{}, "", err
	}
	credential, err := p.passkeys.ValidateDiscoverableLogin(
		func(_, _ []byte) (webauthn.User, error) { return user, nil }, challenge, answer)
	if err != nil || credential.Authenticator.CloneWarning {
		return models.Passkey{}, "", models.ErrPasskeyNotFound
	}
	record, err := json.Marshal(credential)
	passkey.Credential, passkey.SignCount = string(record), int64(credential.Authenticator.SignCount)
	return passkey, challenge.Challenge, err
}
