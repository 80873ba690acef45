package portal

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/models"
	"portal/templates"
)

const (
	// silentAfter is the time without a request after which a key counts as silent.
	silentAfter = time.Hour
)

// rotationHours are the hours in a rotation's charts.
var rotationHours = models.Hours(24)

// rotation is the state of a rotation. It is derived from the two keys and their usage, so a user
// can leave and continue at any time.
type rotation struct {
	old, replacement models.Key
	started          bool // a replacement exists
	hours            map[uuid.UUID]models.KeyUsage
}

func rotationPath(id uuid.UUID) string { return fmt.Sprintf("%s/%s/rotation", homePath, id) }

// findRotation reads the rotation of the key with the id in the path.
func (p *Portal) findRotation(c *gin.Context) (rotation, error) {
	old, err := p.apiKey(c)
	if err != nil || old.RevokedAt != nil {
		return rotation{old: old}, err
	}
	ctx := c.Request.Context()
	replacement, err := p.store.Keys.Replacement(ctx, old.AccountID, old.ID)
	if errors.Is(err, models.ErrKeyNotFound) {
		return rotation{old: old}, nil
	}
	if err != nil {
		return rotation{}, err
	}
	hours, err := p.store.Keys.Usage(ctx, old.AccountID, rotationHours, old.ID, replacement.ID)
	return rotation{old: old, replacement: replacement, started: true, hours: hours}, err
}

func (p *Portal) rotationPage(c *gin.Context, r rotation) (templates.RotationPage, error) {
	if r.started {
		progress := p.rotationProgress(r)
		return templates.RotationPage{Old: progress.Old, Progress: &progress}, nil
	}
	page := templates.RotationPage{Old: p.rotatedKey(r.old, nil, 0), FormID: uuid.New()}
	keys, err := p.store.Keys.Active(c.Request.Context(), r.old.AccountID)
	if len(keys) >= models.MaxActiveKeys {
		page.Full = len(keys)
	}
	return page, err
}

func (p *Portal) rotationProgress(r rotation) templates.RotationProgress {
	highest := int64(0)
	for _, usage := range r.hours {
		for _, n := range usage.Requests {
			highest = max(highest, n)
		}
	}
	progress := templates.RotationProgress{
		Old:         p.rotatedKey(r.old, r.hours[r.old.ID].Requests, highest),
		Replacement: p.rotatedKey(r.replacement, r.hours[r.replacement.ID].Requests, highest),
		Silent:      r.old.LastUsedAt == nil || p.now().Sub(*r.old.LastUsedAt) >= silentAfter,
	}
	progress.Version = rotationVersion(progress)
	return progress
}

// rotatedKey returns one of the two keys. The heights in its chart are relative to highest.
func (p *Portal) rotatedKey(key models.Key, hours []int64, highest int64) templates.RotatedKey {
	now := p.now()
	rotated := templates.RotatedKey{
		ID: key.ID, Label: key.Label, Masked: key.Masked(), Created: templates.NewMoment(key.CreatedAt, now),
		LastUsed: optionalMoment(key.LastUsedAt, now), Hours: templates.Hours(hours, highest),
	}
	for _, n := range hours {
		rotated.Requests += templates.Count(n)
	}
	return rotated
}

// rotationVersion returns a hash of what the page shows, except relative times: the page updates
// those itself.
func rotationVersion(progress templates.RotationProgress) string {
	content := fmt.Sprintln(progress.Silent, progress.Received())
	for _, key := range []templates.RotatedKey{progress.Old, progress.Replacement} {
		content += fmt.Sprintln(key.ID, key.Requests, key.Hours)
	}
	sum := sha256.Sum256([]byte(content))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}
