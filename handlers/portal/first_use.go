package portal

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"portal/models"
	"portal/templates"
)

// showFirstUse tells when a key has received its first request, and nothing
// before that. The answer may be held until then: see [Portal.await].
func (p *Portal) showFirstUse(c *gin.Context) error {
	id, err := idOf(c)
	if err != nil {
		return err
	}
	var key models.APIKey
	found, err := p.await(c, func(ctx context.Context) (settled bool, err error) {
		key, err = p.store.APIKey(ctx, customer(c).AccountID, id)
		return key.LastUsedAt != nil || key.RevokedAt != nil, err
	})
	if err != nil {
		return err
	}
	r := reply{
		fragment: templates.FirstUse{ID: key.ID, Used: key.LastUsedAt != nil, Revoked: key.RevokedAt != nil},
		location: homePath + "#revoke-" + id.String(),
	}
	if !found {
		r.status = http.StatusNoContent
	}
	return p.reply(c, r)
}

// apiKeyReveal is the one showing of a key that has just been made.
func (p *Portal) apiKeyReveal(key models.APIKey, secret, agentID string) templates.APIKeyReveal {
	return templates.APIKeyReveal{
		ID: key.ID, Label: key.Label, Key: secret, AgentID: agentID,
		TokenURL: p.tokenURL, AgentsURL: p.agentsURL, Back: homePath,
	}
}
