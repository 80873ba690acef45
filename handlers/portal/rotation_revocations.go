package portal

import "github.com/gin-gonic/gin"

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
