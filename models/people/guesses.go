package people

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/record"
	"portal/models/value"
)

// An email, network address, device or session may have Options.SignInLimit wrong passwords within
// SignInWindow, and an email twice as many in the devices and sessions of its user. Further ones
// are refused unchecked.
const (
	SignInWindow       = time.Minute
	defaultSignInLimit = 10
)

// guesses limits and records wrong passwords, codes and invitations.
type guesses struct {
	db         *db.DB
	limit      int // wrong passwords of a subject within SignInWindow
	refused    refusals
	background *sync.WaitGroup
}

// SignInFailure is one wrong password, or a right one if the subject is that of rightPasswords.
// Refused requests are not stored, so that they do not make the wait longer.
type SignInFailure struct {
	bun.BaseModel `bun:"table:sign_in_failures"`

	ID      uuid.UUID `bun:",pk"`
	Subject []byte
	At      time.Time
}

// Subject is a rate-limited email, address, device or session.
type Subject struct {
	Hash   []byte // stored; users sometimes type a password into the email field
	factor int    // multiplies the limit
}

// SignInSubject returns the subject of this kind and value, which it hashes.
func SignInSubject(kind, value string) Subject {
	hash := sha256.Sum256([]byte(kind + "\x00" + value))
	return Subject{hash[:], 1}
}

// emailSubject is the subject that the wrong passwords for an email count for, of all clients.
func emailSubject(email string) Subject {
	return SignInSubject("email", string(value.HashEmail(email)))
}

// times returns the subject with another factor.
func (s Subject) times(factor int) Subject { return Subject{s.Hash, factor} }

// check returns a [*value.SignInLimitError] if one of the subjects has reached its limit.
func (g *guesses) check(ctx context.Context, db bun.IDB, subjects []Subject) error {
	ctx, cancel := context.WithTimeout(ctx, g.db.Timeout)
	defer cancel()
	now := g.db.Now()
	for _, subject := range subjects {
		limit := subject.factor * g.limit
		var recent []time.Time
		err := db.NewSelect().Model((*SignInFailure)(nil)).Column("at").
			Where("subject = ? AND at > ?", subject.Hash, now.Add(-SignInWindow)).
			OrderExpr("at DESC").Limit(int64(limit)).Scan(ctx, &recent)
		if err != nil {
			return value.Failed("count wrong passwords", err)
		}
		if len(recent) == limit {
			// The next guess is possible when the oldest of these leaves the window.
			return &value.SignInLimitError{RetryAfter: recent[limit-1].Add(SignInWindow).Sub(now)}
		}
	}
	return nil
}

// lockSubjects lets only one transaction at a time count the wrong passwords of these subjects. All
// transactions lock the email, the address, the device and the session in this order, so they
// cannot deadlock.
func lockSubjects(ctx context.Context, tx db.Tx, subjects []Subject) error {
	for _, subject := range subjects {
		if err := tx.LockHash(ctx, subject.Hash); err != nil {
			return err
		}
	}
	return nil
}

// rightPasswords is the subject that a user's right passwords count for.
func rightPasswords(email string) []Subject {
	return []Subject{SignInSubject("right", string(value.HashEmail(email))).times(3)}
}

// checkRight returns a [*value.SignInLimitError] after too many right passwords of a user, because
// each costs as much as a wrong one. Their limit is three times that of wrong ones.
func (g *guesses) checkRight(ctx context.Context, email string) error {
	err := g.check(ctx, g.db, rightPasswords(email))
	if limit, ok := errors.AsType[*value.SignInLimitError](err); ok {
		limit.Right = true
	}
	return err
}

// countRight counts a right password.
func (g *guesses) countRight(ctx context.Context, email string) error {
	ctx, cancel := context.WithTimeout(ctx, g.db.Timeout)
	defer cancel()
	return value.Failed("count a right password", g.insert(ctx, g.db, rightPasswords(email)))
}

// countWrong counts a wrong password for the subjects counted. If other instances have brought one
// of the subjects limited to the limit in the meantime, it returns a [*value.SignInLimitError].
func (g *guesses) countWrong(ctx context.Context, limited, counted []Subject) error {
	return g.db.InTx(ctx, "count a wrong password", func(ctx context.Context, tx db.Tx) error {
		if err := lockSubjects(ctx, tx, counted); err != nil {
			return err
		}
		if err := g.check(ctx, tx, limited); err != nil {
			return err
		}
		return g.insert(ctx, tx, counted)
	})
}

func (g *guesses) insert(ctx context.Context, db bun.IDB, subjects []Subject) error {
	rows := make([]SignInFailure, len(subjects))
	for i, subject := range subjects {
		rows[i] = SignInFailure{ID: value.NewID(), Subject: subject.Hash, At: g.db.Now()}
	}
	// A statement whose response was lost is repeated.
	_, err := db.NewInsert().Model(&rows).On("CONFLICT (id) DO NOTHING").Exec(ctx)
	return err
}

// lockCodes lets no other transaction check a code of the user, on any instance, and returns an
// error after too many wrong ones.
func (g *guesses) lockCodes(ctx context.Context, tx db.Tx, userID uuid.UUID) error {
	subjects := codesOf(userID)
	if err := lockSubjects(ctx, tx, subjects); err != nil {
		return err
	}
	err := g.check(ctx, tx, subjects)
	if limit, ok := errors.AsType[*value.SignInLimitError](err); ok {
		limit.Codes = true
	}
	return err
}

// wrongCode counts a wrong code like a wrong password and returns [value.ErrWrongCode], with which
// the transaction is committed.
func (g *guesses) wrongCode(ctx context.Context, tx db.Tx, userID uuid.UUID) error {
	if err := g.insert(ctx, tx, codesOf(userID)); err != nil {
		return err
	}
	return db.Committed(value.ErrWrongCode)
}

func codesOf(userID uuid.UUID) []Subject { return []Subject{SignInSubject("code", userID.String())} }

// record records a wrong password or code in the account's activity log. Because the response would
// otherwise take longer for a known email, record works in the background. It records nothing about
// a user who was removed meanwhile, whose data may have been erased.
func (g *guesses) record(user User, actor record.Actor, action record.Action) {
	g.background.Go(func() {
		err := g.db.InTx(context.Background(), "record a wrong password or code", func(ctx context.Context, tx db.Tx) error {
			if err := tx.LockAccountsTable(ctx, user.AccountID); err != nil {
				return err
			}
			if err := lockUser(ctx, tx, user.AccountID, user.ID); err != nil {
				return value.Except(err, value.ErrWrongCredentials)
			}
			return record.Add(ctx, tx, actor, user.activity(action))
		})
		if err != nil {
			g.db.Logger.Error("background write failed", slog.Any("error", err))
		}
	})
}

// refusals are counters of [Stats].
type refusals struct{ wrong, limited, disabled atomic.Uint64 }

// count counts the outcome of a sign-in.
func (c *refusals) count(err error) {
	_, limited := errors.AsType[*value.SignInLimitError](err)
	switch {
	case limited:
		c.limited.Add(1)
	case errors.Is(err, value.ErrWrongCredentials), errors.Is(err, value.ErrWrongCode):
		c.wrong.Add(1)
	case errors.Is(err, value.ErrSignInDisabled):
		c.disabled.Add(1)
	}
}
