package portal

import (
	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/models/keys"
	"portal/models/value"
	"portal/templates"
)

const (
	revokedPath = homePath + "/revoked"
	// revokedPerPage is the number of revoked keys on a page.
	revokedPerPage = 50
	// revokedDays is the number of days for which a revoked key is listed.
	revokedDays = int(keys.RevokedKeysKept / value.Day)
)

// list shows the keys that were revoked in the last 90 days.
func (p *revocationPages) list(c *gin.Context) error {
	before, err := queryID(c, paramBefore)
	if err != nil {
		return err
	}
	keys, err := p.keys.Revoked(c.Request.Context(), sessionFrom(c).AccountID, value.Page{After: before, Limit: revokedPerPage})
	if err != nil {
		return err
	}
	page := templates.RevokedKeysPage{Paged: before != uuid.Nil, Days: revokedDays, Older: pageAfter(revokedPath, paramBefore, keys.Next)}
	if page.Keys, err = p.rows(c, keys.Items); err != nil {
		return err
	}
	return p.reply(c, reply{fragment: page, page: present(page)})
}

func (p *revocationPages) rows(c *gin.Context, ofAccount []keys.Key) ([]templates.RevokedKeyRow, error) {
	ids := make([]uuid.UUID, len(ofAccount))
	for i, key := range ofAccount {
		ids[i] = key.ID
	}
	usage, err := p.keyUsage.Of(c.Request.Context(), sessionFrom(c).AccountID, keys.Days(revokedDays+1), ids...)
	if err != nil {
		return nil, err
	}
	now := p.now()
	rows := make([]templates.RevokedKeyRow, len(ofAccount))
	for i, key := range ofAccount {
		_, refusals := usage[key.ID].Total()
		rows[i] = templates.RevokedKeyRow{
			Key: key, Revoked: templates.NewMoment(*key.EndedAt(now), now), Expired: key.Expired(now),
			Refusals: templates.Count(refusals),
		}
	}
	return rows, nil
}
