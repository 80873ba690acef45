package people

import (
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/record"
	"portal/models/value"
)

// User is a person who signs in to the portal of an account.
type User struct {
	bun.BaseModel `bun:"table:users,alias:u"`

	ID        uuid.UUID `bun:",pk"`
	AccountID uuid.UUID
	Email     string // trimmed, case preserved
	EmailHash []byte // unique; see HashEmail
	// EmailProvenAt is since when the user's emails are proven: a link mailed to the email was
	// used, or an operator gave it. It is nil for one that nobody has proved. A link that was
	// shown on a page proves nothing.
	EmailProvenAt *time.Time
	PasswordHash  string // argon2id, PHC string; see password.Hasher.Absent
	// KnownBrowsers is the generation of the browsers in which the user has signed in.
	KnownBrowsers int
	Role          Role
	CreatedAt     time.Time
	DisabledAt    *time.Time
	RemovedAt     *time.Time // while this is set, only the activity log needs the user
	LastSignInAt  *time.Time // nil if the user has never signed in

	// The user or the account is disabled; set by a sign-in only.
	Disabled bool `bun:",scanonly"`

	// HasApp and HasPasskey are set in what [People] returns.
	HasApp     bool `bun:",scanonly"` // for two-step verification
	HasPasskey bool `bun:",scanonly"`
}

// EntryID returns the id of the row, for pages of a list.
func (u User) EntryID() uuid.UUID { return u.ID }

// activity returns the activity of an action whose subject is the user.
func (u User) activity(action record.Action) record.Activity {
	return record.Activity{AccountID: u.AccountID, Action: action, SubjectID: &u.ID, Label: u.Email}
}

// NewUser is the input of [People.Add].
type NewUser struct {
	Email    string // unique, compared without case, see HashEmail
	Password string // 12 to 128 characters, not trimmed; empty for none
	Role     Role
}

// UserChange is what [People.Change] changes; nil: nothing.
type UserChange struct {
	Role     *Role
	Disabled *bool
}

// Role says what a user may do in the account.
type Role string

// The roles.
const (
	RoleOwner  Role = "owner"  // also manages the account's users
	RoleMember Role = "member" // manages keys and agents
)

// checkRole returns an [*value.InvalidError] for the field "role" unless the role exists.
func checkRole(role Role) error {
	if role != RoleOwner && role != RoleMember {
		return &value.InvalidError{Field: "role", Message: "The role must be owner or member."}
	}
	return nil
}
