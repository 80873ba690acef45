package portal

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"portal/models"
	"portal/templates"
)

// showFirstUse says that a key has received its first request or was revoked. The response may be
// held until then: see [Portal.await].
func (p *Portal) showFirstUse(c *gin.Context) error {
	var key models.APIKey
	news, err := p.await(c, func() (settled bool, err error) {
		key, err = p.apiKey(c)
		return key.LastUsedAt != nil || key.RevokedAt != nil, err
	})
	if err != nil {
		return err
	}
	r := reply{
		fragment: templates.FirstUse{ID: key.ID, Used: key.LastUsedAt != nil, Revoked: key.RevokedAt != nil},
		location: homePath + "#revoke-" + key.ID.String(),
	}
	if !news {
		r.status = http.StatusNoContent
	}
	return p.reply(c, r)
}
