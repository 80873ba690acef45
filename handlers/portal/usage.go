package portal

import (
	"github.com/gin-gonic/gin"

	"portal/templates"
)

// showUsage opens the details of a key below its row.
func (p *Portal) showUsage(c *gin.Context) error {
	key, err := p.apiKey(c)
	if err != nil {
		return err
	}
	if key.RevokedAt != nil {
		return p.showRevoked(c, key, true)
	}
	daily, err := p.store.DailyRequests(c.Request.Context(), key.AccountID, usageDays)
	if err != nil {
		return err
	}
	recent, err := p.store.RecentUsage(c.Request.Context(), key.AccountID, key.ID)
	if err != nil {
		return err
	}
	days := daily[key.ID]
	row := p.apiKeyRow(key, days)
	if days == nil {
		days = make([]int64, usageDays)
	}
	row.Details = &templates.APIKeyDetails{
		ID: key.ID, Chart: templates.NewUsageChart(days, p.now()), LastDay: templates.Count(recent[key.ID].Requests),
		LastUsed: row.LastUsed, Created: row.Created,
	}
	return p.reply(c, reply{fragment: *row.Details, page: p.apiKeysPageWith(c, row)})
}
