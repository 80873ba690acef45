package portal

import (
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/models/keys"
	"portal/templates"
)

// noticedLeaks is how many keys the notice names.
const noticedLeaks = 3

const paramReplacing = "replacing"

// dismissedLeaks is the notice that a user has dismissed. A cookie carries it, so each reader
// dismisses the notice alone.
type dismissedLeaks struct {
	User  uuid.UUID // on a shared browser the next user must see the notice
	Until time.Time // the latest revocation in the notice
}

// leakedSince returns the time since which the notice names keys that were revoked as leaked.
func (p *keyPages) leakedSince(c *gin.Context) time.Time {
	since := p.now().Add(-leakNotice)
	var dismissed dismissedLeaks
	if p.cookies.read(c, dismissedCookie, &dismissed) && dismissed.User == sessionFrom(c).UserID && dismissed.Until.After(since) {
		since = dismissed.Until
	}
	return since
}

// leaked returns the notice about the keys that were revoked as leaked.
func leaked(keys []keys.Key) templates.LeakedKeys {
	return templates.LeakedKeys{More: len(keys) > noticedLeaks, Keys: keys[:min(len(keys), noticedLeaks)]}
}

// showLeaks shows the list, which has the notice.
func (p *keyPages) showLeaks(c *gin.Context) error {
	if _, err := p.views.find(c); err != nil {
		return err
	}
	return p.redirect(c, homePath)
}

// dismissLeaks hides the notice about leaked keys whose latest one is in the path.
func (p *keyPages) dismissLeaks(c *gin.Context) error {
	key, err := p.views.find(c)
	if err == nil && key.RevokedAt != nil {
		err = p.cookies.put(c, dismissedCookie, dismissedLeaks{User: sessionFrom(c).UserID, Until: *key.RevokedAt})
	}
	if err != nil {
		return err
	}
	return p.reply(c, reply{fragment: templates.LeaksDismissed{}, location: homePath})
}

// replacing returns the key whose replacement the form generates: the one of the query string, or
// the zero key. The replacement does not keep its expiry.
func (p *keyPages) replacing(c *gin.Context) (keys.Key, error) {
	id, err := queryID(c, paramReplacing)
	if err != nil || id == uuid.Nil {
		return keys.Key{}, err
	}
	key, err := p.keys.Find(c.Request.Context(), sessionFrom(c).AccountID, id)
	return keys.Key{Label: key.Label, Access: key.Access, Agents: key.Agents, Networks: key.Networks, Limits: key.Limits}, err
}
