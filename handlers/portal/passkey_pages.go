package portal

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"portal/handlers/problem"
	"portal/models/people"
	"portal/models/value"
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
	answer, err := protocol.ParseCredentialCreationResponseBytes([]byte(c.PostForm(credentialField)))
	if err != nil {
		return p.passkeyRefused(c, refusedBecause(err))
	}
	challenge, known := p.passkeys.takeChallenge(c, answer.Response.CollectedClientData)
	if !known {
		return p.passkeyRefused(c, refusedBecause(errChallengeUnknown))
	}
	session := sessionFrom(c)
	attestation := &answer.Response.AttestationObject
	ignoreCopies(nil, &attestation.AuthData)
	// The portal asks for no attestation, and some authenticators send one that cannot be verified.
	attestation.Format, attestation.AttStatement = string(protocol.AttestationFormatNone), nil
	credential, err := p.passkeys.CreateCredential(passkeyUser{session: session}, challenge, answer)
	if err != nil {
		return p.passkeyRefused(c, refusedBecause(err))
	}
	record, err := json.Marshal(credential)
	if err != nil {
		return err
	}
	err = p.credentials.AddPasskey(c.Request.Context(), session, people.Passkey{
		CredentialID: credential.ID, Credential: string(record), SignCount: int64(credential.Authenticator.SignCount),
		Name: templates.Device(c.Request.UserAgent()),
	}, challenge.Challenge, actorOf(c))
	switch {
	case errors.Is(err, value.ErrPasskeyLimit):
		return p.redirectWith(c, accountPath, "You have 10 passkeys, which is the limit. Remove one first.")
	case errors.Is(err, value.ErrPasskeyTaken), errors.Is(err, value.ErrChallengeUsed):
		return p.passkeyRefused(c, err)
	case err != nil:
		return err
	}
	return p.redirectWith(c, accountPath, "Passkey added.")
}

// passkeyRefused logs the cause, and leads back to the page.
func (p *accountPages) passkeyRefused(c *gin.Context, cause error) error {
	_ = c.Error(cause)
	return p.redirectWith(c, accountPath, "The passkey could not be added. Try again.")
}

// newPasskeyRemoval asks whether to remove one of the user's passkeys.
func (p *accountPages) newPasskeyRemoval(c *gin.Context) error { return p.askPasskeyRemoval(c, false) }

// askPasskeyRemoval shows the confirmation of a removal. If the passkey is the last factor, or was
// the last one when the removal was refused, it shows why the passkey stays.
func (p *accountPages) askPasskeyRemoval(c *gin.Context, refused bool) error {
	page, err := p.page(c, passwordForm(c))
	if err != nil {
		return err
	}
	passkey := page.Factors.Passkey(idOf(c))
	if passkey == nil {
		return problem.NotFound()
	}
	r := reply{page: present(page)}
	if refused || page.Factors.LastPasskey() {
		passkey.Refused, passkey.Focused, r.status = true, true, http.StatusConflict
	} else {
		passkey.Confirming = true
	}
	r.fragment = templates.PasskeySection{Factors: page.Factors}
	return p.reply(c, r)
}

// removePasskey removes one of the user's passkeys.
func (p *accountPages) removePasskey(c *gin.Context) error {
	err := p.credentials.RemovePasskey(c.Request.Context(), sessionFrom(c), idOf(c), actorOf(c))
	switch {
	case errors.Is(err, value.ErrOnlySignIn):
		return p.redirectWith(c, accountPath, "This is your only way to sign in. Set a password or add another passkey first.")
	case errors.Is(err, value.ErrLastFactor):
		return p.askPasskeyRemoval(c, true)
	case errors.Is(err, value.ErrPasskeyNotFound):
		return problem.NotFound()
	case err != nil:
		return err
	}
	return p.redirectWith(c, accountPath, "Passkey removed. You’ve been signed out everywhere else.")
}

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
	var signedIn people.SignedIn
	if err == nil {
		signedIn, err = p.signIns.WithPasskey(c.Request.Context(), passkey, challenge, p.newClient(c))
	}
	switch {
	case err == nil:
		return p.signedIn(c, signedIn, form.Next)
	case errors.Is(err, errPasskeyRefused), errors.Is(err, value.ErrPasskeyNotFound), errors.Is(err, value.ErrChallengeUsed):
		form.Problem = "This passkey was not accepted. Try again, or sign in another way."
	case errors.Is(err, value.ErrSignInDisabled), errors.Is(err, value.ErrOnlyByProvider):
		form.Problem = problem.From(err).Message
	default:
		return err
	}
	_ = c.Error(err) // for the log
	return p.reply(c, reply{status: http.StatusUnprocessableEntity, fragment: form, page: present(p.page(form))})
}

// verifyPasskey checks the answer in the form and returns the passkey with its new counter, and the
// challenge. If the answer is not valid, the error is [errPasskeyRefused].
func (p *signInPages) verifyPasskey(c *gin.Context) (people.Passkey, string, error) {
	answer, err := protocol.ParseCredentialRequestResponseBytes([]byte(c.PostForm(credentialField)))
	if err != nil {
		return people.Passkey{}, "", refusedBecause(err)
	}
	challenge, known := p.passkeys.takeChallenge(c, answer.Response.CollectedClientData)
	if !known {
		return people.Passkey{}, "", refusedBecause(errChallengeUnknown)
	}
	passkey, err := p.credentials.FindPasskey(c.Request.Context(), answer.RawID)
	if err != nil {
		return people.Passkey{}, "", err
	}
	user := passkeyUser{session: people.Session{UserID: passkey.UserID}}
	if user.credentials, err = credentialsOf(passkey); err != nil {
		return people.Passkey{}, "", err
	}
	ignoreCopies(&user.credentials[0], &answer.Response.AuthenticatorData)
	if len(answer.Response.UserHandle) == 0 { // some authenticators leave it out
		answer.Response.UserHandle = user.WebAuthnID()
	}
	credential, err := p.passkeys.ValidateDiscoverableLogin(
		func(_, _ []byte) (webauthn.User, error) { return user, nil }, challenge, answer)
	if err != nil {
		return people.Passkey{}, "", refusedBecause(err)
	}
	if credential.Authenticator.CloneWarning {
		return people.Passkey{}, "", refusedBecause(errCounter)
	}
	record, err := json.Marshal(credential)
	passkey.Credential, passkey.SignCount = string(record), int64(credential.Authenticator.SignCount)
	return passkey, challenge.Challenge, err
}
