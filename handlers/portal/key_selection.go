package portal

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/models/calls"
	"portal/models/value"
	"portal/templates"
)

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
