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

func (p *keyPages) find(c *gin.Context) (models.Key, error) {
	return p.keys.Find(c.Request.Context(), sessionFrom(c).AccountID, idOf(c))
}

// ended reports whether a key is revoked or has expired.
func (p *keyPages) ended(key models.Key) bool { return key.EndedAt(p.Now()) != nil }

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

// replyWith replies with a row, or with the page of keys that has it.
func (p *keyPages) replyWith(c *gin.Context, status int, row templates.APIKeyRow) error {
	return p.reply(c, reply{status: status, fragment: row, page: func() (templates.Page, error) { return p.newPage(c, row) }})
}

// confirmation returns the usage and the open calls of key and the submitted reason, which the
// confirmation of its revocation shows.
func (p *keyPages) confirmation(c *gin.Context, key models.Key) (templates.APIKeyConfirmation, error) {
	recent, err := p.keys.Usage(c.Request.Context(), key.AccountID, lastDay, key.ID)
	if err != nil {
		return templates.APIKeyConfirmation{}, err
	}
	requests, _ := recent[key.ID].Total()
	now := p.Now()
	return templates.APIKeyConfirmation{
		KeyID: key.ID, Reason: c.PostForm("reason"), LastUsed: optionalMoment(key.LastUsedAt, now), Requests: templates.Count(requests),
		InUse: key.LastUsedAt != nil && now.Sub(*key.LastUsedAt) < 7*models.Day,
		Calls: p.calls.Open(c.Request.Context(), key),
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
	return p.askName(c, key, http.StatusOK, templates.Rename{Name: key.Label})
}

func (p *keyPages) rename(c *gin.Context) error {
	label := c.PostForm("name")
	key, err := p.keys.Rename(c.Request.Context(), sessionFrom(c).AccountID, idOf(c), label, actorOf(c))
	if invalid, ok := errors.AsType[*models.InvalidError](err); ok {
		if key, err = p.find(c); err != nil {
			return err
		}
		return p.askName(c, key, http.StatusUnprocessableEntity, templates.Rename{Name: label, Problem: invalid.Message})
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

func (p *keyPages) askName(c *gin.Context, key models.Key, status int, rename templates.Rename) error {
	if p.ended(key) {
		return p.showRevoked(c, key, true)
	}
	row, err := p.readRow(c, key)
	if err != nil {
		return err
	}
	row.Rename = &rename
	return p.replyWith(c, status, row)
}
