package portal

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/models/agents"
	"portal/models/keys"
	"portal/models/value"
	"portal/templates"
)

// rotationPages replace a key by a new one.
type rotationPages struct {
	*site

	views       keyViews
	revocations revocationPages
	keys        *keys.Keys
	keyUsage    *keys.Usage
	agents      *agents.Agents
}

// show shows the progress of a key's rotation.
func (p *rotationPages) show(c *gin.Context) error {
	page, err := p.find(c)
	if err != nil {
		return err
	}
	if p.views.ended(page.Old.Key) {
		return p.views.redirectRevoked(c, page.Old.Key, true)
	}
	if page.Old.IsWorkload() { // it has no secret to rotate
		return p.redirect(c, trustPath(page.Old.Key))
	}
	if page.Progress != nil {
		page.Progress.Focused = c.Query("asked") != "" // after Cancel
	}
	return p.reply(c, reply{fragment: page, page: present(page)})
}

// createReplacement generates the replacement of a key and shows it once.
func (p *rotationPages) createReplacement(c *gin.Context) error {
	old, err := p.views.find(c)
	if err != nil {
		return err
	}
	formID, ok := parseID(c.PostForm("form_id"))
	if !ok {
		return p.refuseReplacement(c, http.StatusUnprocessableEntity,
			"The form was incomplete, so no key was generated. Try again.")
	}
	// This read may fail, so it comes before the generation: a generated key must be shown.
	agentID, err := exampleAgent(c.Request.Context(), p.agents, old.AccountID)
	if err != nil {
		return err
	}
	key, secret, err := p.views.generate(c, keys.NewKey{Label: old.Label, FormID: formID, Replaces: old.ID})
	if err != nil {
		return p.explainNoReplacement(c, old, err)
	}
	reveal := p.views.reveal(key, secret, exampleAgentOf(key, agentID))
	reveal.Back = rotationOf(c, old.ID)
	hours, err := p.keyUsage.Of(c.Request.Context(), old.AccountID, rotationHours, old.ID)
	if err != nil {
		_ = c.Error(err) // the key must be shown now, the counts can wait
	}
	return p.reply(c, reply{
		fragment: templates.RotationStarted{Rotation: p.started(c, old, key, hours), Reveal: reveal},
		page:     present(reveal), reveals: true,
	})
}

// explainNoReplacement shows the rotation with the reason why no replacement was generated.
func (p *rotationPages) explainNoReplacement(c *gin.Context, old keys.Key, err error) error {
	if repeated, ok := errors.AsType[*keys.RepeatedFormError](err); ok {
		return p.refuseReplacement(c, http.StatusConflict, fmt.Sprintf(
			"This form has already created the key %s. Its value cannot be shown again.", repeated.Key.Masked()))
	}
	if errors.Is(err, value.ErrKeyLimit) {
		return p.refuseReplacement(c, http.StatusUnprocessableEntity, "")
	}
	if errors.Is(err, value.ErrKeyAlreadyRevoked) {
		return p.views.redirectRevoked(c, old, true)
	}
	return err
}

func (p *rotationPages) refuseReplacement(c *gin.Context, status int, why string) error {
	page, err := p.find(c)
	if err != nil {
		return err
	}
	if p.views.ended(page.Old.Key) {
		return p.views.redirectRevoked(c, page.Old.Key, true)
	}
	page.Problem = why
	return p.reply(c, reply{status: status, fragment: page, page: present(page)})
}

// showProgress returns the progress if it differs from the version that the client shows.
func (p *rotationPages) showProgress(c *gin.Context) error {
	page, err := p.find(c)
	switch {
	case err != nil:
		return err
	case p.views.ended(page.Old.Key):
		return p.views.redirectRevoked(c, page.Old.Key, false)
	case page.Progress == nil: // the replacement was discarded
		return p.redirect(c, rotationOf(c, page.Old.ID))
	}
	response := reply{fragment: page, location: rotationOf(c, page.Old.ID)}
	if page.Progress.Version == c.Query("seen") {
		response.status = http.StatusNoContent
	}
	return p.reply(c, response)
}

// newRevocation shows on the page of a rotation the confirmation of the old key's
// revocation.
func (p *rotationPages) newRevocation(c *gin.Context) error {
	return p.askRevocation(c, http.StatusOK, "")
}

// askRevocation shows the confirmation with the submitted reason and its error.
func (p *rotationPages) askRevocation(c *gin.Context, status int, reasonProblem string) error {
	page, err := p.find(c)
	if err != nil {
		return err
	}
	old, err := p.views.durable(c, page.Old.Key)
	if err != nil {
		return p.revocations.replyUnconfirmed(c, err)
	}
	if p.views.ended(old) {
		return p.views.redirectRevoked(c, old, true)
	}
	if page.Progress == nil {
		return p.redirect(c, rotationOf(c, old.ID))
	}
	question := templates.APIKeyConfirmation{ReasonProblem: reasonProblem}
	if err := p.revocations.addUse(c, &question, keys.KeyUsage{Key: old}); err != nil {
		return err
	}
	question.Requests = page.Progress.Old.Requests // as elsewhere on the page
	page.Progress.Confirmation = &question
	return p.reply(c, reply{status: status, fragment: page, page: present(page)})
}

// createRevocation revokes the old key, which ends the rotation.
func (p *rotationPages) createRevocation(c *gin.Context) error {
	key, already, err := p.revocations.revoke(c)
	if invalid, ok := errors.AsType[*value.InvalidError](err); ok {
		return p.askRevocation(c, http.StatusUnprocessableEntity, invalid.Message)
	}
	if err != nil {
		return p.revocations.replyUnconfirmed(c, err)
	}
	return p.views.redirectRevoked(c, key, already)
}

// silentAfter is the time without a request after which a key counts as silent.
const silentAfter = time.Hour

// rotationHours are the hours in a rotation's charts.
var rotationHours = keys.Hours(24)

func rotationPath(id uuid.UUID) string { return fmt.Sprintf("%s/%s/rotation", homePath, id) }

// rotationOf is rotationPath. If the request says that the user has lost the key, the address says
// so too.
func rotationOf(c *gin.Context, id uuid.UUID) string {
	if rotationWords(c).Lost {
		return rotationPath(id) + "?lost=yes"
	}
	return rotationPath(id)
}

func rotationWords(c *gin.Context) templates.RotationWords {
	return templates.RotationWords{Lost: c.Query("lost") != ""}
}

// find returns the page of the rotation of the key with the id in the path. If the key has
// ended, the page has nothing else. Because the state of a rotation is derived from the two keys
// and their usage, a user can leave and continue at any time.
func (p *rotationPages) find(c *gin.Context) (templates.RotationPage, error) {
	old, err := p.views.find(c)
	page := templates.RotationPage{RotationWords: rotationWords(c), Old: p.rotatedKey(old, nil, 0)}
	if err != nil || p.views.ended(old) {
		return page, err
	}
	ctx := c.Request.Context()
	replacement, err := p.keys.Replacement(ctx, old.AccountID, old.ID)
	if err == nil {
		hours, err := p.keyUsage.Of(ctx, old.AccountID, rotationHours, old.ID, replacement.ID)
		return p.started(c, old, replacement, hours), err
	}
	if !errors.Is(err, value.ErrKeyNotFound) {
		return page, err
	}
	now := p.now()
	page.FormID, page.Expires = uuid.New(), templates.NewKeyExpires(p.keys.RenewedExpiry(old, now), now)
	keys, err := p.keys.Active(ctx, old.AccountID)
	if len(keys) >= value.MaxActiveKeys {
		page.Full = len(keys)
	}
	return page, err
}

// started returns the page of a rotation with the usage of both keys.
func (p *rotationPages) started(c *gin.Context, old, replacement keys.Key, hours map[uuid.UUID]keys.KeyUsage) templates.RotationPage {
	highest := int64(0)
	for _, usage := range hours {
		for _, n := range usage.Requests {
			highest = max(highest, n)
		}
	}
	progress := templates.RotationProgress{
		RotationWords: rotationWords(c),
		Old:           p.rotatedKey(old, hours[old.ID].Requests, highest),
		Replacement:   p.rotatedKey(replacement, hours[replacement.ID].Requests, highest),
		Silent:        old.LastUsedAt == nil || p.now().Sub(*old.LastUsedAt) >= silentAfter,
	}
	progress.Version = versionOf(progress)
	return templates.RotationPage{RotationWords: progress.RotationWords, Old: progress.Old, Progress: &progress}
}

// rotatedKey returns one of the two keys, with the heights in its chart relative to highest.
func (p *rotationPages) rotatedKey(key keys.Key, hours []int64, highest int64) templates.RotatedKey {
	now := p.now()
	rotated := templates.RotatedKey{
		Key: key, Created: templates.NewMoment(key.CreatedAt, now),
		LastUsed: optionalMoment(key.LastUsedAt, now), Expires: templates.NewKeyExpires(key.ExpiresAt, now), Hours: templates.Hours(hours, highest),
	}
	for _, n := range hours {
		rotated.Requests += templates.Count(n)
	}
	return rotated
}
