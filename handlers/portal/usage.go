package portal

import (
	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/models"
	"portal/templates"
)

// showUsage opens the details of a key, below its row.
func (p *Portal) showUsage(c *gin.Context) error {
	key, err := p.apiKey(c)
	if err != nil {
		return err
	}
	if key.RevokedAt != nil {
		return p.revoked(c, key, true)
	}
	daily, err := p.store.DailyRequests(c.Request.Context(), key.AccountID, usageDays)
	if err != nil {
		return err
	}
	recent, err := p.store.RecentUsage(c.Request.Context(), key.AccountID, key.ID)
	if err != nil {
		return err
	}
	days, now := daily[key.ID], p.now()
	row := p.apiKeyRow(key, days)
	if days == nil {
		days = make([]int64, usageDays)
	}
	row.Details = &templates.APIKeyDetails{
		ID: key.ID, Chart: templates.NewUsageChart(days, now), LastDay: templates.Count(recent[key.ID].Requests),
		LastUsed: row.LastUsed, Created: row.Created,
	}
	return p.reply(c, reply{fragment: *row.Details, page: p.apiKeysPageWith(c, row)})
}

// apiKeysPageWith is the page of keys with a row that is open.
func (p *Portal) apiKeysPageWith(c *gin.Context, row templates.APIKeyRow) func() (templates.Page, error) {
	return func() (templates.Page, error) {
		return p.apiKeysPage(c, templates.APIKeyForm{FormID: uuid.New()}, row)
	}
}

// confirmation is what to know before the key is revoked.
func (p *Portal) confirmation(c *gin.Context, key models.APIKey) (templates.APIKeyConfirmation, error) {
	recent, err := p.store.RecentUsage(c.Request.Context(), key.AccountID, key.ID)
	if err != nil {
		return templates.APIKeyConfirmation{}, err
	}
	now := p.now()
	return templates.APIKeyConfirmation{
		LastUsed: momentOf(key.LastUsedAt, now), Requests: templates.Count(recent[key.ID].Requests),
		InUse: key.LastUsedAt != nil && now.Sub(*key.LastUsedAt) < 7*models.Day,
	}, nil
}
