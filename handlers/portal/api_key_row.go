package portal

import (
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/models"
	"portal/templates"
)

// usageDays is the number of days in a key's chart.
const usageDays = 30

// apiKey returns the account's key that the path names.
func (p *Portal) apiKey(c *gin.Context) (models.APIKey, error) {
	id, err := idOf(c)
	if err != nil {
		return models.APIKey{}, err
	}
	return p.store.APIKey(c.Request.Context(), sessionFrom(c).AccountID, id)
}

// apiKeyRow returns the row of a key. The days are its requests on each day, nil for an unused key.
func (p *Portal) apiKeyRow(key models.APIKey, days []int64) templates.APIKeyRow {
	now := p.now()
	return templates.APIKeyRow{
		ID: key.ID, Label: key.Label, Masked: key.Masked(), Created: templates.NewMoment(key.CreatedAt, now),
		LastUsed: optionalMoment(key.LastUsedAt, now), Sparkline: templates.Sparkline(days),
	}
}

// apiKeyRowWithUsage reads the usage of a key and returns its row.
func (p *Portal) apiKeyRowWithUsage(c *gin.Context, key models.APIKey) (templates.APIKeyRow, error) {
	daily, err := p.store.DailyRequests(c.Request.Context(), key.AccountID, usageDays)
	return p.apiKeyRow(key, daily[key.ID]), err
}

// apiKeysPageWith returns the page of keys in which row stands for its key.
func (p *Portal) apiKeysPageWith(c *gin.Context, row templates.APIKeyRow) func() (templates.Page, error) {
	return func() (templates.Page, error) {
		return p.apiKeysPage(c, templates.APIKeyForm{FormID: uuid.New()}, row)
	}
}

// confirmation returns what the confirmation of a revocation says about the use of the key.
func (p *Portal) confirmation(c *gin.Context, key models.APIKey) (templates.APIKeyConfirmation, error) {
	recent, err := p.store.RecentUsage(c.Request.Context(), key.AccountID, key.ID)
	if err != nil {
		return templates.APIKeyConfirmation{}, err
	}
	now := p.now()
	return templates.APIKeyConfirmation{
		LastUsed: optionalMoment(key.LastUsedAt, now), Requests: templates.Count(recent[key.ID].Requests),
		InUse: key.LastUsedAt != nil && now.Sub(*key.LastUsedAt) < 7*models.Day,
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
