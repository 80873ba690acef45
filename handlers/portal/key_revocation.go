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

// newRevocation shows the confirmation of a revocation in the row of the key.
func (p *revocationPages) newRevocation(c *gin.Context) error { return p.ask(c, false) }

// showOutcome shows whether a key was revoked, after a revocation that timed out.
func (p *revocationPages) showOutcome(c *gin.Context) error { return p.ask(c, true) }

// ask shows the confirmation of a revocation, or that the key was already revoked. If the
// parameter unknown is set, the outcome of an earlier revocation is unknown.
func (p *revocationPages) ask(c *gin.Context, unknown bool) error {
	key, err := p.views.find(c)
	if err != nil {
		return err
	}
	if key, err = p.views.durable(c, key); err != nil {
		return p.replyUnconfirmed(c, err)
	}
	if p.views.ended(key) {
		return p.views.showRevoked(c, key, !unknown)
	}
	confirmation, err := p.confirmation(c, key)
	if err != nil {
		return err
	}
	if unknown {
		now := p.now()
		confirmation.Checked = optionalMoment(&now, now)
	}
	return p.showConfirmation(c, http.StatusOK, key, confirmation)
}

func (p *revocationPages) showConfirmation(c *gin.Context, status int, key keys.Key, confirmation templates.APIKeyConfirmation) error {
	row, err := p.views.readRow(c, key)
	if err != nil {
		return err
	}
	row.Confirmation = &confirmation
	return p.views.replyWith(c, status, row)
}

// refuseReason shows the confirmation again with the error of the reason.
func (p *revocationPages) refuseReason(c *gin.Context, message string) error {
	key, err := p.views.find(c)
	if err != nil {
		return err
	}
	confirmation, err := p.confirmation(c, key)
	if err != nil {
		return err
	}
	confirmation.ReasonProblem = message
	return p.showConfirmation(c, http.StatusUnprocessableEntity, key, confirmation)
}

func (p *revocationPages) createRevocation(c *gin.Context) error {
	key, already, err := p.revoke(c)
	if invalid, ok := errors.AsType[*value.InvalidError](err); ok {
		return p.refuseReason(c, invalid.Message)
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

// confirmation returns the usage and the open calls of key and the submitted reason, which the
// confirmation of its revocation shows.
func (p *revocationPages) confirmation(c *gin.Context, key keys.Key) (templates.APIKeyConfirmation, error) {
	recent, err := p.keyUsage.Of(c.Request.Context(), key.AccountID, lastDay, key.ID)
	if err != nil {
		return templates.APIKeyConfirmation{}, err
	}
	calls, err := p.calls.Open(c.Request.Context(), key.AccountID, key.ID)
	if err != nil {
		return templates.APIKeyConfirmation{}, err
	}
	usage := recent[key.ID]
	usage.Key = key
	confirmation := useOf(usage, p.now())
	confirmation.KeyID, confirmation.Reason, confirmation.Calls, confirmation.Note = key.ID, c.PostForm("reason"), calls, key.Note
	return confirmation, nil
}

// useOf returns how much a key was used in the last 24 hours.
func useOf(key keys.KeyUsage, now time.Time) templates.APIKeyConfirmation {
	requests, _ := key.Total()
	return templates.APIKeyConfirmation{
		LastUsed: optionalMoment(key.LastUsedAt, now), Requests: templates.Count(requests),
		InUse: key.LastUsedAt != nil && now.Sub(*key.LastUsedAt) < 7*value.Day,
	}
}
