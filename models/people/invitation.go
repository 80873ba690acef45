package people

import (
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// Invitation lets its recipient join an account once. A used or cancelled invitation is deleted.
type Invitation struct {
	bun.BaseModel `bun:"table:invitations,alias:invitation"`

	ID        uuid.UUID `bun:",pk"`
	AccountID uuid.UUID
	Email     string // of the new user
	EmailHash []byte // see HashEmail
	Role      Role   // of the new user
	TokenHash []byte // SHA-256 of the token in the link
	InviterID *uuid.UUID
	CreatedAt time.Time
	ExpiresAt time.Time

	// SHA-256 of the token in the mail; nil until it is sent.
	MailTokenHash []byte `bun:",nullzero"`

	Mailed      bool   `bun:"-"` // by [Invitations.Create]: a mail with a link is queued
	AccountName string `bun:",scanonly"`
	Disabled    bool   `bun:",scanonly"` // the account is disabled
	Inviter     string `bun:",scanonly"` // email; empty: an operator, or a user who was removed
}
