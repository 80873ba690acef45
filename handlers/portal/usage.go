package portal

import (
	"github.com/gin-gonic/gin"

	"portal/models"
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
	details, err := p.apiKeyDetails(c, key)
	if err != nil {
		return err
	}
	row, err := p.readAPIKeyRow(c, key)
	if err != nil {
		return err
	}
	row.Details = &details
	return p.reply(c, reply{fragment: details, page: p.apiKeysPageWith(c, row)})
}

// apiKeyDetails returns the chart and the figures of a key, active or revoked.
func (p *Portal) apiKeyDetails(c *gin.Context, key models.Key) (templates.APIKeyDetails, error) {
	ctx, now := c.Request.Context(), p.now()
	daily, err := p.store.Keys.Usage(ctx, key.AccountID, chartDays, key.ID)
	if err != nil {
		return templates.APIKeyDetails{}, err
	}
	creator, err := p.store.Keys.Creator(ctx, key.AccountID, key.ID)
	if err != nil {
		return templates.APIKeyDetails{}, err
	}
	recent, err := p.store.Keys.Usage(ctx, key.AccountID, lastDay, key.ID)
	requests, _ := recent[key.ID].Total()
	return templates.APIKeyDetails{
		ID: key.ID, Chart: templates.NewUsageChart(daily[key.ID].Requests, daily[key.ID].Refusals, now),
		LastDay:  templates.Count(requests),
		LastUsed: optionalMoment(key.LastUsedAt, now), Created: templates.NewMoment(key.CreatedAt, now), Creator: creator,
	}, err
}
