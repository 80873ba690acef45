package keys

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/record"
	"portal/models/usage"
	"portal/models/value"
	"portal/models/workload"
)

// Key is an API key without its value.
type Key struct {
	bun.BaseModel `bun:"table:api_keys,alias:api_key"`

	ID         uuid.UUID `bun:",pk,type:uuid"`
	AccountID  uuid.UUID
	Label      string
	KeyHash    []byte // SHA-256 of the whole key; nil: it has no secret
	LastFour   string
	Access     Access
	FormID     uuid.UUID // of the form that generated the key
	CreatedAt  time.Time
	RevokedAt  *time.Time
	ReplacesID *uuid.UUID // the key that this one replaces in a rotation
	CreatedBy  *uuid.UUID // the user who generated the key; nil for operators

	Leak record.Leak `bun:"embed:leak_"` // zero unless the key was reported as leaked

	ExpiresAt *time.Time    // nil: never
	Lifetime  time.Duration `bun:",nullzero"` // the time until ExpiresAt when it was last set
	// ExpiryWarnedAt is when mails about ExpiresAt were last queued; nil: not since it was set.
	ExpiryWarnedAt *time.Time
	ExpiryRecorded KeyExpiry      // the activities about ExpiresAt
	Agents         []uuid.UUID    `bun:",nullzero"` // sorted; nil: all
	Networks       []netip.Prefix `bun:",nullzero"` // nil: any
	Limits         value.Limits   `bun:",nullzero"` // of its calls
	Note           string

	Credential Credential
	// The trust rule of a key without a secret, and a random value that changes whenever it is
	// saved, which ends the access tokens from before; nil for other keys.
	Trust        *workload.Rule    `bun:",nullzero"`
	TrustVersion *uuid.UUID        `bun:",nullzero"`
	TrustPins    map[string]string `bun:",nullzero"` // claims of the first token; nil: none yet

	RevocationReason string // may be empty

	// RevokedBy is the email of the user who revoked the key, or "Operator". It is empty if
	// unknown, for an expired key, and except in a list of [Keys.Revoked].
	RevokedBy string `bun:",scanonly"`
	// UnusedEnd is when the key is revoked unless it is used before. It is only set in a mail.
	UnusedEnd *time.Time `bun:",scanonly"`
	// LastUsedAt is the time of the latest authenticated API request; nil if there was none.
	LastUsedAt *time.Time `bun:",scanonly"`
}

// Masked returns the key as lists show it, such as nas_...a1B2.
func (k Key) Masked() string {
	if k.IsWorkload() {
		return WithoutSecret
	}
	return value.Mask(k.LastFour)
}

// Credential is how clients prove that they may use a key. It is chosen when the key is generated
// and never changes.
type Credential string

const (
	// CredentialSecret is the value of the key.
	CredentialSecret Credential = "secret"
	// CredentialWorkload is a token that the platform of a workload issues to it, in place of a
	// stored value.
	CredentialWorkload Credential = "workload"
)

// WithoutSecret stands for the value of a key that has none.
const WithoutSecret = "Workload identity"

// IsWorkload reports whether the key has a trust rule in place of a secret.
func (k Key) IsWorkload() bool { return k.Credential == CredentialWorkload }

// Access is what a key is for. It is chosen when the key is generated and never changes.
type Access string

const (
	// AccessAgents is the access of a key for agents and their tokens.
	AccessAgents Access = "agents"
	// AccessReports is the access of a key that only reads the activity, the calls and the
	// usage of its account.
	AccessReports Access = "reports"
)

// OnlyReports reports whether the key only reads reports.
func (k Key) OnlyReports() bool { return k.Access == AccessReports }

// EntryID returns the id of the row, for pages of a list.
func (k Key) EntryID() uuid.UUID { return k.ID }

// Restrictions are what a key cannot do. The zero value means no restrictions.
type Restrictions struct {
	ExpiresAt *time.Time     // the key is refused from then on; nil: never
	Agents    []uuid.UUID    // the agents that the key reaches; nil: all of the account
	Networks  []netip.Prefix // the networks that the key is accepted from; nil: any
	Limits    value.Limits   // of the calls that tokens of the key open
}

// Restrictions returns the restrictions of the key.
func (k Key) Restrictions() Restrictions {
	return Restrictions{ExpiresAt: k.ExpiresAt, Agents: k.Agents, Networks: k.Networks, Limits: k.Limits}
}

// RestrictionsVersion returns a hash of the restrictions and the note of the key, for
// [Keys.Restrict].
func (k Key) RestrictionsVersion() string {
	values := struct {
		Restrictions
		Expires int64 // in place of ExpiresAt, whose text depends on the location
		Note    string
	}{Restrictions: k.Restrictions(), Note: k.Note}
	if values.ExpiresAt != nil {
		values.Expires, values.ExpiresAt = values.ExpiresAt.UnixMicro(), nil
	}
	text, err := json.Marshal(values)
	if err != nil {
		panic(err) // the fields of Restrictions have JSON
	}
	hash := sha256.Sum256(text)
	return hex.EncodeToString(hash[:16])
}

// AllowsAddress reports whether the key is accepted from a client's address. If the address is
// unknown, it is the zero address, which is in no network.
func (k Key) AllowsAddress(address netip.Addr) bool {
	return k.Networks == nil || value.Contains(k.Networks, address)
}

// Expired reports whether the key has expired and was not revoked before.
func (k Key) Expired(now time.Time) bool {
	return k.RevokedAt == nil && k.ExpiresAt != nil && !now.Before(*k.ExpiresAt)
}

// EndedAt returns when the key was revoked or, if it was not, when it expired. While the key is
// active, it returns nil.
func (k Key) EndedAt(now time.Time) *time.Time {
	if k.Expired(now) {
		return k.ExpiresAt
	}
	return k.RevokedAt
}

// CheckNote returns an [*value.InvalidError] for the field "note" unless a key can have this note.
func CheckNote(note string) error {
	_, err := value.CleanNote("note", "Note", note)
	return err
}

// CheckLabel returns an [*value.InvalidError] for the field "label" unless a key can have this
// label.
func CheckLabel(label string) error {
	_, err := value.CleanName("label", "Label", label)
	return err
}

// RepeatedFormError reports a form that has already generated its key.
type RepeatedFormError struct {
	Key Key // the generated key; may be revoked
}

func (e *RepeatedFormError) Error() string { return "this form has already generated a key" }

// KeyExpiry says which activities about the expiry of a key are recorded.
type KeyExpiry int

// Source is where a request comes from.
type Source = usage.Source
