package models

import (
	"context"
	"crypto/rand"
	"crypto/sha256"

	"github.com/google/uuid"
)

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
// activity, unless nothing changes. The invitations of an owner who becomes a member end. The error
// may be an [*InvalidError] for the field "role", [ErrUserNotFound], [ErrLastOwner], [ErrNotOwner]
// or [ErrUnavailable].
func (p *People) SetRole(ctx context.Context, accountID, id uuid.UUID, role Role, actor Actor) (User, error) {
	if err := checkRole(role); err != nil {
		return User{}, err
	}
	var user User
	err := p.db.InTx(ctx, "change role", func(ctx context.Context, tx Tx) (err error) {
		if user, err = lockMember(ctx, tx, accountID, id, actor); err != nil || user.Role == role {
			return err
		}
		action := ActionUserMadeOwner
		if role == RoleMember {
			action = ActionUserMadeMember
			if err := checkOwnerLeft(ctx, tx, user); err != nil {
				return err
			}
			if err := tx.Delete(ctx, (*Invitation)(nil), "inviter_id = ?", id); err != nil {
				return err
			}
		}
		user.Role = role
		if err := tx.Update(ctx, &user, "role"); err != nil {
			return err
		}
		return tx.Record(ctx, accountID, actor, action, id, user.Email)
	})
	if err != nil {
		return User{}, err
	}
	return user, nil
}

// Remove removes one of the account's users and records the activity. The user's sessions,
// sign-in links and invitations end. The user's keys stay, and the email can be used again. The
// error may be [ErrUserNotFound], [ErrLastOwner], [ErrNotOwner] or [ErrUnavailable].
func (p *People) Remove(ctx context.Context, accountID, id uuid.UUID, actor Actor) error {
	err := p.db.InTx(ctx, "remove user", func(ctx context.Context, tx Tx) error {
		user, err := lockMember(ctx, tx, accountID, id, actor)
		if err != nil {
			return err
		}
		if err := checkOwnerLeft(ctx, tx, user); err != nil {
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
		if err := deleteFactors(ctx, tx, id); err != nil {
			return err
		}
		// The person may become another user.
		if err := tx.Delete(ctx, (*Identity)(nil), "user_id = ?", id); err != nil {
			return err
		}
		return tx.Record(ctx, accountID, actor, ActionUserRemoved, id, user.Email)
	})
	return err
}

// lockMember returns one of the account's users whom the actor may manage. Two owners who remove
// each other take turns. The error may be [ErrUserNotFound] or [ErrNotOwner].
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

// checkOwnerLeft returns [ErrLastOwner] if the account has no owner besides user who can sign in.
func checkOwnerLeft(ctx context.Context, tx Tx, user User) error {
	if user.Role != RoleOwner {
		return nil
	}
	left, err := tx.NewSelect().Model((*User)(nil)).
		Where("u.account_id = ? AND u.id <> ? AND u.role = ? AND u.disabled_at IS NULL", user.AccountID, user.ID, RoleOwner).
		Exists(ctx)
	if err == nil && !left {
		return ErrLastOwner
	}
	return err
}
