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
	"portal/templates"
)

const (
	passkeysPath      = "/account/passkeys"
	passkeySignInPath = "/login/passkey"
)

const (
	// credentialField is the name of the field with the browser's answer, as JSON.
	credentialField = "credential"
	// paramConfirmed is set after the user has confirmed the sign-in to add a passkey.
	paramConfirmed = "confirmed"
)

// passkeyOptions returns the options with which a browser creates a passkey.
func (p *Portal) passkeyOptions(c *gin.Context) error {
	passkeys, err := p.store.Credentials.Passkeys(c.Request.Context(), sessionFrom(c))
	if err != nil {
		return err
	}
	user := passkeyUser{session: sessionFrom(c)}
	if user.credentials, err = credentialsOf(passkeys...); err != nil {
		return err
	}
	options, challenge, err := p.webauthn.BeginRegistration(user,
		webauthn.WithExclusions(webauthn.Credentials(user.credentials).CredentialDescriptors()))
	if err != nil {
		return err
	}
	return p.sendOptions(c, options, challenge)
}

// createPasskey stores the passkey that the browser has created. If the form came without one,
// because the user first had to enter the password, it redirects to the page with the button.
func (p *Portal) createPasskey(c *gin.Context) error {
	if c.PostForm(credentialField) == "" {
		page := accountPath
		if sessionFrom(c).FactorDue {
			page = secondFactorPath
		}
		return p.redirect(c, page+"?"+paramConfirmed+"=passkey")
	}
	challenge, known := p.takeChallenge(c)
	answer, err := protocol.ParseCredentialCreationResponseBytes([]byte(c.PostForm(credentialField)))
	if !known || err != nil {
		return p.passkeyRefused(c)
	}
	session := sessionFrom(c)
	credential, err := p.webauthn.CreateCredential(passkeyUser{session: session}, challenge, answer)
	if err != nil {
		return p.passkeyRefused(c)
	}
	record, err := json.Marshal(credential)
	if err != nil {
		return err
	}
	err = p.store.Credentials.AddPasskey(c.Request.Context(), session, models.Passkey{
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

func (p *Portal) passkeyRefused(c *gin.Context) error {
	return p.redirectWith(c, accountPath, "The passkey could not be added. Try again.")
}

// removePasskey removes one of the user's passkeys.
func (p *Portal) removePasskey(c *gin.Context) error {
	id, err := idOf(c)
	if err != nil {
		return err
	}
	err = p.store.Credentials.RemovePasskey(c.Request.Context(), sessionFrom(c), id, actorOf(c))
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

// passkeySignInOptions returns the options with which a browser signs in. They do not depend on the
// user.
func (p *Portal) passkeySignInOptions(c *gin.Context) error {
	options, challenge, err := p.webauthn.BeginDiscoverableLogin()
	if err != nil {
		return err
	}
	return p.sendOptions(c, options, challenge)
}

// leadToSignIn redirects to the sign-in page. After a refused passkey, the browser shows the
// address of the form, and requests it when the user enters it again.
func (p *Portal) leadToSignIn(c *gin.Context) error { return p.redirect(c, signInPath) }

// signInWithPasskey signs in the user whose passkey has answered the challenge.
func (p *Portal) signInWithPasskey(c *gin.Context) error {
	form := p.signInForm(p.destination(c.PostForm("next")))
	passkey, challenge, err := p.verifyPasskey(c)
	var signedIn models.SignedIn
	if err == nil {
		signedIn, err = p.store.SignIn.WithPasskey(c.Request.Context(), passkey, challenge, p.newClient(c))
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
	return p.reply(c, reply{status: http.StatusUnprocessableEntity, fragment: form, page: present(p.signInPage(form))})
}

// verifyPasskey checks the answer in the form. It returns the passkey with its new counter, and the
// challenge. The error is [models.ErrPasskeyNotFound] if the answer is not valid.
func (p *Portal) verifyPasskey(c *gin.Context) (models.Passkey, string, error) {
	challenge, known := p.takeChallenge(c)
	answer, err := protocol.ParseCredentialRequestResponseBytes([]byte(c.PostForm(credentialField)))
	if !known || err != nil {
		return models.Passkey{}, "", models.ErrPasskeyNotFound
	}
	passkey, err := p.store.Credentials.FindPasskey(c.Request.Context(), answer.RawID)
	if err != nil {
		return models.Passkey{}, "", err
	}
	user := passkeyUser{session: models.Session{UserID: passkey.UserID}}
	if user.credentials, err = credentialsOf(passkey); err != nil {
		return models.Passkey{}, "", err
	}
	credential, err := p.webauthn.ValidateDiscoverableLogin(
		func(_, _ []byte) (webauthn.User, error) { return user, nil }, challenge, answer)
	if err != nil || credential.Authenticator.CloneWarning {
		return models.Passkey{}, "", models.ErrPasskeyNotFound
	}
	record, err := json.Marshal(credential)
	passkey.Credential, passkey.SignCount = string(record), int64(credential.Authenticator.SignCount)
	return passkey, challenge.Challenge, err
}

// passkeyItems returns the passkeys of the account page.
func (p *Portal) passkeyItems(c *gin.Context) (items []templates.PasskeyItem, err error) {
	passkeys, err := p.store.Credentials.Passkeys(c.Request.Context(), sessionFrom(c))
	for _, passkey := range passkeys {
		item := templates.PasskeyItem{ID: passkey.ID, Name: passkey.Name, Created: templates.NewMoment(passkey.CreatedAt, p.now())}
		if passkey.LastUsedAt != nil {
			used := templates.NewMoment(*passkey.LastUsedAt, p.now())
			item.Used = &used
		}
		items = append(items, item)
	}
	return items, err
}
