package portal

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/models"
	"portal/templates"
)

// keyPages are the pages of API keys: the list, a rotation, and the revoked keys.
type keyPages struct {
	*site

	keys   *models.Keys
	agents *models.Agents
	calls  *models.Calls
}

// The parameter focus names the button that opened the row. That button gets the focus again.
const (
	paramFocus  = "focus"
	focusRevoke = "revoke"
	focusMenu   = "menu"
)

// keysChanged is the event after which an open list fetches its changes.
const keysChanged = "keys-changed"

var (
	// chartDays are the days in a key's chart.
	chartDays = models.Days(30)
	// lastDay and lastHour are whole hours, so they can have up to one hour more.
	lastDay, lastHour = models.Hours(25), models.Hours(2)
)

func (p *keyPages) find(c *gin.Context) (models.Key, error) {
	return p.keys.Find(c.Request.Context(), sessionFrom(c).AccountID, idOf(c))
}

// ended reports whether a key is revoked or has expired.
func (p *keyPages) ended(key models.Key) bool { return key.EndedAt(p.Now()) != nil }

// activeKeys are an account's active keys.
type activeKeys struct {
	keys  []models.KeyUsage                  // on each of the last days
	twins map[uuid.UUID]templates.APIKeyTwin // of each key under rotation: the other key
}

// active reads the account's active keys, newest first, and their usage.
func (p *keyPages) active(c *gin.Context) (activeKeys, error) {
	keys, err := p.keys.ActiveUsage(c.Request.Context(), sessionFrom(c).AccountID, chartDays)
	return activeKeys{keys, twinsOf(keys, p.Now())}, err
}

func twinsOf(keys []models.KeyUsage, now time.Time) map[uuid.UUID]templates.APIKeyTwin {
	byID, twins := map[uuid.UUID]models.Key{}, map[uuid.UUID]templates.APIKeyTwin{}
	for _, key := range keys {
		byID[key.ID] = key.Key
	}
	for _, key := range keys {
		if key.ReplacesID == nil {
			continue
		}
		old, ok := byID[*key.ReplacesID]
		if !ok {
			continue
		}
		twins[key.ID] = twinOf(old, old.ID, now)
		// Keys are sorted newest first, and a rotation continues with the newest
		// replacement.
		if _, found := twins[old.ID]; !found {
			twins[old.ID] = twinOf(key.Key, old.ID, now)
		}
	}
	return twins
}

// twinOf returns one of the two keys of the rotation of the key with the id old.
func twinOf(key models.Key, old uuid.UUID, now time.Time) templates.APIKeyTwin {
	return templates.APIKeyTwin{
		Label: key.Label, Created: templates.ShortDate(key.CreatedAt, now), OldID: old, Replaces: key.ID == old,
	}
}

func (p *keyPages) row(key models.KeyUsage, twins map[uuid.UUID]templates.APIKeyTwin) templates.APIKeyRow {
	now := p.Now()
	requests, _ := key.Total()
	row := templates.APIKeyRow{
		Key: key.Key, Created: templates.NewMoment(key.CreatedAt, now), LastUsed: optionalMoment(key.LastUsedAt, now),
		Expires: templates.NewKeyExpires(key.ExpiresAt, now), Unused: unused(key.Key, now),
		Requests: templates.Count(requests), Sparkline: templates.Sparkline(key.Requests),
	}
	if twin, ok := twins[key.ID]; ok {
		row.Twin = &twin
	}
	return row
}

// unused reports whether a key has not been used for 30 days. A newer key is not unused.
func unused(key models.Key, now time.Time) bool {
	last := key.CreatedAt
	if key.LastUsedAt != nil {
		last = *key.LastUsedAt
	}
	return now.Sub(last) >= 30*models.Day
}

// readRow reads the account's active keys and returns the row of one of them.
func (p *keyPages) readRow(c *gin.Context, key models.Key) (templates.APIKeyRow, error) {
	active, err := p.active(c)
	used := models.KeyUsage{Key: key}
	for _, one := range active.keys {
		if one.ID == key.ID {
			used = one
		}
	}
	return p.row(used, active.twins), err
}

// showRevoked removes the row of a revoked key from the page, with a notice.
func (p *keyPages) showRevoked(c *gin.Context, key models.Key, already bool) error {
	return p.reply(c, reply{
		notice: revokedNotice(key, already), fragment: templates.APIKeyRevoked{ID: key.ID}, location: homePath, event: keysChanged,
	})
}

// redirectRevoked redirects to the page of keys, with a notice that the key was revoked.
func (p *keyPages) redirectRevoked(c *gin.Context, key models.Key, already bool) error {
	return p.redirectWith(c, homePath, revokedNotice(key, already))
}

func revokedNotice(key models.Key, already bool) string {
	if already && key.RevokedAt == nil {
		return fmt.Sprintf("API key “%s” (%s) has expired.", key.Label, key.Masked())
	}
	if already {
		return fmt.Sprintf("API key “%s” (%s) was already revoked.", key.Label, key.Masked())
	}
	return fmt.Sprintf("API key “%s” (%s) was revoked.", key.Label, key.Masked())
}

// hashOf returns a short hash of what a page shows, so that it fetches only changes.
func hashOf(shown string) string {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(shown)) // never fails
	return fmt.Sprintf("%x", hash.Sum64())
}
