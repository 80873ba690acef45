package portal

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
	"portal/models/value"
	"portal/templates"
)

const passwordField = "current_password"

// requireFreshSignIn is for forms that change how people sign in. If the user signed in or entered
// the password less than ten minutes ago, it accepts the form. Otherwise it shows a page that asks
// for the password and then sends the form again. It must run after requireSession, and before
// deadline because it waits in the queue for password hashing.
func (s *site) requireFreshSignIn(c *gin.Context) {
	if c.Request.Method != http.MethodPost || sessionFrom(c).Fresh(s.now()) {
		return
	}
	passed := false
	s.handle(s.passwords, func(c *gin.Context) error {
		var err error
		passed, err = s.reauthenticate(c)
		return err
	})(c)
	if !passed {
		c.Abort()
	}
}

// reauthenticate checks the password in the form. If it is missing or wrong, askPassword asks for
// it and returns false.
func (s *site) reauthenticate(c *gin.Context) (passed bool, err error) {
	session := sessionFrom(c)
	password, sent := c.GetPostForm(passwordField)
	if session.NoPassword {
		return false, s.askPassword(c, problem.From(value.ErrSignInTooOld))
	}
	if !sent {
		return false, s.askPassword(c, problem.Problem{Status: http.StatusForbidden})
	}
	token, err := s.sessions.stored.Reauthenticate(c.Request.Context(), session, password, actorOf(c))
	if err == nil {
		session.AuthenticatedAt = s.now()
		c.Set(sessionContextKey, session)
		return true, s.renewSession(c, token)
	}
	refusal, ok := refusalOf(c, err, value.ErrWrongCredentials)
	if !ok {
		return false, err
	}
	if errors.Is(err, value.ErrWrongCredentials) {
		refusal.Message = "The current password is incorrect."
	}
	return false, s.askPassword(c, refusal)
}

// purposes say what the forms that ask for the password do, as it follows "to". The first one whose
// route begins so counts.
var purposes = []struct{ route, text string }{
	{invitationsPath + "/:id/renewal", "send this invitation again"},
	{invitationsPath + "/:id/cancellation", "cancel this invitation"},
	{invitationsPath, "invite someone"},
	{"/people/:id/role", "change the role of this person"},
	{"/people/:id/removal", "remove this person"},
	{settingsPath + "/unused-keys", "change when unused keys are revoked"},
	{settingsPath + "/two-step", "change whether everyone needs two-step verification"},
	{webhooksPath + "/:id/rotation", "replace the secret of this endpoint"},
	{webhooksPath + "/:id", "change this endpoint"},
	{webhooksPath, "add this endpoint"},
	{"/account/authenticator/removal", "turn off two-step verification"},
	{"/account/authenticator", "set up your authenticator app"},
	{"/account/recovery-codes", "get new recovery codes"},
	{passkeysPath + "/:id", "remove this passkey"},
	{passkeysPath, "add a passkey"},
	{identityPath + "/removal", "disconnect the provider"},
	{identityPath, "connect the provider"},
}

func purposeOf(c *gin.Context) string {
	if email := c.PostForm("email"); c.FullPath() == invitationsPath && email != "" {
		return "invite " + templates.Isolate(email)
	}
	for _, purpose := range purposes {
		if strings.HasPrefix(c.FullPath(), purpose.route) {
			return purpose.text
		}
	}
	return "continue"
}

// reauthenticated reports whether the form came from the page that asks for the password.
func reauthenticated(c *gin.Context) bool {
	_, sent := c.GetPostForm(passwordField)
	return sent
}

// askPassword shows the page that asks for the password, with the refusal's message if it has one.
func (s *site) askPassword(c *gin.Context, refusal problem.Problem) error {
	session := sessionFrom(c)
	page := templates.ReauthenticationPage{
		Email: session.Email, NoPassword: session.NoPassword, Provider: s.provider, Problem: refusal.Message,
		What: purposeOf(c), Stays: strings.HasPrefix(c.FullPath(), invitationsPath), OperatorNotice: s.operatorNotice,
		Action: c.Request.URL.Path, Cancel: s.section(c), Section: templates.Section(strings.TrimPrefix(s.section(c), "/")),
	}
	for name, values := range c.Request.PostForm {
		if name == passwordField {
			continue
		}
		for _, value := range values {
			page.Fields = append(page.Fields, templates.HiddenField{Name: name, Value: value})
		}
	}
	slices.SortStableFunc(page.Fields, func(a, b templates.HiddenField) int { return strings.Compare(a.Name, b.Name) })
	return s.reply(c, reply{status: refusal.Status, fragment: page, page: present(page)})
}
