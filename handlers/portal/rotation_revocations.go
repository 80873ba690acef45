package portal

import (
	"errors"
	"fmt"

	"github.com/gin-gonic/gin"

	"portal/models"
)

// newRotationRevocation asks, in the last step, whether to revoke the old key.
func (p *Portal) newRotationRevocation(c *gin.Context) error {
	r, err := p.findRotation(c.Request.Context(), c)
	if err != nil {
		return err
	}
	if r.old.RevokedAt != nil {
		return p.goToRevoked(c, r.old, true)
	}
	page, err := p.rotationPage(c, r)
	if err != nil {
		return err
	}
	if page.Progress == nil {
		return p.redirect(c, rotationPath(r.old.ID))
	}
	confirmation, err := p.confirmation(c, r.old)
	if err != nil {
		return err
	}
	confirmation.Requests = page.Progress.Old.Requests // as it stands above
	page.Progress.Confirmation = &confirmation
	return p.reply(c, reply{fragment: page, page: present(page)})
}

// createRotationRevocation revokes the old key, which ends the rotation.
func (p *Portal) createRotationRevocation(c *gin.Context) error {
	id, err := idOf(c)
	if err != nil {
		return err
	}
	key, err := p.store.RevokeAPIKey(c.Request.Context(), customer(c).AccountID, id, actorOf(c))
	already := errors.Is(err, models.ErrKeyAlreadyRevoked)
	if err != nil && !already {
		return p.revocationFailed(c, id, err)
	}
	return p.goToRevoked(c, key, already)
}

// goToRevoked leads to the list of keys, which says that the key is revoked.
func (p *Portal) goToRevoked(c *gin.Context, key models.APIKey, already bool) error {
	param := paramRevoked
	if already {
		param = paramAlreadyRevoked
	}
	return p.redirect(c, fmt.Sprintf("%s?%s=%s", homePath, param, key.ID))
}
