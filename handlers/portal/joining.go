package portal

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"portal/models"
	"portal/templates"
)

// showInvitation shows the form that accepts an invitation.
func (p *signInPages) showInvitation(c *gin.Context) error {
	return p.showJoinForm(c, http.StatusOK, templates.JoinForm{})
}

// join accepts an invitation: it adds the user, who is then signed in. Because it waits in the
// queue for password hashing, it sets its own deadlines.
func (p *signInPages) join(c *gin.Context) error {
	signedIn, err := p.invitations.Accept(c.Request.Context(), c.Param("token"), c.PostForm("password"), p.newClient(c))
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
	invitation, err := p.invitations.Find(c.Request.Context(), c.Param("token"))
	if err != nil {
		return p.refuseToJoin(c, err)
	}
	session, err := p.currentSession(c)
	if err != nil {
		return err
	}
	form.Email, form.Action = invitation.Email, c.Request.URL.Path
	form.NoPasswords = p.PasswordsOff
	page := templates.JoinPage{Account: invitation.AccountName, Role: roleName(invitation.Role), Form: form}
	if p.oidc != nil {
		page.Provider, page.ProviderPath = p.oidc.Name(), p.oidc.joinPath(c.Param("token"))
	}
	if session != nil {
		page.SignedIn = session.Email
	}
	return p.reply(c, reply{status: status, fragment: form, page: present(page)})
}

// refuseToJoin shows why the invitation was not accepted. It returns err if err has another cause.
func (p *signInPages) refuseToJoin(c *gin.Context, err error) error {
	if invalid, ok := errors.AsType[*models.InvalidError](err); ok {
		return p.showJoinForm(c, http.StatusUnprocessableEntity, templates.JoinForm{PasswordProblem: invalid.Message})
	}
	refusal, ok := refusalOf(c, err, models.ErrInvitationInvalid, models.ErrSignInDisabled, models.ErrEmailTaken)
	if !ok {
		return err
	}
	if refusal.Status == http.StatusTooManyRequests {
		refusal.Message = fmt.Sprintf("Too many attempts from your network. Wait %s seconds, then try again.", refusal.RetryAfterSeconds())
	}
	form := templates.JoinForm{Refusal: refusal.Message}
	return p.reply(c, reply{status: refusal.Status, fragment: form, page: present(templates.JoinPage{Form: form})})
}
