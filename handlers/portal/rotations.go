package portal

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"portal/models"
	"portal/templates"
)

// showRotation shows the progress of a key's rotation.
func (p *Portal) showRotation(c *gin.Context) error {
	r, err := p.findRotation(c)
	if err != nil {
		return err
	}
	if r.old.RevokedAt != nil {
		return p.redirectRevoked(c, r.old, true)
	}
	page, err := p.rotationPage(c, r)
	if err != nil {
		return err
	}
	page.Lost = c.Query("lost") != ""
	if page.Progress != nil {
		page.Progress.Focused = c.Query("asked") != "" // after Cancel
	}
	return p.reply(c, reply{fragment: page, page: present(page)})
}

// createReplacement generates the replacement of a key and shows it once.
func (p *Portal) createReplacement(c *gin.Context) error {
	old, err := p.apiKey(c)
	if err != nil {
		return err
	}
	formID, ok := parseID(c.PostForm("form_id"))
	if !ok {
		return p.refuseReplacement(c, http.StatusUnprocessableEntity,
			"The form was incomplete, so no key was generated. Try again.")
	}
	// This read may fail, so it comes before the generation: a generated key must be shown.
	agentID, err := p.exampleAgent(c)
	if err != nil {
		return err
	}
	key, secret, err := p.store.Keys.Generate(c.Request.Context(), old.AccountID,
		models.NewKey{Label: old.Label, FormID: formID, Replaces: old.ID}, actorOf(c))
	if err != nil {
		return p.explainNoReplacement(c, old, err)
	}
	reveal := p.apiKeyReveal(key, secret, agentID)
	reveal.Back = rotationPath(old.ID)
	hours, err := p.store.Keys.Usage(c.Request.Context(), old.AccountID, rotationHours, old.ID)
	if err != nil {
		_ = c.Error(err) // the key must be shown now, the counts can wait
	}
	progress := p.rotationProgress(rotation{old: old, replacement: key, started: true, hours: hours})
	return p.reply(c, reply{
		fragment: templates.RotationStarted{
			Rotation: templates.RotationPage{Old: progress.Old, Progress: &progress}, Reveal: reveal,
		},
		page: present(reveal), reveals: true,
	})
}

// explainNoReplacement shows the rotation with the reason why no replacement was generated.
func (p *Portal) explainNoReplacement(c *gin.Context, old models.Key, err error) error {
	if repeated, ok := errors.AsType[*models.RepeatedFormError](err); ok {
		return p.refuseReplacement(c, http.StatusConflict, fmt.Sprintf(
			"This form has already created the key %s. Its value cannot be shown again.", repeated.Key.Masked()))
	}
	if errors.Is(err, models.ErrKeyLimit) {
		return p.refuseReplacement(c, http.StatusUnprocessableEntity, "")
	}
	if errors.Is(err, models.ErrKeyAlreadyRevoked) {
		return p.redirectRevoked(c, old, true)
	}
	return err
}

func (p *Portal) refuseReplacement(c *gin.Context, status int, why string) error {
	r, err := p.findRotation(c)
	if err != nil {
		return err
	}
	page, err := p.rotationPage(c, r)
	if err != nil {
		return err
	}
	page.Problem = why
	return p.reply(c, reply{status: status, fragment: page, page: present(page)})
}

// showRotationProgress returns the progress if it differs from the version that the client shows.
func (p *Portal) showRotationProgress(c *gin.Context) error {
	r, err := p.findRotation(c)
	switch {
	case err != nil:
		return err
	case r.old.RevokedAt != nil:
		return p.redirectRevoked(c, r.old, false)
	case !r.started: // the replacement was discarded
		return p.redirect(c, rotationPath(r.old.ID))
	}
	progress := p.rotationProgress(r)
	page := templates.RotationPage{Old: progress.Old, Progress: &progress}
	response := reply{fragment: page, location: rotationPath(r.old.ID)}
	if progress.Version == c.Query("seen") {
		response.status = http.StatusNoContent
	}
	return p.reply(c, response)
}
