package models

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// User is a person who signs in to the portal of an account.
type User struct {
	bun.BaseModel `bun:"table:users,alias:u"`

	ID           uuid.UUID `bun:",pk"`
	AccountID    uuid.UUID
	Email        string // trimmed, case preserved
	EmailHash    []byte // unique; see hashEmail
	PasswordHash string // argon2id, PHC string; see password.Hasher.Absent
	// KnownBrowsers is the generation of the browsers in which the user has signed in.
	KnownBrowsers int
	Role          Role
	CreatedAt     time.Time
	DisabledAt    *time.Time
	RemovedAt     *time.Time // while this is set, only the activity log needs the user
	LastSignInAt  *time.Time // nil if the user has never signed in

	Disabled bool `bun:",scanonly"` // the user or the account is disabled; set by a sign-in only
}

// NewUser is the input of [People.Add].
type NewUser struct {
	Email    string // unique, compared without case
	Password string // 12 to 128 characters, not trimmed; empty for none
	Role     Role
}

// People are the users of accounts.
type People struct {
	db        *DB
	passwords *passwords
}

// Add adds a user to an account, records the activity, and deletes a pending invitation of the user
// to this account. A user without a password signs in with a link. The error may be an
// [*InvalidError] for the field "email", "role" or "password", [ErrAccountNotFound] or
// [ErrEmailTaken].
func (p *People) Add(ctx context.Context, accountID uuid.UUID, n NewUser, actor Actor) (User, error) {
	email, err := cleanEmail(n.Email)
	if err != nil {
		return User{}, err
	}
	if err := checkRole(n.Role); err != nil {
		return User{}, err
	}
	account, err := findAccount(ctx, p.db, accountID)
	if err != nil {
		return User{}, err
	}
	hash := p.passwords.hasher.Absent()
	if n.Password != "" {
		if err := checkPassword(n.Password, email, account.Name); err != nil {
			return User{}, err
		}
		if hash, err = p.passwords.hash(ctx, knownPlace(email), n.Password); err != nil {
			return User{}, err
		}
	}
	return inTx(ctx, p.db, "add user", func(ctx context.Context, tx Tx) (User, error) {
		user, err := insertUser(ctx, tx, User{AccountID: accountID, Email: email, PasswordHash: hash, Role: n.Role})
		if err != nil {
			return User{}, err
		}
		err = tx.Delete(ctx, (*Invitation)(nil), "account_id = ? AND email_hash = ?", accountID, user.EmailHash)
		if err != nil {
			return User{}, err
		}
		return user, tx.Record(ctx, accountID, actor, ActionUserAdded, user.ID, user.Email)
	})
}

// insertUser stores a new user, or returns [ErrEmailTaken].
func insertUser(ctx context.Context, tx Tx, user User) (User, error) {
	user.ID, user.EmailHash, user.CreatedAt = newID(), hashEmail(user.Email), tx.Now()
	result, err := tx.NewInsert().Model(&user).On("CONFLICT (email_hash) DO NOTHING").Exec(ctx)
	return user, unlessAffected(result, err, ErrEmailTaken)
}

// List returns a page of the account's users, by id.
func (p *People) List(ctx context.Context, accountID uuid.UUID, page Page) (List[User], error) {
	users := []User{}
	err := page.byID(p.db.NewSelect().Model(&users)).Where("u.account_id = ? AND u.removed_at IS NULL", accountID).Scan(ctx)
	return cut(users, page), failed("list users", err)
}

// Find returns one of the account's users, also a removed one, or [ErrUserNotFound].
func (p *People) Find(ctx context.Context, accountID, id uuid.UUID) (User, error) {
	user, err := findUser(ctx, p.db, "u.account_id = ? AND u.id = ?", accountID, id)
	return user, failed("find user", err)
}

// FindByEmail returns the user with this email, or [ErrUserNotFound]. It is for operators.
func (p *People) FindByEmail(ctx context.Context, email string) (User, error) {
	user, err := findUser(ctx, p.db, "u.email_hash = ?", hashEmail(email))
	return user, failed("find user", err)
}

// SetDisabled disables or enables the user with this email and records the activity, unless nothing
// changes. Disabling ends the user's sessions and links. If there is no such user, the error is
// [ErrUserNotFound]. SetDisabled is for operators.
func (p *People) SetDisabled(ctx context.Context, email string, disabled bool) error {
	return p.db.InTx(ctx, "disable or enable user", func(ctx context.Context, tx Tx) error {
		user, err := findUser(ctx, tx, "u.email_hash = ?", hashEmail(email))
		if err != nil {
			return err
		}
		changed, err := setDisabled(ctx, tx, (*User)(nil), user.ID, disabled)
		if err != nil || !changed {
			return err
		}
		action := ActionUserEnabled
		if disabled {
			action = ActionUserDisabled
			if err := endAllSessions(ctx, tx, "id = ?", user.ID); err != nil {
				return err
			}
		}
		return tx.Record(ctx, user.AccountID, Operator(), action, user.ID, user.Email)
	})
}

// setDisabled disables or enables the row of a user or an account, and reports whether the row has
// changed.
func setDisabled(ctx context.Context, tx Tx, model any, id uuid.UUID, disabled bool) (bool, error) {
	query := tx.NewUpdate().Model(model).Where("id = ?", id)
	if disabled {
		query = query.Set("disabled_at = ?", tx.Now()).Where("disabled_at IS NULL")
	} else {
		query = query.Set("disabled_at = NULL").Where("disabled_at IS NOT NULL")
	}
	changed, err := affected(query.Exec(ctx))
	return changed > 0, err
}

// findUser returns the user that matches where, or [ErrUserNotFound].
func findUser(ctx context.Context, db bun.IDB, where string, args ...any) (User, error) {
	var user User
	err := db.NewSelect().Model(&user).ColumnExpr("?TableColumns").
		ColumnExpr("u.disabled_at IS NOT NULL OR EXISTS (SELECT 1 FROM accounts WHERE id = u.account_id AND disabled_at IS NOT NULL) AS disabled").
		Where(where, args...).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return User{}, ErrUserNotFound
	}
	return user, err
}

// Role says what a user may do in the account.
type Role string

// The roles.
const (
	RoleOwner  Role = "owner"  // also manages the account's users
	RoleMember Role = "member" // manages keys and agents
)

// checkRole returns an [*InvalidError] for the field "role" unless the role exists.
func checkRole(role Role) error {
	if role != RoleOwner && role != RoleMember {
		return &InvalidError{"role", "The role must be owner or member."}
	}
	return nil
}

// SetRole changes the role of one of the account's users, returns the user and records the
// activity, unless nothing changes. If an owner becomes a member, the owner's invitations end. The
// error may be an [*InvalidError] for the field "role", [ErrUserNotFound], [ErrLastOwner] or
// [ErrNotOwner].
func (p *People) SetRole(ctx context.Context, accountID, id uuid.UUID, role Role, actor Actor) (User, error) {
	if err := checkRole(role); err != nil {
		return User{}, err
	}
	return inTx(ctx, p.db, "change role", func(ctx context.Context, tx Tx) (User, error) {
		user, err := lockMember(ctx, tx, accountID, id, actor)
		if err != nil || user.Role == role {
			return user, err
		}
		action := ActionUserMadeOwner
		if role == RoleMember {
			action = ActionUserMadeMember
			if err := p.checkOwnerLeft(ctx, tx, user); err != nil {
				return User{}, err
			}
			if err := tx.Delete(ctx, (*Invitation)(nil), "inviter_id = ?", id); err != nil {
				return User{}, err
			}
		}
		user.Role = role
		if err := tx.Update(ctx, &user, "role"); err != nil {
			return User{}, err
		}
		return user, tx.Record(ctx, accountID, actor, action, id, user.Email)
	})
}

// Remove removes one of the account's users, ends the user's sessions, sign-in links and
// invitations, and records the activity. The user's keys stay, and the email can be used again. The
// error may be [ErrUserNotFound], [ErrLastOwner] or [ErrNotOwner].
func (p *People) Remove(ctx context.Context, accountID, id uuid.UUID, actor Actor) error {
	return p.db.InTx(ctx, "remove user", func(ctx context.Context, tx Tx) error {
		user, err := lockMember(ctx, tx, accountID, id, actor)
		if err != nil {
			return err
		}
		if err := p.checkOwnerLeft(ctx, tx, user); err != nil {
			return err
		}
		noEmail := make([]byte, sha256.Size)
		_, _ = rand.Read(noEmail) // never fails (crypto/rand)
		now := tx.Now()
		_, err = tx.NewUpdate().Model((*User)(nil)).Set("removed_at = ?, disabled_at = COALESCE(disabled_at, ?)", now, now).
			Set("email_hash = ?, password_hash = ?", noEmail, p.passwords.hasher.Absent()).Where("id = ?", id).Exec(ctx)
		if err != nil {
			return err
		}
		if err := endAllSessions(ctx, tx, "id = ?", id); err != nil {
			return err
		}
		// The person may become another user, with the same identity.
		if err := tx.deleteOf(ctx, id, append(factorTables, "identities")...); err != nil {
			return err
		}
		return tx.Record(ctx, accountID, actor, ActionUserRemoved, id, user.Email)
	})
}

// lockMember returns one of the account's users whom the actor may manage, or [ErrUserNotFound] or
// [ErrNotOwner]. Two owners who remove each other take turns.
func lockMember(ctx context.Context, tx Tx, accountID, id uuid.UUID, actor Actor) (User, error) {
	if err := tx.lockAccount(ctx, accountID); err != nil {
		return User{}, err
	}
	if err := checkOwner(ctx, tx, accountID, actor); err != nil {
		return User{}, err
	}
	return findUser(ctx, tx, "u.account_id = ? AND u.id = ? AND u.removed_at IS NULL", accountID, id)
}

// checkOwner returns [ErrNotOwner] unless the actor may manage the account's users: an operator, or
// an owner who was neither removed nor disabled since the request began.
func checkOwner(ctx context.Context, tx Tx, accountID uuid.UUID, actor Actor) error {
	if actor.Kind == ActorOperator {
		return nil
	}
	owns, err := tx.NewSelect().Model((*User)(nil)).
		Where("u.id = ? AND u.account_id = ? AND u.role = ? AND u.disabled_at IS NULL", actor.ID, accountID, RoleOwner).Exists(ctx)
	if err == nil && !owns {
		return ErrNotOwner
	}
	return err
}

// checkOwnerLeft returns [ErrLastOwner] if the account has no owner besides user, or if user can
// sign in without an operator and none of the others can.
func (p *People) checkOwnerLeft(ctx context.Context, tx Tx, user User) error {
	if user.Role != RoleOwner {
		return nil
	}
	others := tx.NewSelect().Model((*User)(nil)).
		Where("u.account_id = ? AND u.id <> ? AND u.role = ? AND u.disabled_at IS NULL", user.AccountID, user.ID, RoleOwner)
	err := p.passwords.checkSignIn(ctx, tx, user.ID)
	if err == nil {
		others = others.Where("?", p.passwords.canSignIn())
	} else if !errors.Is(err, ErrOnlySignIn) {
		return err
	}
	left, err := others.Exists(ctx)
	if err == nil && !left {
		return ErrLastOwner
	}
	return err
}
