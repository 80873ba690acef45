package portal

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"portal/models"
	"portal/templates"
)

// showRotation shows how far the rotation of a key is.
func (p *Portal) showRotation(c *gin.Context) error {
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
	if page.Progress != nil {
		page.Progress.Focused = c.Query("asked") != "" // by Cancel
	}
	return p.reply(c, reply{fragment: page, page: present(page)})
}

// createReplacement makes the key that is to take the place of the old one, and
// shows it, this once.
func (p *Portal) createReplacement(c *gin.Context) error {
	old, err := p.apiKey(c)
	if err != nil {
		return err
	}
	formID, ok := parseID(c.PostForm("form_id"))
	if !ok {
		return p.refuseReplacement(c, http.StatusUnprocessableEntity,
			"The form was incomplete, so no key was made. It has been renewed: try again.")
	}
	// Whatever can fail comes before the key is made: afterwards it must be shown.
	agentID, err := p.exampleAgent(c)
	if err != nil {
		return err
	}
	key, secret, err := p.store.GenerateAPIKey(c.Request.Context(), old.AccountID,
		models.NewAPIKey{Label: old.Label, FormID: formID, Replaces: old.ID}, actorOf(c))
	if err != nil {
		return p.explainNoReplacement(c, old, err)
	}
	reveal := p.apiKeyReveal(key, secret, agentID)
	reveal.Back = rotationPath(old.ID)
	r := rotation{old: old, replacement: key, started: true}
	if hours, err := p.store.HourlyRequests(c.Request.Context(), old.AccountID, hoursShown, old.ID); err != nil {
		_ = c.Error(err) // the counts can be read later, the key cannot
	} else {
		r.hours = hours
	}
	progress := p.rotationProgress(r)
	return p.reply(c, reply{
		fragment: templates.RotationStarted{
			Rotation: templates.RotationPage{Old: progress.Old, Progress: &progress}, Reveal: reveal,
		},
		page: present(reveal), reveals: true,
	})
}

// explainNoReplacement shows the rotation again with why there is no replacement, or none from this form.
func (p *Portal) explainNoReplacement(c *gin.Context, old models.APIKey, err error) error {
	if repeated, ok := errors.AsType[*models.RepeatedFormError](err); ok {
		return p.refuseReplacement(c, http.StatusConflict, fmt.Sprintf(
			"This form has already made the key %s, whose value cannot be shown again.", repeated.Key.Masked()))
	}
	if errors.Is(err, models.ErrKeyLimit) {
		return p.refuseReplacement(c, http.StatusUnprocessableEntity, "")
	}
	if errors.Is(err, models.ErrKeyAlreadyRevoked) {
		return p.goToRevoked(c, old, true)
	}
	return err
}

func (p *Portal) refuseReplacement(c *gin.Context, status int, why string) error {
	r, err := p.findRotation(c.Request.Context(), c)
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

// showRotationProgress tells what has become of the rotation since it looked
// like "seen". The answer may be held until there is something: see
// [Portal.await].
func (p *Portal) showRotationProgress(c *gin.Context) error {
	var r rotation
	var progress templates.RotationProgress
	found, err := p.await(c, func(ctx context.Context) (news bool, err error) {
		if r, err = p.findRotation(ctx, c); err != nil || !r.started {
			return true, err
		}
		progress = p.rotationProgress(r)
		return progress.Version != c.Query("seen"), nil
	})
	switch {
	case err != nil:
		return err
	case r.old.RevokedAt != nil:
		return p.goToRevoked(c, r.old, false)
	case !r.started: // the replacement was discarded
		return p.redirect(c, rotationPath(r.old.ID))
	}
	answer := reply{fragment: progress, location: rotationPath(r.old.ID)}
	if !found {
		answer.status = http.StatusNoContent
	}
	return p.reply(c, answer)
}
