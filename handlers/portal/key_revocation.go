package portal

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

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

// selectedPath revokes the keys that are selected in the list.
const selectedPath = homePath + "/revocation"

// newSelected asks whether to revoke the selected keys.
func (p *revocationPages) newSelected(c *gin.Context) error {
	page, err := p.ofSelected(c, selected(c.QueryArray(paramSelected)))
	if err != nil {
		return err
	}
	return p.reply(c, reply{fragment: page, page: present(page)})
}

// ofSelected returns the question about those of the keys that are active.
func (p *revocationPages) ofSelected(c *gin.Context, ids []uuid.UUID) (page templates.SelectedRevocation, err error) {
	if len(ids) == 0 {
		return page, nil
	}
	accountID, now := sessionFrom(c).AccountID, p.now()
	usage, err := p.keyUsage.Of(c.Request.Context(), accountID, lastDay, ids...)
	if err != nil {
		return page, err
	}
	calls := map[uuid.UUID]calls.Used{}
	if p.calls.Enabled() {
		if calls, err = p.calls.UsedByKeys(c.Request.Context(), accountID, ids); err != nil {
			return page, err
		}
	}
	for _, id := range ids {
		key, ok := usage[id]
		if !ok || p.views.ended(key.Key) {
			continue
		}
		page.Keys = append(page.Keys, templates.SelectedKey{Key: key.Key, Use: useOf(key, now), Calls: templates.Count(calls[id].Calls)})
	}
	return page, nil
}

// createSelected revokes the selected keys, all or none.
func (p *revocationPages) createSelected(c *gin.Context) error {
	ids := selected(c.PostFormArray(paramSelected))
	revoked, err := p.keys.RevokeAll(c.Request.Context(), sessionFrom(c).AccountID, ids, c.PostForm("reason"), actorOf(c))
	if invalid, ok := errors.AsType[*value.InvalidError](err); ok {
		page, err := p.ofSelected(c, ids)
		if err != nil {
			return err
		}
		page.Reason, page.ReasonProblem = c.PostForm("reason"), invalid.Message
		return p.reply(c, reply{status: http.StatusUnprocessableEntity, fragment: page, page: present(page)})
	}
	if err != nil {
		return err
	}
	notice := fmt.Sprintf("%d API keys were revoked.", len(revoked))
	switch len(revoked) {
	case 0:
		notice = "The selected keys were already revoked or had expired."
	case 1:
		notice = revokedNotice(revoked[0], false)
	}
	return p.redirectWith(c, homePath, notice)
}

const (
	revokedPath = homePath + "/revoked"
	// revokedPerPage is the number of revoked keys on a page.
	revokedPerPage = 50
	// revokedDays is the number of days for which a revoked key is listed.
	revokedDays = int(keys.RevokedKeysKept / value.Day)
)

// list shows the keys that were revoked in the last 90 days.
func (p *revocationPages) list(c *gin.Context) error {
	before, err := queryID(c, paramBefore)
	if err != nil {
		return err
	}
	keys, err := p.keys.Revoked(c.Request.Context(), sessionFrom(c).AccountID, value.Page{After: before, Limit: revokedPerPage})
	if err != nil {
		return err
	}
	page := templates.RevokedKeysPage{Paged: before != uuid.Nil, Days: revokedDays, Older: pageAfter(revokedPath, paramBefore, keys.Next)}
	if page.Keys, err = p.rows(c, keys.Items); err != nil {
		return err
	}
	return p.reply(c, reply{fragment: page, page: present(page)})
}

func (p *revocationPages) rows(c *gin.Context, ofAccount []keys.Key) ([]templates.RevokedKeyRow, error) {
	usage, err := p.keyUsage.Of(c.Request.Context(), sessionFrom(c).AccountID, keys.Days(revokedDays+1), value.IDs(ofAccount)...)
	if err != nil {
		return nil, err
	}
	now := p.now()
	rows := make([]templates.RevokedKeyRow, len(ofAccount))
	for i, key := range ofAccount {
		_, refusals := usage[key.ID].Total()
		rows[i] = templates.RevokedKeyRow{
			Key: key, Revoked: templates.NewMoment(*key.EndedAt(now), now), Expired: key.Expired(now),
			Refusals: templates.Count(refusals),
		}
	}
	return rows, nil
}
