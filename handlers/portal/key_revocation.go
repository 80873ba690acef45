package portal

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
	"portal/models/calls"
	"portal/models/keys"
	"portal/models/value"
	"portal/templates"
)

// revocationPages revoke one key or several, and list the revoked ones.
type revocationPages struct {
	*site

	views    keyViews
	keys     *keys.Keys
	keyUsage *keys.Usage
	calls    *calls.Calls
}

// newRevocation shows the question before a revocation.
func (p *revocationPages) newRevocation(c *gin.Context) error {
	return p.ask(c, templates.APIKeyConfirmation{})
}

// showOutcome shows whether a key was revoked, after a revocation that timed out.
func (p *revocationPages) showOutcome(c *gin.Context) error {
	now := p.now()
	return p.ask(c, templates.APIKeyConfirmation{Checked: optionalMoment(&now, now)})
}

// ask shows the question, or that the key is already revoked. After a refused reason, it shows the
// question again.
func (p *revocationPages) ask(c *gin.Context, question templates.APIKeyConfirmation) error {
	key, err := p.keyUsage.OfKey(c.Request.Context(), sessionFrom(c).AccountID, lastDay, idOf(c))
	if err != nil {
		return err
	}
	if key.Key, err = p.views.durable(c, key.Key); err != nil {
		return p.replyUnconfirmed(c, err)
	}
	status := http.StatusOK
	switch {
	case question.ReasonProblem != "":
		status = http.StatusUnprocessableEntity
	case p.views.ended(key.Key):
		return p.views.showRevoked(c, key.Key, question.Checked == nil)
	}
	if err := p.addUse(c, &question, key); err != nil {
		return err
	}
	return p.views.ask(c, status, templates.APIKeyRow{Key: key.Key, Confirmation: &question})
}

func (p *revocationPages) createRevocation(c *gin.Context) error {
	key, already, err := p.revoke(c)
	if invalid, ok := errors.AsType[*value.InvalidError](err); ok {
		return p.ask(c, templates.APIKeyConfirmation{ReasonProblem: invalid.Message})
	}
	if err != nil {
		return p.replyUnconfirmed(c, err)
	}
	return p.views.showRevoked(c, key, already)
}

// revoke revokes the key with the id in the path, and reports whether it was already revoked.
func (p *revocationPages) revoke(c *gin.Context) (key keys.Key, already bool, err error) {
	key, err = p.keys.Revoke(c.Request.Context(), sessionFrom(c).AccountID, idOf(c), c.PostForm("reason"), actorOf(c))
	if errors.Is(err, value.ErrKeyAlreadyRevoked) {
		return key, true, nil
	}
	return key, false, err
}

// replyUnconfirmed handles the error of a revocation. If the database did not answer, the
// revocation may have been committed, and the response says so. Any other error is returned.
func (p *revocationPages) replyUnconfirmed(c *gin.Context, err error) error {
	failure := problem.From(err)
	if failure.Status != http.StatusServiceUnavailable {
		return err
	}
	_ = c.Error(err) // for the log
	setRetryAfter(c, failure)
	message := "We couldn’t confirm that the key was revoked. " +
		"This page checks again automatically. You can also try again."
	return p.reply(c, reply{
		status:   failure.Status,
		fragment: templates.Failure{Message: message},
		page: present(templates.ErrorPage{
			Status: failure.Status, Title: "We couldn’t confirm that the key was revoked",
			Message: "The database did not respond. Check the key in a moment, and try again if it is still active.",
			Check:   fmt.Sprintf("%s/%s/revocation/outcome", homePath, c.Param("id")),
		}),
	})
}

// addUse adds to the question about a key what its revocation would break, and the submitted
// reason.
func (p *revocationPages) addUse(c *gin.Context, question *templates.APIKeyConfirmation, key keys.KeyUsage) (err error) {
	question.KeyUse, question.KeyID = useOf(key, p.now()), key.ID
	question.Reason, question.Note = c.PostForm("reason"), key.Note
	question.Calls, err = p.calls.Open(c.Request.Context(), key.AccountID, key.ID)
	return err
}

// useOf returns how much a key was used in the last 24 hours.
func useOf(key keys.KeyUsage, now time.Time) templates.KeyUse {
	requests, _ := key.Total()
	return templates.KeyUse{
		LastUsed: optionalMoment(key.LastUsedAt, now), Requests: templates.Count(requests),
		InUse: key.LastUsedAt != nil && now.Sub(*key.LastUsedAt) < 7*value.Day,
	}
}
