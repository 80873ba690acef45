package portal

import (
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
	most   int64                 // the most requests of any key on one day
	twins  map[uuid.UUID]templates.APIKeyTwin
}

// activeKeys reads the account's active keys, newest first, and their usage.
func (p *Portal) activeKeys(c *gin.Context) (activeKeys, error) {
	usage, err := p.store.Keys.ActiveUsage(c.Request.Context(), sessionFrom(c).AccountID, chartDays)
	keys, daily := make([]models.Key, len(usage)), map[uuid.UUID][]int64{}
	for i, key := range usage {
		keys[i], daily[key.ID] = key.Key, key.Requests
	}
	return newActiveKeys(keys, daily), err
}

func newActiveKeys(keys []models.Key, daily map[uuid.UUID][]int64) activeKeys {
	active := activeKeys{keys: keys, daily: daily, totals: map[uuid.UUID]int64{}, twins: twinsOf(keys)}
	for id, days := range daily {
		for _, requests := range days {
			active.totals[id] += requests
			active.most = max(active.most, requests)
		}
	}
	return active
}

// twinsOf maps each key under rotation to the other key of the rotation.
func twinsOf(keys []models.Key) map[uuid.UUID]templates.APIKeyTwin {
	masked, twins := map[uuid.UUID]string{}, map[uuid.UUID]templates.APIKeyTwin{}
	for _, key := range keys {
		masked[key.ID] = key.Masked()
	}
	for _, key := range keys {
		if key.ReplacesID == nil || masked[*key.ReplacesID] == "" {
			continue
		}
		old := *key.ReplacesID
		twins[key.ID] = templates.APIKeyTwin{Masked: masked[old], OldID: old, Replaces: true}
		// Keys are sorted newest first, and a rotation continues with the newest
		// replacement.
		if _, found := twins[old]; !found {
			twins[old] = templates.APIKeyTwin{Masked: key.Masked(), OldID: old}
		}
	}
	return twins
}

// apiKey returns the account's key with the id in the path.
func (p *Portal) apiKey(c *gin.Context) (models.Key, error) {
	id, err := idOf(c)
	if err != nil {
		return models.Key{}, err
	}
	return p.store.Keys.Find(c.Request.Context(), sessionFrom(c).AccountID, id)
}

// apiKeyRow returns the row of a key.
func (p *Portal) apiKeyRow(key models.Key, active activeKeys) templates.APIKeyRow {
	now := p.now()
	row := templates.APIKeyRow{
		ID: key.ID, Label: key.Label, Masked: key.Masked(), Created: templates.NewMoment(key.CreatedAt, now),
		LastUsed: optionalMoment(key.LastUsedAt, now),
		Requests: templates.Count(active.totals[key.ID]), Sparkline: templates.Sparkline(active.daily[key.ID], active.most),
	}
	if twin, ok := active.twins[key.ID]; ok {
		row.Twin = &twin
	}
	return row
}

// readAPIKeyRow reads the account's active keys and returns the row of one of them.
func (p *Portal) readAPIKeyRow(c *gin.Context, key models.Key) (templates.APIKeyRow, error) {
	active, err := p.activeKeys(c)
	return p.apiKeyRow(key, active), err
}

// apiKeysPageWith returns a page function for a reply. It reads the page of keys, in which row
// replaces the row of the same key.
func (p *Portal) apiKeysPageWith(c *gin.Context, row templates.APIKeyRow) func() (templates.Page, error) {
	return func() (templates.Page, error) {
		return p.apiKeysPage(c, templates.APIKeyForm{FormID: uuid.New()}, row)
	}
}

// confirmation returns the usage and the open calls of key, which the confirmation of its
// revocation shows.
func (p *Portal) confirmation(c *gin.Context, key models.Key) (templates.APIKeyConfirmation, error) {
	recent, err := p.store.Keys.Usage(c.Request.Context(), key.AccountID, lastDay, key.ID)
	if err != nil {
		return templates.APIKeyConfirmation{}, err
	}
	requests, _ := recent[key.ID].Total()
	now := p.now()
	return templates.APIKeyConfirmation{
		LastUsed: optionalMoment(key.LastUsedAt, now), Requests: templates.Count(requests),
		InUse: key.LastUsedAt != nil && now.Sub(*key.LastUsedAt) < 7*models.Day,
		Calls: (*templates.OpenCalls)(p.store.Calls.Open(c.Request.Context(), key)),
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
