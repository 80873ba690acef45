package models

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"portal/models/password"
	"portal/models/secret"
)

// errHashReplaced means that another transaction has replaced the hash in the meantime.
var errHashReplaced = errors.New("the password's hash has been replaced")

// SignIn starts sessions for users who prove their identities.
type SignIn struct {
	db        *DB
	passwords *passwords
	guesses   *guesses
	sessions  *Sessions
	sealer    secret.Sealer
}

// passwords hashes and checks the passwords of users.
type passwords struct {
	db      *DB
	hasher  *password.Hasher
	guesses *guesses
	off     bool // nobody signs in with a password
}

// VerifyPassword returns the user with this email and password. The client is the sender of the
// request. If it is a device of the user, only its own wrong passwords limit it.
//
// It returns [ErrWrongCredentials] if the email or the password is wrong. Neither the error nor the
// time it takes shows which. It returns [ErrSignInDisabled] if both are right but the user or the
// account is disabled, and a [*SignInLimitError] after too many wrong passwords for this email or
// from this address, on any instance. The error may also be [ErrPasswordsOff] or
// [ErrUnavailable]. VerifyPassword sets its own deadlines.
func (s *SignIn) VerifyPassword(ctx context.Context, email, password string, client Client) (User, error) {
	if s.passwords.off {
		return User{}, ErrPasswordsOff
	}
	subjects := [][]byte{
		signInSubject("email", string(hashEmail(email))), signInSubject("address", network(client.Address)),
	}
	a := attempt{
		limited: subjects, counted: subjects, place: strangerPlace(client),
		actor: visitorActor(client.Address), action: ActionSignInFailed,
	}
	if client.Device.belongsTo(email) {
		a.limited = [][]byte{signInSubject("device", client.Device.ID.String())}
		a.counted = append(a.counted, a.limited...)
		a.place = knownPlace(email)
	}
	return s.passwords.verify(ctx, email, password, a)
}

// strangerPlace returns the place of a client in the queue for password hashing.
func strangerPlace(client Client) password.Place {
	return password.Place{Source: site(client.Address)}
}

// knownPlace is strangerPlace for a user with a known device or a session.
func knownPlace(email string) password.Place {
	return password.Place{Source: string(hashEmail(email)), Known: true}
}

// attempt describes an attempt to enter a password.
type attempt struct {
	limited [][]byte // the subjects whose wrong passwords limit it
	counted [][]byte // the subjects that a wrong password counts for
	place   password.Place
	actor   Actor  // of the activity that records a wrong password
	action  Action // of that activity
}

func (p *passwords) verify(ctx context.Context, email, password string, a attempt) (User, error) {
	user, err := p.checkAndCount(ctx, email, password, a)
	p.guesses.failures.count(err)
	return user, err
}

func (p *passwords) checkAndCount(ctx context.Context, email, password string, a attempt) (User, error) {
	// The limits are checked before the queue, so that neither a flood of guesses nor of right
	// passwords fills it.
	if err := p.guesses.checkRight(ctx, email); err != nil {
		return User{}, err
	}
	if err := p.guesses.check(ctx, p.db, a.limited); err != nil {
		return User{}, err
	}
	turn, err := p.waitToHash(ctx, a.place)
	if err != nil {
		return User{}, err
	}
	defer turn.Done()
	// The limit is checked again after the queue, because earlier attempts have been counted
	// since.
	if err := p.guesses.check(ctx, p.db, a.limited); err != nil {
		return User{}, err
	}
	user, err := p.userWithPassword(ctx, turn, email, password)
	switch {
	case err == nil, errors.Is(err, ErrSignInDisabled):
		// Other instances may have reached the limit during the hashing. Then a right
		// password is refused like a wrong one. Otherwise, each instance would allow one
		// more guess.
		if limited := p.guesses.check(ctx, p.db, a.limited); limited != nil {
			return User{}, limited
		}
		if err := p.guesses.countRight(ctx, email); err != nil {
			return User{}, err
		}
	case errors.Is(err, ErrWrongCredentials):
		// The response must not say that a password is wrong unless the attempt was
		// counted.
		if err := p.guesses.count(ctx, a); err != nil {
			return User{}, err
		}
		if user.ID != uuid.Nil {
			p.guesses.recordRefusal(user, a.actor, a.action)
		}
	}
	if err != nil {
		return User{}, err
	}
	return user, nil
}

// userWithPassword returns the user with this email and password, or [ErrSignInDisabled]. With
// [ErrWrongCredentials] it also returns the user with this email, if there is one.
func (p *passwords) userWithPassword(ctx context.Context, turn *password.Turn, email, password string) (User, error) {
	// The time for hashing must not count against the database's limit.
	answer, cancel := context.WithTimeout(ctx, p.db.timeout)
	defer cancel()
	user, err := findUser(answer, p.db, "u.email_hash = ?", hashEmail(email))
	known := err == nil
	if errors.Is(err, ErrUserNotFound) {
		user.PasswordHash, err = p.hasher.Absent(), nil
	}
	if err != nil {
		return User{}, failed("find user", err)
	}
	right, outdated, err := turn.Matches(password, user.PasswordHash)
	if err != nil {
		return User{}, failed("compare password", err)
	}
	if !known || !right {
		return user, ErrWrongCredentials
	}
	if user.Disabled {
		return User{}, ErrSignInDisabled
	}
	if outdated {
		return p.upgrade(ctx, turn, user, password)
	}
	return user, nil
}

// upgrade replaces the hash of a right password with one that has the current parameters.
// If the stored hash has changed in the meantime, it checks the password again.
func (p *passwords) upgrade(ctx context.Context, turn *password.Turn, user User, password string) (User, error) {
	hash := turn.Hash(password)
	answer, cancel := context.WithTimeout(ctx, p.db.timeout)
	defer cancel()
	result, err := p.db.NewUpdate().Model((*User)(nil)).Set("password_hash = ?", hash).
		Where("id = ? AND password_hash = ?", user.ID, user.PasswordHash).Exec(answer)
	err = unlessAffected(result, err, errHashReplaced)
	if errors.Is(err, errHashReplaced) {
		return p.userWithPassword(ctx, turn, user.Email, password)
	}
	if err != nil {
		return User{}, failed("upgrade a password's hash", err)
	}
	user.PasswordHash = hash
	return user, nil
}
