package portal

import (
	"context"
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
	// silentAfter is how long a key must not have been used to be called silent.
	silentAfter = time.Hour
	// hoursShown is how far back the page of a rotation looks.
	hoursShown = 24
)

// rotation is what the database knows of a rotation: no more than which keys
// there are and how they are used, so that it goes on wherever it was left.
type rotation struct {
	old, replacement models.APIKey
	started          bool // there is a replacement
	hours            map[uuid.UUID][]int64
}

func rotationPath(id uuid.UUID) string { return fmt.Sprintf("%s/%s/rotation", homePath, id) }

// findRotation reads the rotation of the key that the address names.
func (p *Portal) findRotation(ctx context.Context, c *gin.Context) (rotation, error) {
	id, err := idOf(c)
	if err != nil {
		return rotation{}, err
	}
	accountID := customer(c).AccountID
	old, err := p.store.APIKey(ctx, accountID, id)
	if err != nil || old.RevokedAt != nil {
		return rotation{old: old}, err
	}
	replacement, err := p.store.Replacement(ctx, accountID, id)
	if errors.Is(err, models.ErrKeyNotFound) {
		return rotation{old: old}, nil
	}
	if err != nil {
		return rotation{}, err
	}
	hours, err := p.store.HourlyRequests(ctx, accountID, hoursShown, old.ID, replacement.ID)
	return rotation{old: old, replacement: replacement, started: true, hours: hours}, err
}

func (p *Portal) rotationPage(c *gin.Context, r rotation) (templates.RotationPage, error) {
	if r.started {
		progress := p.rotationProgress(r)
		return templates.RotationPage{Old: progress.Old, Progress: &progress}, nil
	}
	page := templates.RotationPage{Old: p.rotatedKey(r.old, nil, 0), FormID: uuid.New()}
	keys, err := p.store.APIKeys(c.Request.Context(), r.old.AccountID)
	if len(keys) >= models.MaxActiveKeys {
		page.Full = len(keys)
	}
	return page, err
}

func (p *Portal) rotationProgress(r rotation) templates.RotationProgress {
	highest := int64(0)
	for _, hours := range r.hours {
		for _, n := range hours {
			highest = max(highest, n)
		}
	}
	progress := templates.RotationProgress{
		Old:         p.rotatedKey(r.old, r.hours[r.old.ID], highest),
		Replacement: p.rotatedKey(r.replacement, r.hours[r.replacement.ID], highest),
		Silent:      r.old.LastUsedAt == nil || p.now().Sub(*r.old.LastUsedAt) >= silentAfter,
	}
	progress.Version = rotationVersion(progress)
	return progress
}

func (p *Portal) rotatedKey(key models.APIKey, hours []int64, highest int64) templates.RotatedKey {
	now := p.now()
	rotated := templates.RotatedKey{
		ID: key.ID, Label: key.Label, Masked: key.Masked(),
		Created: templates.NewMoment(key.CreatedAt, now), LastUsed: momentOf(key.LastUsedAt, now), Hours: templates.Hours(hours, highest),
	}
	for _, n := range hours {
		rotated.Requests += templates.Count(n)
	}
	return rotated
}

// rotationVersion is short, and another one once something else is to be told. Time that
// passes is nothing new: the page itself keeps up with it.
func rotationVersion(progress templates.RotationProgress) string {
	told := fmt.Sprintln(progress.Silent, progress.Received())
	for _, key := range []templates.RotatedKey{progress.Old, progress.Replacement} {
		told += fmt.Sprintln(key.ID, key.Requests, key.Hours)
	}
	sum := sha256.Sum256([]byte(told))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}
