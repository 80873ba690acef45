package portal

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"portal/handlers/middleware"
	"portal/models/value"
	"portal/templates"
)

// linkToken returns the token in the path of a link, without what people copy around it and what
// programs that look for links in texts take for a part of it.
func linkToken(c *gin.Context) string {
	return strings.TrimFunc(c.Param("token"), func(r rune) bool {
		return r >= utf8.RuneSelf || !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' && r != '_'
	})
}

// newPasswordReset shows the form that asks for a link.
func (p *signInPages) newPasswordReset(c *gin.Context) error {
	return p.sendPage(c, http.StatusOK, templates.PasswordResetsPage{})
}

// createPasswordReset asks for a link, with the same response for every email.
func (p *signInPages) createPasswordReset(c *gin.Context) error {
	form := templates.ForgottenForm{Email: value.ReadEmail(c.PostForm("email"))}
	err := p.credentials.RequestPasswordReset(c.Request.Context(), c.PostForm("email"), p.newClient(c))
	status := http.StatusOK
	invalid, isInvalid := errors.AsType[*value.InvalidError](err)
	refusal, limited := refusalOf(c, err)
	switch {
	case err == nil:
		form.Sent = true
	case limited:
		status = refusal.Status
		form.Problem = "Too many requests. Wait " + refusal.RetryAfterSeconds() + " seconds, then try again."
	case isInvalid:
		status, form.Problem = http.StatusUnprocessableEntity, invalid.Message
	default:
		return err
	}
	return p.reply(c, reply{status: status, fragment: form, page: present(templates.PasswordResetsPage{Form: form})})
}

// Opening the page of a link does not use the link, because programs that scan messages open the
// links in them.

// showPasswordReset shows the form for the new password.
func (p *signInPages) showPasswordReset(c *gin.Context) error {
	return p.askNewPassword(c, http.StatusOK, "")
}

// askNewPassword shows the form with the error of the password, or why the link does not work.
func (p *signInPages) askNewPassword(c *gin.Context, status int, message string) error {
	user, err := p.credentials.PasswordResetUser(c.Request.Context(), linkToken(c))
	if refusal, ok := refusalOf(c, err, value.ErrMailLinkInvalid, value.ErrSignInDisabled, value.ErrOnlyByProvider); ok {
		return p.sendPage(c, refusal.Status, templates.PasswordResetPage{Problem: refusal.Message})
	}
	if err != nil {
		return err
	}
	form := templates.PasswordResetForm{Email: user.Email, Action: c.Request.URL.Path, Problem: message}
	return p.reply(c, reply{status: status, fragment: form, page: present(templates.PasswordResetPage{Form: form})})
}

// usePasswordReset sets the new password and signs in. Because it waits in the queue for password
// hashing, it sets its own deadlines.
func (p *signInPages) usePasswordReset(c *gin.Context) error {
	user, err := p.credentials.UsePasswordReset(c.Request.Context(), linkToken(c), c.PostForm("new_password"), p.newClient(c))
	p.withDeadline(c, func() {
		invalid, isInvalid := errors.AsType[*value.InvalidError](err)
		switch {
		case isInvalid:
			err = p.askNewPassword(c, http.StatusUnprocessableEntity, invalid.Message)
		case errors.Is(err, value.ErrMailLinkInvalid), errors.Is(err, value.ErrSignInDisabled), errors.Is(err, value.ErrOnlyByProvider):
			err = p.redirect(c, c.Request.URL.Path) // the page says why
		case err == nil:
			err = p.start(c, user, homePath)
		}
	})
	return err
}

// emailChangePath is the path, without the token, of the links that confirm a new email.
const emailChangePath = "/email-changes"

// showEmailChange shows the button that uses the link.
func (p *signInPages) showEmailChange(c *gin.Context) error {
	email, err := p.credentials.NewEmail(c.Request.Context(), linkToken(c))
	if err != nil {
		return p.refuseEmailChange(c, err)
	}
	return p.sendPage(c, http.StatusOK, templates.EmailChangePage{Email: email, Action: c.Request.URL.Path})
}

// confirmEmail changes the email. It neither needs a session nor starts one.
func (p *signInPages) confirmEmail(c *gin.Context) error {
	email, err := p.credentials.ConfirmEmail(c.Request.Context(), linkToken(c), middleware.ClientOf(c).String())
	if err != nil {
		return p.refuseEmailChange(c, err)
	}
	return p.sendPage(c, http.StatusOK, templates.EmailChangePage{Email: email, Changed: true})
}

// refuseEmailChange shows why the link does not work. It returns err if err has another cause.
func (p *signInPages) refuseEmailChange(c *gin.Context, err error) error {
	refusal, ok := refusalOf(c, err, value.ErrMailLinkInvalid, value.ErrSignInDisabled, value.ErrEmailTaken)
	if !ok {
		return err
	}
	if errors.Is(err, value.ErrMailLinkInvalid) {
		refusal.Message = "This link has already been used or has expired. For a new link, change your email again on the Account page."
	}
	return p.sendPage(c, refusal.Status, templates.EmailChangePage{Problem: refusal.Message})
}

// paramPage is the page that a sign-in link leads to, as the name of its section.
const paramPage = "page"

// SignInLink returns the URL of the sign-in link with a token, which leads to a page; empty: the
// first one.
func (s *site) SignInLink(token, page string) string {
	address := s.baseURL.JoinPath(signInLinkPath, token)
	if page != "" {
		address.RawQuery = url.Values{paramPage: {page}}.Encode()
	}
	return address.String()
}

// showSignInLink shows the button that uses the link.
func (p *signInPages) showSignInLink(c *gin.Context) error {
	user, err := p.signIns.LinkUser(c.Request.Context(), linkToken(c))
	if err != nil {
		return p.refuseSignInLink(c, err)
	}
	page := templates.SignInLinkPage{Email: user.Email, Action: c.Request.URL.Path}
	if section := c.Query(paramPage); section != "" {
		page.Action += "?" + url.Values{paramPage: {section}}.Encode()
	}
	return p.sendPage(c, http.StatusOK, page)
}

// useSignInLink signs the user of the link in, and ends the browser's session, if there is one.
func (p *signInPages) useSignInLink(c *gin.Context) error {
	signedIn, err := p.signIns.UseLink(c.Request.Context(), linkToken(c), p.newClient(c))
	if err != nil {
		return p.refuseSignInLink(c, err)
	}
	next := homePath
	if section := c.Query(paramPage); section != "" {
		next = p.destination("/" + section)
	}
	return p.signedIn(c, signedIn, next)
}

// refuseSignInLink shows why the link does not work. If err has another cause, it returns err.
func (p *signInPages) refuseSignInLink(c *gin.Context, err error) error {
	refusal, ok := refusalOf(c, err, value.ErrLinkInvalid, value.ErrSignInDisabled)
	if !ok {
		return err
	}
	return p.sendPage(c, refusal.Status, templates.SignInLinkPage{Problem: refusal.Message})
}

// hideToken keeps the token out of the Referer header of the page's requests.
func hideToken(c *gin.Context) { c.Header("Referrer-Policy", "strict-origin") }

// showInvitation shows the form that accepts an invitation.
func (p *signInPages) showInvitation(c *gin.Context) error {
	return p.showJoinForm(c, http.StatusOK, templates.JoinForm{})
}

// join accepts an invitation: it adds the user, who is then signed in. Because it waits in the
// queue for password hashing, it sets its own deadlines.
func (p *signInPages) join(c *gin.Context) error {
	signedIn, err := p.invitations.Accept(c.Request.Context(), linkToken(c), c.PostForm("password"), p.newClient(c))
	p.withDeadline(c, func() {
		if err != nil {
			err = p.refuseToJoin(c, err)
		} else {
			err = p.signedIn(c, signedIn, homePath)
		}
	})
	return err
}

// showJoinForm shows the form of the invitation in the path, with its problem.
func (p *signInPages) showJoinForm(c *gin.Context, status int, form templates.JoinForm) error {
	invitation, err := p.invitations.Find(c.Request.Context(), linkToken(c))
	if err != nil {
		return p.refuseToJoin(c, err)
	}
	session, err := p.currentSession(c)
	if err != nil {
		return err
	}
	form.Email, form.Action = invitation.Email, c.Request.URL.Path
	form.NoPasswords = p.passwordsOff
	page := templates.JoinPage{Account: invitation.AccountName, Inviter: invitation.Inviter, Role: roleName(invitation.Role), Form: form}
	if p.oidc != nil && !p.oidc.DecidesAccess() {
		page.Provider, page.ProviderPath = p.oidc.Name(), p.oidc.joinPath(linkToken(c))
	}
	if session != nil {
		page.SignedIn = session.Email
	}
	return p.reply(c, reply{status: status, fragment: form, page: present(page)})
}

// refuseToJoin shows why the invitation was not accepted. It returns err if err has another cause.
func (p *signInPages) refuseToJoin(c *gin.Context, err error) error {
	if invalid, ok := errors.AsType[*value.InvalidError](err); ok {
		return p.showJoinForm(c, http.StatusUnprocessableEntity, templates.JoinForm{PasswordProblem: invalid.Message})
	}
	refusal, ok := refusalOf(c, err, value.ErrInvitationInvalid, value.ErrSignInDisabled, value.ErrEmailTaken)
	if !ok {
		return err
	}
	if errors.Is(err, value.ErrEmailTaken) {
		refusal.Message += " If you also got the invitation by email, open the link in that email."
	}
	if refusal.Status == http.StatusTooManyRequests {
		refusal.Message = fmt.Sprintf("Too many attempts from your network. Wait %s seconds, then try again.", refusal.RetryAfterSeconds())
	}
	form := templates.JoinForm{Refusal: refusal.Message}
	return p.reply(c, reply{status: refusal.Status, fragment: form, page: present(templates.JoinPage{Form: form})})
}
