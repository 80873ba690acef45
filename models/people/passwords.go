package people

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/schema"

	"portal/models/internal/db"
	"portal/models/internal/throttle"
	"portal/models/password"
	"portal/models/record"
	"portal/models/value"
)

// hashQueueTimeout limits the wait for password hashing, which does not count against the time
// limit of the database.
const hashQueueTimeout = 8 * time.Second

// passwords hashes and checks the passwords of users.
type passwords struct {
	db      *db.DB
	hasher  *password.Hasher
	guesses *guesses
	off     bool // nobody signs in with a password
}

// guess says how a password is checked that may be wrong.
type guess struct {
	limited []throttle.Subject // the subjects whose wrong passwords limit it
	counted []throttle.Subject // the subjects that a wrong password counts for
	place   password.Place
	actor   record.Actor  // of the activity that records a wrong password
	action  record.Action // of that activity
}

// strangerPlace returns the place of a client in the queue for password hashing.
func strangerPlace(client Client) password.Place {
	return password.Place{Client: value.Site(client.Address)}
}

// knownPlace is strangerPlace for a user with a known device or a session.
func knownPlace(email string) password.Place {
	return password.Place{Client: string(value.HashEmail(email)), Known: true}
}

// verifyCurrent returns the user of a session if the password is right. Otherwise the error is
// [value.ErrWrongCredentials], or a [*value.SignInLimitError] after too many wrong passwords in
// this session or, as with a known browser, too many of the user. Those of strangers are fewer, so
// they do not stop a signed-in user.
func (p *passwords) verifyCurrent(ctx context.Context, session Session, password string, actor record.Actor) (User, error) {
	email, inSession := throttle.EmailSubject(session.Email), throttle.SubjectOf("session", session.ID.String())
	user, err := p.verify(ctx, session.Email, password, guess{
		limited: []throttle.Subject{email.Times(2), inSession}, counted: []throttle.Subject{email, inSession}, place: knownPlace(session.Email),
		actor: actor, action: record.ActionPasswordRefused,
	})
	if err == nil && user.ID != session.UserID { // another user got the email meanwhile
		return User{}, value.ErrWrongCredentials
	}
	return user, err
}

// verify returns the user with this email and password, or the errors of [SignIn.VerifyPassword].
func (p *passwords) verify(ctx context.Context, email, password string, guess guess) (User, error) {
	user, err := p.verifyInTurn(ctx, email, password, guess)
	p.guesses.refused.count(err)
	return user, err
}

func (p *passwords) verifyInTurn(ctx context.Context, email, password string, guess guess) (User, error) {
	// The limits are checked before the queue, so that neither a flood of guesses nor of right
	// passwords fills it.
	if err := p.guesses.CheckRight(ctx, email); err != nil {
		return User{}, err
	}
	if err := p.guesses.Check(ctx, p.db, guess.limited); err != nil {
		return User{}, err
	}
	turn, err := p.wait(ctx, guess.place)
	if err != nil {
		return User{}, err
	}
	defer turn.Done()
	// The limit is checked again after the queue, because earlier guesses have been counted
	// since.
	if err := p.guesses.Check(ctx, p.db, guess.limited); err != nil {
		return User{}, err
	}
	user, err := p.find(ctx, turn, email, password)
	switch {
	case err == nil, errors.Is(err, value.ErrSignInDisabled):
		// Other instances may have reached the limit during the hashing. Then a right
		// password is refused like a wrong one. Otherwise, each instance would allow one
		// more guess.
		if err := p.guesses.Check(ctx, p.db, guess.limited); err != nil {
			return User{}, err
		}
		if err := p.guesses.CountRight(ctx, email); err != nil {
			return User{}, err
		}
	case errors.Is(err, value.ErrWrongCredentials):
		// The response must not say that a password is wrong unless the guess was counted.
		if err := p.guesses.CountWrong(ctx, guess.limited, guess.counted); err != nil {
			return User{}, err
		}
		if user.ID != uuid.Nil {
			p.guesses.record(user, guess.actor, guess.action)
		}
	}
	if err != nil {
		return User{}, err
	}
	return user, nil
}

// find returns the user with this email and password, or [value.ErrSignInDisabled]. With
// [value.ErrWrongCredentials] it also returns the user with this email, if there is one.
func (p *passwords) find(ctx context.Context, turn *password.Turn, email, password string) (User, error) {
	// The time for hashing must not count against the database's limit.
	ctxDB, cancel := context.WithTimeout(ctx, p.db.Timeout)
	defer cancel()
	user, err := FindUser(ctxDB, p.db, "u.email_hash = ?", value.StoredHash(email))
	known := err == nil
	if errors.Is(err, value.ErrUserNotFound) {
		user.PasswordHash, err = p.hasher.Absent(), nil
	}
	if err != nil {
		return User{}, value.Failed("find user", err)
	}
	right, outdated, err := turn.Matches(password, user.PasswordHash)
	if err != nil {
		return User{}, value.Failed("compare password", err)
	}
	if !known || !right {
		return user, value.ErrWrongCredentials
	}
	if user.Disabled {
		return User{}, value.ErrSignInDisabled
	}
	if outdated {
		return p.upgrade(ctx, turn, user, password)
	}
	return user, nil
}

// upgrade replaces the hash of a right password with one that has the current parameters. If the
// stored hash has changed in the meantime, upgrade checks the password again.
func (p *passwords) upgrade(ctx context.Context, turn *password.Turn, user User, password string) (User, error) {
	hash := turn.Hash(password)
	ctxDB, cancel := context.WithTimeout(ctx, p.db.Timeout)
	defer cancel()
	changed, err := value.Affected(p.db.NewUpdate().Model((*User)(nil)).Set("password_hash = ?", hash).
		Where("id = ? AND password_hash = ?", user.ID, user.PasswordHash).Exec(ctxDB))
	if err != nil {
		return User{}, value.Failed("upgrade a password's hash", err)
	}
	if changed == 0 {
		return p.find(ctx, turn, user.Email, password)
	}
	user.PasswordHash = hash
	return user, nil
}

func (p *passwords) has(user User) bool {
	return !p.off && !strings.HasSuffix(user.PasswordHash, password.AbsentEnd)
}

func (p *passwords) wait(ctx context.Context, place password.Place) (*password.Turn, error) {
	ctx, cancel := context.WithTimeout(ctx, hashQueueTimeout)
	defer cancel()
	turn, err := p.hasher.Wait(ctx, place)
	if errors.Is(err, password.ErrQueueFull) {
		err = fmt.Errorf("%w: %w: %w", value.ErrUnavailable, value.ErrBusy, err)
	}
	return turn, value.Failed("wait in the queue for password hashing", err)
}

func (p *passwords) hash(ctx context.Context, place password.Place, password string) (string, error) {
	turn, err := p.wait(ctx, place)
	if err != nil {
		return "", err
	}
	defer turn.Done()
	return turn.Hash(password), nil
}

// checkPassword returns an [*value.InvalidError] for the field "password" if a new password breaks
// a rule. A password must not be one of words, such as the user's email and the account's name.
func checkPassword(newPassword string, words ...string) error {
	if problem := password.Problem(newPassword, words...); problem != "" {
		return &value.InvalidError{Field: "password", Message: problem}
	}
	return nil
}

// canSignIn is a condition on the user u: the user can sign in without an operator, with a
// password, an identity or a passkey.
func (p *passwords) canSignIn() schema.QueryWithArgs {
	return bun.SafeQuery(`(u.disabled_at IS NULL AND (? AND u.password_hash NOT LIKE ?
		OR EXISTS (SELECT 1 FROM identities WHERE user_id = u.id) OR EXISTS (SELECT 1 FROM passkeys WHERE user_id = u.id)))`,
		!p.off, "%"+password.AbsentEnd)
}

// checkSignIn returns [value.ErrOnlySignIn] unless the user can sign in without an operator.
func (p *passwords) checkSignIn(ctx context.Context, db bun.IDB, userID uuid.UUID) error {
	can, err := db.NewSelect().Model((*User)(nil)).Where("u.id = ?", userID).Where("?", p.canSignIn()).Exists(ctx)
	return value.RefusedIf(!can, err, value.ErrOnlySignIn)
}
