package models

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"log/slog"
	"net/netip"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"
)

const (
	// signInWindow and signInLimit: beyond so many wrong passwords in the
	// window, for one e-mail or from one address, none is looked at.
	signInWindow = time.Minute
	signInLimit  = 10

	// hashQueueTimeout bounds the wait for a turn to hash. The wait does not count against [Timeout],
	// which bounds each use of the database.
	hashQueueTimeout = 8 * time.Second
)

// errHashReplaced is that of an upgrade that came second.
var errHashReplaced = errors.New("the password's hash has been replaced")

// signInFailure is one wrong password. Refused attempts are not among them, so
// that the limit ends when the guessing does.
type signInFailure struct {
	bun.BaseModel `bun:"table:sign_in_failures"`

	ID      uuid.UUID `bun:",pk"`
	Subject []byte
	At      time.Time
}

// VerifyPassword returns the user who has this e-mail and password. Address is
// the client's network address.
//
// It returns [ErrWrongCredentials], which never says what was wrong and takes
// as long whatever it was; a [*SignInLimitError] when too many wrong passwords
// came before, for this e-mail or from this address, on any instance; or
// [ErrUnavailable]. It bounds its own time.
func (s *Store) VerifyPassword(ctx context.Context, email, password, address string) (User, error) {
	subjects := [][]byte{signInSubject("email", string(hashEmail(email))), signInSubject("address", network(address))}
	// Once before the queue, so that a flood is turned away at its door.
	if err := s.checkSignInLimit(ctx, s.db, subjects); err != nil {
		return User{}, err
	}
	var user User
	queued, cancel := context.WithTimeout(ctx, hashQueueTimeout)
	defer cancel()
	err := s.passwords.exclusively(queued, func() error {
		// And once more, now that whoever was ahead has been counted.
		if err := s.checkSignInLimit(ctx, s.db, subjects); err != nil {
			return err
		}
		var err error
		user, err = s.userWithPassword(ctx, email, password)
		// Other instances have gone on counting meanwhile. If they have reached
		// the limit, a right password is told no more than a wrong one, or each
		// instance would give a guess for free.
		switch {
		case err == nil:
			return s.checkSignInLimit(ctx, s.db, subjects)
		case errors.Is(err, ErrWrongCredentials):
			// A guess that could not be counted gets no answer.
			if err := s.recordSignInFailure(ctx, subjects); err != nil {
				return err
			}
		}
		return err
	})
	if err == nil {
		return user, nil
	}
	if errors.Is(err, ErrWrongCredentials) && user.ID != uuid.Nil {
		s.recordRefusal(user, address)
	}
	return User{}, err
}

// recordRefusal tells a user's account of a wrong password. It does so behind
// the answer, which would otherwise take longer for an e-mail that is known.
func (s *Store) recordRefusal(user User, address string) {
	s.stopped.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), Timeout)
		defer cancel()
		if err := s.record(ctx, s.db, user.AccountID, visitorActor(address), ActionSignInFailed, user.ID, user.Email); err != nil {
			s.logger.Error("record a wrong password", slog.Any("error", err))
		}
	})
}

// userWithPassword returns the user and nil, or [ErrWrongCredentials] with the
// user whose password it is not, if there is one. The caller has its turn.
func (s *Store) userWithPassword(ctx context.Context, email, password string) (User, error) {
	// The time that hashing takes is not the database's.
	answer, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	var user User
	err := s.db.NewSelect().Model(&user).Where("email_hash = ?", hashEmail(email)).
		Where("disabled_at IS NULL").
		Where("account_id IN (SELECT id FROM accounts WHERE disabled_at IS NULL)").Scan(answer)
	known := err == nil
	if errors.Is(err, sql.ErrNoRows) {
		user.PasswordHash, err = absentHash, nil
	}
	if err != nil {
		return User{}, failed("find user", err)
	}
	right, outdated, err := matches(password, user.PasswordHash)
	if err != nil {
		return User{}, failed("compare password", err)
	}
	if !known || !right {
		return user, ErrWrongCredentials
	}
	if outdated {
		return s.upgradePassword(ctx, user, password)
	}
	return user, nil
}

// upgradePassword hashes a password that is right with today's parameters. If
// another instance was faster, or the password has been changed meanwhile, it
// is looked at anew.
func (s *Store) upgradePassword(ctx context.Context, user User, password string) (User, error) {
	hash := hashNow(password)
	answer, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	result, err := s.db.NewUpdate().Model((*User)(nil)).Set("password_hash = ?", hash).
		Where("id = ? AND password_hash = ?", user.ID, user.PasswordHash).Exec(answer)
	err = unlessAffected(result, err, errHashReplaced)
	if errors.Is(err, errHashReplaced) {
		return s.userWithPassword(ctx, user.Email, password)
	}
	if err != nil {
		return User{}, failed("upgrade a password's hash", err)
	}
	user.PasswordHash = hash
	return user, nil
}

func (s *Store) checkSignInLimit(ctx context.Context, db bun.IDB, subjects [][]byte) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	now := s.clock()
	for _, subject := range subjects {
		var recent []time.Time
		err := db.NewSelect().Model((*signInFailure)(nil)).Column("at").
			Where("subject = ? AND at > ?", subject, now.Add(-signInWindow)).
			OrderExpr("at DESC").Limit(signInLimit).Scan(ctx, &recent)
		if err != nil {
			return failed("count wrong passwords", err)
		}
		if len(recent) == signInLimit {
			// When the oldest of them has left the window there is room again.
			return &SignInLimitError{recent[signInLimit-1].Add(signInWindow).Sub(now)}
		}
	}
	return nil
}

// recordSignInFailure counts a wrong password, or returns the limit if other
// instances have reached it since it was asked.
func (s *Store) recordSignInFailure(ctx context.Context, subjects [][]byte) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	err := s.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		if err := s.lockSignIns(ctx, tx, subjects); err != nil {
			return err
		}
		if err := s.checkSignInLimit(ctx, tx, subjects); err != nil {
			return err
		}
		failures := make([]signInFailure, len(subjects))
		for i, subject := range subjects {
			failures[i] = signInFailure{ID: newID(), Subject: subject, At: s.clock()}
		}
		_, err := tx.NewInsert().Model(&failures).Exec(ctx)
		return err
	})
	if err != nil {
		return failed("count a wrong password", err)
	}
	return nil
}

// lockSignIns makes the transaction the only one that counts these subjects
// until it ends. In SQLite every transaction of ours is. No two wait for each
// other: all take the e-mail's lock before the address's.
func (s *Store) lockSignIns(ctx context.Context, tx bun.Tx, subjects [][]byte) error {
	if s.db.Dialect().Name() != dialect.PG {
		return nil
	}
	for _, subject := range subjects {
		key := int64(binary.BigEndian.Uint64(subject)) //nolint:gosec // any 64 bits of the hash will do
		if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock(?)", key); err != nil {
			return err
		}
	}
	return nil
}

// network is where one visitor alone sends from: an IPv4 address, or the 64 bits
// of IPv6 that a network has, in which anybody there may choose any address.
func network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	bits := 64
	if ip = ip.Unmap().WithZone(""); ip.Is4() {
		bits = 32
	}
	return netip.PrefixFrom(ip, bits).Masked().String()
}

// signInSubject hides what was typed: people type passwords into the wrong
// field.
func signInSubject(kind, value string) []byte {
	hash := sha256.Sum256([]byte(kind + "\x00" + value))
	return hash[:]
}
