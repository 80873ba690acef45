package record

import (
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/value"
)

// MailPasswordForgotten is the kind of a mail with a link to set a new password,
// MailEmailConfirmation of one to confirm a new email, and MailKeysExpiring of one about keys that
// expire, MailKeysUnused of one about keys that are revoked soon because nobody uses them, and
// MailWebhookFailing of one about a webhook that has failed for an hour. All other kinds are the
// action that the mail reports.
const (
	MailPasswordForgotten Action = "password.forgotten"
	MailEmailConfirmation Action = "email.confirmation"
	MailKeysExpiring      Action = "api_key.expiring"
	MailKeysUnused        Action = "api_key.unused"
	MailWebhookFailing    Action = "webhook.failing"
)

// Mail is an email in the outbox. Because the token of its link is created when it is sent, it
// holds no secret.
type Mail struct {
	bun.BaseModel `bun:"table:outbox,alias:mail"`

	ID         uuid.UUID `bun:",pk"` // the same in each attempt
	Kind       Action
	AccountID  *uuid.UUID
	ActivityID *uuid.UUID // the activity, webhook endpoint or warning that the mail reports
	Recipient  string     // email address
	EmailHash  []byte     `bun:",nullzero"` // of the recipient of a password reset
	CreatedAt  time.Time  // or when the first of the leaked keys was revoked
	DueAt      time.Time  // of the next attempt, or the end of the lease
	Attempts   int        // including the current one

	// DeviceHash is the hash of the address and the browser of a sign-in. Further sign-ins from
	// there share the mail.
	DeviceHash []byte `bun:"-"`

	// The activity. ActorName is the user's email, "Operator" or "Someone".
	AccountName string    `bun:",scanonly"`
	ActorName   string    `bun:",scanonly"`
	Label       string    `bun:",scanonly"`
	KeyLastFour string    `bun:",scanonly"`
	Reason      string    `bun:",scanonly"` // of the revocation
	Detail      string    `bun:",scanonly"`
	Address     string    `bun:",scanonly"`
	UserAgent   string    `bun:",scanonly"` // of the session that began; empty if it has ended
	At          time.Time `bun:",scanonly"`

	Keys []MailKey `bun:"-"` // that expire, are unused or leaked; nil for other mails

	// The invitation, of a mail that has one.
	Role      string    `bun:"-"` // "owner" or "member"
	ExpiresAt time.Time `bun:"-"`
}

// MaskedKey returns the masked key that the mail is about, or "" if there is none.
func (m Mail) MaskedKey() string { return value.MaskIfKnown(m.KeyLastFour) }

// EmailFreed reports whether the mail tells the person who has proved an email that an earlier user
// had it without a proof.
func (m Mail) EmailFreed() bool {
	return m.Kind == ActionEmailChanged && strings.HasSuffix(m.Label, value.UnprovenDomain)
}

// MailKey is a key that a mail lists.
type MailKey struct {
	Label  string
	Masked string
	Leak   Leak
	At     time.Time // when it was revoked, will be revoked, or expires
}

// MaxLeakedKeys is how many leaked keys a mail lists. Mail.Keys may have one more.
const MaxLeakedKeys = 100

// RecentMail counts a mail for [RecentMailWindow]. It has the id of the mail.
type RecentMail struct {
	bun.BaseModel `bun:"table:recent_mails"`

	ID         uuid.UUID `bun:",pk"`
	Kind       Action
	AccountID  *uuid.UUID
	EmailHash  []byte
	DeviceHash []byte `bun:",nullzero"`
	At         time.Time
}

// RecentMailWindow is how long mails are counted.
const RecentMailWindow = time.Hour
