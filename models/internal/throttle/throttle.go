// Package throttle limits wrong passwords, codes and tokens. It counts them for subjects, such as
// an email or a network address, and stores only hashes of these.
package throttle

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/value"
)

// Within Window, a subject may have as many wrong passwords as the limit. In the devices and
// sessions of its user, an email may have twice as many. Further ones are refused unchecked.
const (
	Window       = time.Minute
	defaultLimit = 10
)

// Limiter limits the wrong passwords, codes and tokens of each subject.
type Limiter struct {
	db    *db.DB
	limit int // wrong ones of a subject within Window
}

// New returns a limiter. The limit 0 means 10.
func New(db *db.DB, limit int) *Limiter { return &Limiter{db, cmp.Or(limit, defaultLimit)} }

// Failure is one wrong password, or a right one if the subject is that of rightPasswords. Refused
// requests are not stored, so that they do not make the wait longer.
type Failure struct {
	bun.BaseModel `bun:"table:sign_in_failures,alias:sign_in_failure"`

	ID      uuid.UUID `bun:",pk"`
	Subject []byte
	At      time.Time
}

// Subject is a rate-limited email, address, device or session.
type Subject struct {
	Hash   []byte // stored; users sometimes type a password into the email field
	factor int    // multiplies the limit
}

// SubjectOf returns the subject of this kind and value, which it hashes.
func SubjectOf(kind, value string) Subject {
	hash := sha256.Sum256([]byte(kind + "\x00" + value))
	return Subject{hash[:], 1}
}

// EmailSubject is the subject that the wrong passwords for an email count for, of all clients.
func EmailSubject(email string) Subject { return SubjectOf("email", string(value.HashEmail(email))) }

// Times returns the subject with another factor.
func (s Subject) Times(factor int) Subject { return Subject{s.Hash, factor} }

// Check returns a [*value.SignInLimitError] if one of the subjects has reached its limit.
func (l *Limiter) Check(ctx context.Context, db bun.IDB, subjects []Subject) error {
	ctx, cancel := context.WithTimeout(ctx, l.db.Timeout)
	defer cancel()
	now := l.db.Now()
	for _, subject := range subjects {
		limit := subject.factor * l.limit
		var recent []time.Time
		err := db.NewSelect().Model((*Failure)(nil)).Column("at").
			Where("subject = ? AND at > ?", subject.Hash, now.Add(-Window)).
			OrderExpr("at DESC").Limit(int64(limit)).Scan(ctx, &recent)
		if err != nil {
			return value.Failed("count wrong passwords", err)
		}
		if len(recent) == limit {
			// The next guess is possible when the oldest of these leaves the window.
			return &value.SignInLimitError{RetryAfter: recent[limit-1].Add(Window).Sub(now)}
		}
	}
	return nil
}

// Lock lets only one transaction at a time count the wrong passwords of these subjects. All
// transactions lock the email, the address, the device and the session in this order, so they
// cannot deadlock.
func Lock(ctx context.Context, tx db.Tx, subjects []Subject) error {
	for _, subject := range subjects {
		if err := tx.LockHash(ctx, subject.Hash); err != nil {
			return err
		}
	}
	return nil
}

// rightPasswords is the subject that a user's right passwords count for.
func rightPasswords(email string) []Subject {
	return []Subject{SubjectOf("right", string(value.HashEmail(email))).Times(3)}
}

// CheckRight returns a [*value.SignInLimitError] after too many right passwords of a user, because
// each costs as much as a wrong one. Their limit is three times that of wrong ones.
func (l *Limiter) CheckRight(ctx context.Context, email string) error {
	err := l.Check(ctx, l.db, rightPasswords(email))
	if limit, ok := errors.AsType[*value.SignInLimitError](err); ok {
		limit.Right = true
	}
	return err
}

// CountRight counts a right password.
func (l *Limiter) CountRight(ctx context.Context, email string) error {
	ctx, cancel := context.WithTimeout(ctx, l.db.Timeout)
	defer cancel()
	return value.Failed("count a right password", l.Count(ctx, l.db, rightPasswords(email)))
}

// CountWrong counts a wrong password for the subjects counted. If other instances have brought one
// of the subjects limited to the limit in the meantime, it returns a [*value.SignInLimitError].
func (l *Limiter) CountWrong(ctx context.Context, limited, counted []Subject) error {
	return l.db.InTx(ctx, "count a wrong password", func(ctx context.Context, tx db.Tx) error {
		if err := Lock(ctx, tx, counted); err != nil {
			return err
		}
		if err := l.Check(ctx, tx, limited); err != nil {
			return err
		}
		return l.Count(ctx, tx, counted)
	})
}

// Count counts a wrong password, code or token for each subject.
func (l *Limiter) Count(ctx context.Context, db bun.IDB, subjects []Subject) error {
	rows := make([]Failure, len(subjects))
	for i, subject := range subjects {
		rows[i] = Failure{ID: value.NewID(), Subject: subject.Hash, At: l.db.Now()}
	}
	// A statement whose response was lost is repeated.
	_, err := db.NewInsert().Model(&rows).On("CONFLICT (id) DO NOTHING").Exec(ctx)
	return err
}

// LockCodes lets no other transaction check a code of the user, on any instance, and returns an
// error after too many wrong ones.
func (l *Limiter) LockCodes(ctx context.Context, tx db.Tx, userID uuid.UUID) error {
	subjects := codesOf(userID)
	if err := Lock(ctx, tx, subjects); err != nil {
		return err
	}
	err := l.Check(ctx, tx, subjects)
	if limit, ok := errors.AsType[*value.SignInLimitError](err); ok {
		limit.Codes = true
	}
	return err
}

// WrongCode counts a wrong code like a wrong password and returns [value.ErrWrongCode], with which
// the transaction is committed.
func (l *Limiter) WrongCode(ctx context.Context, tx db.Tx, userID uuid.UUID) error {
	if err := l.Count(ctx, tx, codesOf(userID)); err != nil {
		return err
	}
	return db.Committed(value.ErrWrongCode)
}

func codesOf(userID uuid.UUID) []Subject { return []Subject{SubjectOf("code", userID.String())} }
