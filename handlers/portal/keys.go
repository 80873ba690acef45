package portal

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
	"portal/models/calls"
	"portal/models/keys"
	"portal/models/value"
	"portal/templates"
)

// keyViews are what the pages about keys share: the key in the path, its row, and its secret.
type keyViews struct {
	*site

	keys  *keys.Keys
	calls *calls.Calls
	// Its secret scanning reports leaked keys.
	leaksReported bool
}

// The parameter focus names the button that opened the row. That button gets the focus again.
const (
	paramFocus  = "focus"
	focusRevoke = "revoke"
	focusMenu   = "menu"
)

// With the parameter back, a page about a key leads back to the page of the key, otherwise to the
// list.
const (
	paramBack = "back"
	backToKey = "key"
)

// keysChanged is the event after which an open list fetches its changes.
const keysChanged = "keys-changed"

var (
	// chartDays are the days in a key's chart.
	chartDays = keys.Days(30)
	// lastDay and lastHour are whole hours, so they can have up to one hour more.
	lastDay, lastHour = keys.Hours(25), keys.Hours(2)
)

func (v *keyViews) find(c *gin.Context) (keys.Key, error) {
	return v.keys.Find(c.Request.Context(), sessionFrom(c).AccountID, idOf(c))
}

// ended reports whether a key is revoked or has expired.
func (v *keyViews) ended(key keys.Key) bool { return key.EndedAt(v.now()) != nil }

// rotationWith returns a key's rotation with another key, where the key with the id old is
// replaced.
func rotationWith(other keys.Key, old uuid.UUID, now time.Time) *templates.KeyRotation {
	return &templates.KeyRotation{
		Label: other.Label, Created: templates.ShortDate(other.CreatedAt, now), OldID: old, Replaces: other.ID == old,
	}
}

// rotation reads the rotation of one key, or returns nil if it has none with an active key.
func (v *keyViews) rotation(c *gin.Context, key keys.Key) (*templates.KeyRotation, error) {
	if key.ReplacesID != nil {
		old, err := v.keys.Find(c.Request.Context(), key.AccountID, *key.ReplacesID)
		if err != nil || !v.ended(old) {
			return rotationWith(old, old.ID, v.now()), err
		}
	}
	replacement, err := v.keys.Replacement(c.Request.Context(), key.AccountID, key.ID)
	if errors.Is(err, value.ErrKeyNotFound) {
		return nil, nil
	}
	return rotationWith(replacement, key.ID, v.now()), err
}

func (v *keyViews) row(key keys.KeyUsage, rotation *templates.KeyRotation) templates.APIKeyRow {
	now := v.now()
	requests, _ := key.Total()
	return templates.APIKeyRow{
		Key: key.Key, Created: templates.NewMoment(key.CreatedAt, now), ShortDate: templates.ShortDate(key.CreatedAt, now), LastUsed: optionalMoment(key.LastUsedAt, now),
		Expires: templates.NewKeyExpires(key.ExpiresAt, now), Unused: unused(key.Key, now),
		Requests: templates.Count(requests), Sparkline: templates.Sparkline(key.Requests), Rotation: rotation,
	}
}

// readRow reads the rotation of a key and how much of its limits calls use.
func (v *keyViews) readRow(c *gin.Context, key keys.KeyUsage) (templates.APIKeyRow, error) {
	rotation, err := v.rotation(c, key.Key)
	if err != nil {
		return templates.APIKeyRow{}, err
	}
	row := v.row(key, rotation)
	err = v.addCallLimits(c, key.AccountID, &row)
	return row, err
}

// addCallLimits adds to rows how much of their limits calls use.
func (v *keyViews) addCallLimits(c *gin.Context, accountID uuid.UUID, rows ...*templates.APIKeyRow) error {
	var limited []uuid.UUID
	for _, row := range rows {
		if !row.Limits.IsZero() {
			limited = append(limited, row.ID)
		}
	}
	if len(limited) == 0 || !v.calls.Enabled() {
		return nil
	}
	used, err := v.calls.UsedByKeys(c.Request.Context(), accountID, limited)
	for _, row := range rows {
		row.CallLimits = templates.UsedLimits(used[row.ID], row.Limits)
	}
	return err
}

// unused reports whether a key has not been used for 30 days. A newer key is not unused.
func unused(key keys.Key, now time.Time) bool {
	last := key.CreatedAt
	if key.LastUsedAt != nil {
		last = *key.LastUsedAt
	}
	return now.Sub(last) >= 30*value.Day
}

// showRevoked removes the row of a revoked key from the page, with a notice.
func (v *keyViews) showRevoked(c *gin.Context, key keys.Key, already bool) error {
	location := homePath
	if wantsBack(c) {
		location = keyPath(key)
	}
	return v.reply(c, reply{
		notice: revokedNotice(key, already), fragment: templates.APIKeyRevoked{ID: key.ID}, location: location, event: keysChanged,
	})
}

// redirectRevoked redirects to the page of keys, with a notice that the key was revoked.
func (v *keyViews) redirectRevoked(c *gin.Context, key keys.Key, already bool) error {
	return v.redirectWith(c, homePath, revokedNotice(key, already))
}

func revokedNotice(key keys.Key, already bool) string {
	outcome := "was revoked"
	switch {
	case already && key.RevokedAt == nil:
		outcome = "has expired"
	case already:
		outcome = "was already revoked"
	}
	return fmt.Sprintf("API key “%s” (%s) %s.", templates.Isolate(key.Label), key.Masked(), outcome)
}

// versionOf returns a hash of what a page shows, so that it fetches only changes.
func versionOf(shown any) string {
	hash := fnv.New64a()
	if err := json.NewEncoder(hash).Encode(shown); err != nil {
		panic(err) // every view has JSON
	}
	return fmt.Sprintf("%x", hash.Sum64())
}

func keyPath(key keys.Key) string { return fmt.Sprintf("%s/%s", homePath, key.ID) }

func wantsBack(c *gin.Context) bool {
	return c.Query(paramBack) == backToKey || c.PostForm(paramBack) == backToKey
}

// back returns the address that a page about a key leads back to. In the list, the button with this
// name takes the focus.
func back(c *gin.Context, key keys.Key, button string) string {
	if wantsBack(c) {
		return keyPath(key)
	}
	return fmt.Sprintf("%s#%s-%s", homePath, button, key.ID)
}

// durable returns the key unchanged if it is active. Before a page says that a key was
// revoked, the revocation must be one that no failover can undo.
func (v *keyViews) durable(c *gin.Context, key keys.Key) (keys.Key, error) {
	if key.RevokedAt == nil {
		return key, nil
	}
	return v.keys.FindDurable(c.Request.Context(), key.AccountID, key.ID)
}

// generate generates a key within the account's limit of generations, or returns a 429. A
// refused generation does not count.
func (v *keyViews) generate(c *gin.Context, n keys.NewKey) (keys.Key, string, error) {
	accountID := sessionFrom(c).AccountID
	if _, wait := v.generations.Take(accountID); wait > 0 {
		return keys.Key{}, "", problem.TooManyGenerations(wait)
	}
	key, secret, err := v.keys.Generate(c.Request.Context(), accountID, n, actorOf(c))
	if err != nil {
		v.generations.Return(accountID)
	}
	return key, secret, err
}

// reveal returns the view that shows a generated key once.
func (v *keyViews) reveal(key keys.Key, secret, agentID string) templates.APIKeyReveal {
	list := "/api/agents"
	if key.OnlyReports() {
		agentID, list = "", "/api/activity"
	}
	return templates.APIKeyReveal{
		ID: key.ID, Label: key.Label, Key: secret, AgentID: agentID,
		TokenURL: v.url("/api/widget/token"), ListURL: v.url(list), Back: fmt.Sprintf("%s#api-key-%s", homePath, key.ID),
		Expires: templates.NewKeyExpires(key.ExpiresAt, v.now()), Restrictions: key.Restrictions(),
		OnlyReports: key.OnlyReports(), LeaksReported: v.leaksReported,
	}
}

// exampleAgentOf returns the id of an agent that the key reaches: one of its list or, if it has
// none, first, which may be empty.
func exampleAgentOf(key keys.Key, first string) string {
	switch {
	case key.Agents == nil:
		return first
	case len(key.Agents) == 0:
		return ""
	}
	return key.Agents[0].String()
}

// ask replies with a row that asks something, or with a page of the question alone. Neither shows
// how the key is used.
func (v *keyViews) ask(c *gin.Context, status int, row templates.APIKeyRow) error {
	now := v.now()
	row.Created, row.ShortDate = templates.NewMoment(row.CreatedAt, now), templates.ShortDate(row.CreatedAt, now)
	row.LastUsed = optionalMoment(row.LastUsedAt, now)
	if wantsBack(c) {
		row.Back = backToKey
	}
	return v.reply(c, reply{status: status, fragment: row, page: present(templates.KeyQuestion{APIKeyRow: row})})
}
