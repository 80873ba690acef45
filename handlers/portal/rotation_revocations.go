package portal

import "github.com/gin-gonic/gin"

// newRotationRevocation shows on the page of a rotation the confirmation of the old key's
// revocation.
func (p *Portal) newRotationRevocation(c *gin.Context) error {
	r, err := p.findRotation(c)
	if err != nil {
		return err
	}
	if r.old, err = p.confirmRevocation(c, r.old); err != nil {
		return p.explainUnknownOutcome(c, err)
	}
	if r.old.RevokedAt != nil {
		return p.redirectRevoked(c, r.old, true)
	}
	if !r.started {
		return p.redirect(c, rotationPath(r.old.ID))
	}
	page, err := p.rotationPage(c, r)
	if err != nil {
		return err
	}
	confirmation, err := p.confirmation(c, r.old)
	if err != nil {
		return err
	}
	confirmation.Requests = page.Progress.Old.Requests // the same count as elsewhere on the page
	page.Progress.Confirmation = &confirmation
	return p.reply(c, reply{fragment: page, page: present(page)})
}

// createRotationRevocation revokes the old key, which ends the rotation.
func (p *Portal) createRotationRevocation(c *gin.Context) error {
	key, already, err := p.revoke(c)
	if err != nil {
		return p.explainUnknownOutcome(c, err)
	}
	return p.redirectRevoked(c, key, already)
}
