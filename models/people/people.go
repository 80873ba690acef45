// Package people has the accounts and their users: sessions, the ways to sign in, second factors,
// invitations, and changes of passwords and emails.
//
// Comments name the errors that callers treat differently. Besides, every method may return an
// [*value.InvalidError] about a field of its input, a not-found error for an object that the
// account does not have, [value.ErrNotOwner], [value.ErrEmailTaken], [value.ErrSignInDisabled] for
// a disabled user or account, [value.ErrOnlyByProvider] for a user whose access the provider
// decides, and a [*value.SignInLimitError] after too many guesses.
package people

import (
	"context"
	"crypto/sha256"
	"errors"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/record"
	"portal/models/value"
)

// People are the users of accounts.
type People struct {
	db        *db.DB
	passwords *passwords
}

// Add adds a user to an account, records the activity, and deletes a pending invitation of the user
// to this account. A user without a password signs in with a link. Add is for operators, and the
// email counts as proven; see freeEmail.
func (p *People) Add(ctx context.Context, accountID uuid.UUID, n NewUser, actor record.Actor) (User, error) {
	email, err := value.CleanEmail(n.Email)
	if err != nil {
		return User{}, err
	}
	if err := checkRole(n.Role); err != nil {
		return User{}, err
	}
	account, err := FindAccount(ctx, p.db, accountID)
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
	return db.InTx(ctx, p.db, "add user", func(ctx context.Context, tx db.Tx) (User, error) {
		return addUser(ctx, tx, User{AccountID: accountID, Email: email, PasswordHash: hash, Role: n.Role}, actor)
	})
}

// List returns a page of the account's users, by id.
func (p *People) List(ctx context.Context, accountID uuid.UUID, page value.Page) (value.List[User], error) {
	users := []User{}
	err := page.ByID(SelectUsers(p.db, &users)).Where("u.account_id = ? AND u.removed_at IS NULL", accountID).Scan(ctx)
	return value.Cut(users, page), value.Failed("list users", err)
}

// ListWithoutFactor is [People.List] for those who can sign in and have no second factor, unless
// they sign in with the provider alone.
func (p *People) ListWithoutFactor(ctx context.Context, accountID uuid.UUID, page value.Page) (value.List[User], error) {
	users := []User{}
	err := p.withoutFactor(page.ByID(SelectUsers(p.db, &users)), accountID).Scan(ctx)
	return value.Cut(users, page), value.Failed("list users without a second factor", err)
}

// CountWithoutFactor returns the number of those whom [People.ListWithoutFactor] returns, and
// whether this user is one of them.
func (p *People) CountWithoutFactor(ctx context.Context, accountID, id uuid.UUID) (n int, oneself bool, err error) {
	err = p.withoutFactor(p.db.NewSelect().Model((*User)(nil)), accountID).
		ColumnExpr("count(*), count(CASE WHEN u.id = ? THEN 1 END) > 0", id).Scan(ctx, &n, &oneself)
	return n, oneself, value.Failed("count users without a second factor", err)
}

func (p *People) withoutFactor(q *bun.SelectQuery, accountID uuid.UUID) *bun.SelectQuery {
	return q.Where("u.account_id = ? AND u.removed_at IS NULL AND u.disabled_at IS NULL AND NOT ("+hasFactor+") AND NOT ?", accountID, decidedByProvider(p.db))
}

// Find returns one of the account's users, also a removed one, or [value.ErrUserNotFound].
func (p *People) Find(ctx context.Context, accountID, id uuid.UUID) (User, error) {
	user, err := FindUser(ctx, p.db, "u.account_id = ? AND u.id = ?", accountID, id)
	return user, value.Failed("find user", err)
}

// FindByEmail returns the user with this email, or [value.ErrUserNotFound]. It is for operators.
func (p *People) FindByEmail(ctx context.Context, email string) (User, error) {
	user, err := FindUser(ctx, p.db, "u.email_hash = ?", value.StoredHash(email))
	return user, value.Failed("find user", err)
}

// SetDisabled disables or enables the user with this email and records the activity, unless nothing
// changes. Disabling ends the user's sessions and links. It is for operators.
func (p *People) SetDisabled(ctx context.Context, email string, disabled bool) error {
	user, err := p.FindByEmail(ctx, email)
	if err == nil {
		_, err = p.Change(ctx, user.AccountID, user.ID, UserChange{Disabled: &disabled}, record.Operator())
	}
	return err
}

func setUserDisabled(ctx context.Context, tx db.Tx, user User, disabled bool, actor record.Actor) error {
	changed, err := setDisabledAt(ctx, tx, (*User)(nil), user.ID, disabled)
	if err != nil || !changed {
		return err
	}
	action := record.ActionUserEnabled
	if disabled {
		action = record.ActionUserDisabled
		if err := endAllSessions(ctx, tx, "id = ?", user.ID); err != nil {
			return err
		}
	}
	return record.Add(ctx, tx, actor, user.activity(action))
}

// Change changes the role of one of the account's users, and disables or enables the user. It
// records an activity for each change and returns the user. The error may be [value.ErrLastOwner].
func (p *People) Change(ctx context.Context, accountID, id uuid.UUID, change UserChange, actor record.Actor) (User, error) {
	return db.InTx(ctx, p.db, "change user", func(ctx context.Context, tx db.Tx) (User, error) {
		user, err := lockMember(ctx, tx, accountID, id, actor)
		if err == nil && change.Role != nil {
			if err = checkRole(*change.Role); err == nil {
				user, err = p.setRole(ctx, tx, user, *change.Role, actor)
			}
		}
		if err == nil && change.Disabled != nil {
			if *change.Disabled && user.DisabledAt == nil {
				err = p.checkOwnerLeft(ctx, tx, user)
			}
			if err == nil {
				err = setUserDisabled(ctx, tx, user, *change.Disabled, actor)
			}
		}
		if err != nil {
			return User{}, err
		}
		return FindUser(ctx, tx, "u.id = ?", id)
	})
}

// SetRole changes the role of one of the account's users, returns the user and records the
// activity, unless nothing changes. If an owner becomes a member, the owner's invitations end. The
// error may be [value.ErrLastOwner] or [value.ErrRoleFromProvider].
func (p *People) SetRole(ctx context.Context, accountID, id uuid.UUID, role Role, actor record.Actor) (User, error) {
	if err := checkRole(role); err != nil {
		return User{}, err
	}
	return db.InTx(ctx, p.db, "change role", func(ctx context.Context, tx db.Tx) (User, error) {
		user, err := lockMember(ctx, tx, accountID, id, actor)
		if err == nil {
			err = p.checkRoleByHand(ctx, tx, user, actor)
		}
		if err != nil {
			return user, err
		}
		return p.setRole(ctx, tx, user, role, actor)
	})
}

func (p *People) setRole(ctx context.Context, tx db.Tx, user User, role Role, actor record.Actor) (User, error) {
	if user.Role == role {
		return user, nil
	}
	action := record.ActionUserMadeOwner
	if role == RoleMember {
		action = record.ActionUserMadeMember
		if err := p.checkOwnerLeft(ctx, tx, user); err != nil {
			return User{}, err
		}
		if err := tx.Delete(ctx, (*Invitation)(nil), "inviter_id = ?", user.ID); err != nil {
			return User{}, err
		}
	}
	user.Role = role
	if err := tx.Update(ctx, &user, "role"); err != nil {
		return User{}, err
	}
	return user, record.Add(ctx, tx, actor, user.activity(action))
}

// Remove removes one of the account's users, ends the user's sessions, sign-in links and
// invitations, and records the activity. The user's keys stay, and the email can be used again. The
// error may be [value.ErrLastOwner].
func (p *People) Remove(ctx context.Context, accountID, id uuid.UUID, actor record.Actor) error {
	return p.db.InTx(ctx, "remove user", func(ctx context.Context, tx db.Tx) error {
		user, err := lockMember(ctx, tx, accountID, id, actor)
		if err != nil {
			return err
		}
		return p.RemoveIn(ctx, tx, user, actor)
	})
}

// RemovedFrom returns the name of the account that a user was removed from, or "" if the user was
// not removed or is no longer known.
func (p *People) RemovedFrom(ctx context.Context, id uuid.UUID) (account string, err error) {
	err = p.db.NewSelect().Model((*User)(nil)).ColumnExpr("a.name").Join("JOIN accounts AS a ON a.id = u.account_id").
		Where("u.id = ? AND u.removed_at IS NOT NULL", id).Scan(ctx, &account)
	return account, value.NotFound("find removed user", err, nil)
}

// RemoveIn removes a user in the transaction, which holds the locks of the account and the user.
func (p *People) RemoveIn(ctx context.Context, tx db.Tx, user User, actor record.Actor) error {
	if err := p.checkOwnerLeft(ctx, tx, user); err != nil {
		return err
	}
	now, noEmail := tx.Now(), value.Random(sha256.Size)
	_, err := tx.NewUpdate().Model((*User)(nil)).Set("removed_at = ?, disabled_at = COALESCE(disabled_at, ?)", now, now).
		Set("email_hash = ?, password_hash = ?", noEmail, p.passwords.hasher.Absent()).Where("id = ?", user.ID).Exec(ctx)
	if err != nil {
		return err
	}
	if err := endAllSessions(ctx, tx, "id = ?", user.ID); err != nil {
		return err
	}
	// The person may become another user, with the same identity.
	if err := tx.DeleteOf(ctx, user.ID, append(factorTables, "identities")...); err != nil {
		return err
	}
	return record.Add(ctx, tx, actor, user.activity(record.ActionUserRemoved))
}

// lockMember returns one of the account's users whom the actor may manage. Two owners who remove
// each other take turns.
func lockMember(ctx context.Context, tx db.Tx, accountID, id uuid.UUID, actor record.Actor) (User, error) {
	if err := lockOwned(ctx, tx, accountID, actor); err != nil {
		return User{}, err
	}
	return FindUser(ctx, tx, "u.account_id = ? AND u.id = ? AND u.removed_at IS NULL", accountID, id)
}

// LastOwner returns the owner whom checkOwnerLeft keeps, or [uuid.Nil] if there is none.
func (p *People) LastOwner(ctx context.Context, accountID uuid.UUID) (uuid.UUID, error) {
	var owners []struct {
		ID  uuid.UUID
		Can bool
	}
	err := p.db.NewSelect().Model((*User)(nil)).Column("u.id").ColumnExpr("? AS can", p.passwords.canSignIn()).
		Where("u.account_id = ? AND u.role = ? AND u.disabled_at IS NULL", accountID, RoleOwner).
		OrderExpr("can DESC, u.id").Limit(2).Scan(ctx, &owners)
	if err != nil || len(owners) == 0 || len(owners) == 2 && owners[0].Can == owners[1].Can {
		return uuid.Nil, value.Failed("find the last owner", err)
	}
	return owners[0].ID, nil
}

// checkOwnerLeft returns [value.ErrLastOwner] if the account has no owner besides user, or if user
// can sign in without an operator and none of the others can.
func (p *People) checkOwnerLeft(ctx context.Context, tx db.Tx, user User) error {
	if user.Role != RoleOwner {
		return nil
	}
	others := tx.NewSelect().Model((*User)(nil)).
		Where("u.account_id = ? AND u.id <> ? AND u.role = ? AND u.disabled_at IS NULL", user.AccountID, user.ID, RoleOwner)
	err := p.passwords.checkSignIn(ctx, tx, user.ID)
	if err == nil {
		others = others.Where("?", p.passwords.canSignIn())
	} else if !errors.Is(err, value.ErrOnlySignIn) {
		return err
	}
	left, err := others.Exists(ctx)
	return value.RefusedIf(!left, err, value.ErrLastOwner)
}

// checkRoleByHand returns [value.ErrRoleFromProvider] if the identity provider decides about the
// user's role, and the actor is another user.
func (p *People) checkRoleByHand(ctx context.Context, tx db.Tx, user User, actor record.Actor) error {
	if actor.Kind != record.ActorUser {
		return nil
	}
	err := checkOwnSignIn(ctx, p.db, tx, user.ID)
	if errors.Is(err, value.ErrOnlyByProvider) {
		return value.ErrRoleFromProvider
	}
	return err
}
