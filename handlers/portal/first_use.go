package portal

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"portal/templates"
)

// showFirstUse says that a key has received its first request or was revoked.
func (p *Portal) showFirstUse(c *gin.Context) error {
	key, err := p.apiKey(c)
	if err != nil {
		return err
	}
	r := reply{
		fragment: templates.FirstUse{ID: key.ID, Used: key.LastUsedAt != nil, Revoked: key.RevokedAt != nil},
		location: homePath + "#revoke-" + key.ID.String(),
	}
	if key.LastUsedAt == nil && key.RevokedAt == nil {
		r.status = http.StatusNoContent
	}
	return p.reply(c, r)
}
