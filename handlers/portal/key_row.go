package portal

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/models"
	"portal/templates"
)

var (
	// chartDays are the days in a key's chart.
	chartDays = models.Days(30)
	// lastDay and lastHour are whole hours, so they can have up to one hour more.
	lastDay, lastHour = models.Hours(25), models.Hours(2)
)

// activeKeys are an account's active keys and their usage.
type activeKeys struct {
	keys   []models.Key
	daily  map[uuid.UUID][]int64 // requests on each of the last days
	totals map[uuid.UUID]int64   // requests on all of these days together
	twins  map[uuid.UUID]templates.APIKeyTwin
}

// active reads the account's active keys, newest first, and their usage.
func (p *keyPages) active(c *gin.Context) (activeKeys, error) {
	usage, err := p.keys.ActiveUsage(c.Request.Context(), sessionFrom(c).AccountID, chartDays)
	active := activeKeys{keys: make([]models.Key, len(usage)), daily: map[uuid.UUID][]int64{}, totals: map[uuid.UUID]int64{}}
	for i, key := range usage {
		active.keys[i], active.daily[key.ID] = key.Key, key.Requests
		active.totals[key.ID], _ = key.Total()
	}
	active.twins = twinsOf(active.keys, p.now())
	return active, err
}

// twinsOf maps each key under rotation to the other key of the rotation.
func twinsOf(keys []models.Key, now time.Time) map[uuid.UUID]templates.APIKeyTwin {
	byID, twins := map[uuid.UUID]models.Key{}, map[uuid.UUID]templates.APIKeyTwin{}
	for _, key := range keys {
		byID[key.ID] = key
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
			twins[old.ID] = twinOf(key, old.ID, now)
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

func (p *keyPages) find(c *gin.Context) (models.Key, error) {
	id, err := idOf(c)
	if err != nil {
		return models.Key{}, err
	}
	return p.keys.Find(c.Request.Context(), sessionFrom(c).AccountID, id)
}

// ended reports whether a key is revoked or has expired.
func (p *keyPages) ended(key models.Key) bool { return key.EndedAt(p.now()) != nil }

func (p *keyPages) row(key models.Key, active activeKeys) templates.APIKeyRow {
	now := p.now()
	row := templates.APIKeyRow{
		Expires:    templates.NewKeyExpires(key.ExpiresAt, now),
		Restricted: key.Agents != nil, Agents: len(key.Agents), Networks: len(key.Networks),
		ID: key.ID, Label: key.Label, Masked: key.Masked(), Created: templates.NewMoment(key.CreatedAt, now),
		LastUsed: optionalMoment(key.LastUsedAt, now),
		Unused:   unused(key, now),
		Requests: templates.Count(active.totals[key.ID]), Sparkline: templates.Sparkline(active.daily[key.ID]),
	}
	if twin, ok := active.twins[key.ID]; ok {
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
	return p.row(key, active), err
}

// pageWith returns a page function for a reply: the page of keys, in which row replaces the row of
// the same key.
func (p *keyPages) pageWith(c *gin.Context, row templates.APIKeyRow) func() (templates.Page, error) {
	return func() (templates.Page, error) {
		return p.newPage(c, row)
	}
}

// confirmation returns the usage and the open calls of key and the submitted reason, which the
// confirmation of its revocation shows.
func (p *keyPages) confirmation(c *gin.Context, key models.Key) (templates.APIKeyConfirmation, error) {
	recent, err := p.keys.Usage(c.Request.Context(), key.AccountID, lastDay, key.ID)
	if err != nil {
		return templates.APIKeyConfirmation{}, err
	}
	requests, _ := recent[key.ID].Total()
	now := p.now()
	return templates.APIKeyConfirmation{
		KeyID: key.ID, Reason: c.PostForm("reason"), LastUsed: optionalMoment(key.LastUsedAt, now), Requests: templates.Count(requests),
		InUse: key.LastUsedAt != nil && now.Sub(*key.LastUsedAt) < 7*models.Day,
		Calls: (*templates.OpenCalls)(p.calls.Open(c.Request.Context(), key)),
	}, nil
}

// optionalMoment returns the moment of at, or nil if at is nil.
func optionalMoment(at *time.Time, now time.Time) *templates.Moment {
	if at == nil {
		return nil
	}
	moment := templates.NewMoment(*at, now)
	return &moment
}

// editName shows the form for a new label in the row of a key.
func (p *keyPages) editName(c *gin.Context) error {
	key, err := p.find(c)
	if err != nil {
		return err
	}
	return p.askName(c, key, http.StatusOK, templates.APIKeyRename{Label: key.Label})
}

func (p *keyPages) rename(c *gin.Context) error {
	id, err := idOf(c)
	if err != nil {
		return err
	}
	label := c.PostForm("name")
	key, err := p.keys.Rename(c.Request.Context(), sessionFrom(c).AccountID, id, label, actorOf(c))
	if invalid, ok := errors.AsType[*models.InvalidError](err); ok {
		if key, err = p.find(c); err != nil {
			return err
		}
		return p.askName(c, key, http.StatusUnprocessableEntity, templates.APIKeyRename{Label: label, Problem: invalid.Message})
	}
	if errors.Is(err, models.ErrKeyAlreadyRevoked) {
		return p.showRevoked(c, key, true)
	}
	if err != nil {
		return err
	}
	row, err := p.readRow(c, key)
	if err != nil {
		return err
	}
	row.MenuFocused = true
	return p.reply(c, reply{
		notice: fmt.Sprintf("API key %s renamed to “%s”.", key.Masked(), key.Label), fragment: row,
		location: fmt.Sprintf("%s#%s-%s", homePath, focusMenu, key.ID),
	})
}

func (p *keyPages) askName(c *gin.Context, key models.Key, status int, rename templates.APIKeyRename) error {
	if p.ended(key) {
		return p.showRevoked(c, key, true)
	}
	row, err := p.readRow(c, key)
	if err != nil {
		return err
	}
	row.Rename = &rename
	return p.reply(c, reply{status: status, fragment: row, page: p.pageWith(c, row)})
}
