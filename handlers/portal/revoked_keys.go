package portal

import (
	"net/url"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/models"
	"portal/templates"
)

const (
	revokedPath = homePath + "/revoked"
	// revokedPerPage is the number of revoked keys on a page.
	revokedPerPage = 50
	// revokedDays is the number of days for which a revoked key is listed.
	revokedDays = int(models.RevokedKeysKept / models.Day)
	// paramOpen is the id of the key whose chart is open.
	paramOpen = "open"
)

// listRevoked shows the keys that were revoked in the last 90 days.
func (p *keyPages) listRevoked(c *gin.Context) error {
	before, paged, err := queryID(c, paramBefore)
	if err != nil {
		return err
	}
	open, _, err := queryID(c, paramOpen)
	if err != nil {
		return err
	}
	keys, err := p.keys.Revoked(c.Request.Context(), sessionFrom(c).AccountID, models.Page{After: before, Limit: revokedPerPage})
	if err != nil {
		return err
	}
	page := templates.RevokedKeysPage{Paged: paged, Days: revokedDays}
	if keys.Next != uuid.Nil {
		page.Older = revokedAddress(keys.Next, uuid.Nil)
	}
	if page.Keys, err = p.revokedRows(c, keys.Items, before, open); err != nil {
		return err
	}
	return p.reply(c, reply{fragment: page, page: present(page)})
}

func (p *keyPages) revokedRows(c *gin.Context, keys []models.RevokedKey, before, open uuid.UUID) ([]templates.RevokedKeyRow, error) {
	ids := make([]uuid.UUID, len(keys))
	for i, key := range keys {
		ids[i] = key.ID
	}
	usage, err := p.keys.Usage(c.Request.Context(), sessionFrom(c).AccountID, models.Days(revokedDays+1), ids...)
	if err != nil {
		return nil, err
	}
	now := p.now()
	rows := make([]templates.RevokedKeyRow, len(keys))
	for i, key := range keys {
		_, refusals := usage[key.ID].Total()
		rows[i] = templates.RevokedKeyRow{
			RevokedKey: key, Revoked: templates.NewMoment(*key.RevokedAt, now),
			Refusals: templates.Count(refusals), Address: revokedAddress(before, key.ID),
		}
		if key.ID != open {
			continue
		}
		rows[i].Address = revokedAddress(before, uuid.Nil)
		details, err := p.details(c, key.Key)
		if err != nil {
			return nil, err
		}
		rows[i].Details = &details
	}
	return rows, nil
}

// revokedAddress returns the URL of the page that starts after the key before and has the chart of
// the key open. Either id may be zero.
func revokedAddress(before, open uuid.UUID) string {
	query := url.Values{}
	for name, id := range map[string]uuid.UUID{paramBefore: before, paramOpen: open} {
		if id != uuid.Nil {
			query.Set(name, id.String())
		}
	}
	return (&url.URL{Path: revokedPath, RawQuery: query.Encode()}).String()
}
