package models

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/usage"
)

// An email, network address, device or session may have Options.SignInLimit wrong passwords within
// signInWindow, and an email twice as many in the devices of its user. Further ones are refused
// unchecked.
const (
	signInWindow       = time.Minute
	defaultSignInLimit = 10
)

// guesses limits and records wrong passwords, codes and invitations.
type guesses struct {
	db         *DB
	limit      int // wrong passwords of a subject within signInWindow
	refused    refusals
	background *sync.WaitGroup
}

// signInFailure is one wrong password, or a right one if the subject is that of rightPasswords.
// Refused requests are not stored, so that they do not make the wait longer.
type signInFailure struct {
	bun.BaseModel `bun:"table:sign_in_failures"`

	ID      uuid.UUID `bun:",pk"`
	Subject []byte
	At      time.Time
}

// subject is a rate-limited email, address, device or session.
type subject struct {
	hash   []byte // stored; users sometimes type a password into the email field
	factor int    // multiplies the limit
}

func signInSubject(kind, value string) subject {
	hash := sha256.Sum256([]byte(kind + "\x00" + value))
	return subject{hash[:], 1}
}

// times returns the subject with another factor.
func (s subject) times(factor int) subject { return subject{s.hash, factor} }

// check returns a [*SignInLimitError] if one of the subjects has reached its limit.
func (g *guesses) check(ctx context.Context, db bun.IDB, subjects []subject) error {
	ctx, cancel := context.WithTimeout(ctx, g.db.timeout)
	defer cancel()
	now := g.db.Now()
	for _, subject := range subjects {
		limit := subject.factor * g.limit
		var recent []time.Time
		err := db.NewSelect().Model((*signInFailure)(nil)).Column("at").
			Where("subject = ? AND at > ?", subject.hash, now.Add(-signInWindow)).
			OrderExpr("at DESC").Limit(int64(limit)).Scan(ctx, &recent)
		if err != nil {
			return failed("count wrong passwords", err)
		}
		if len(recent) == limit {
			// The next guess is possible when the oldest of these leaves the window.
			return &SignInLimitError{RetryAfter: recent[limit-1].Add(signInWindow).Sub(now)}
		}
	}
	return nil
}

// rightPasswords is the subject that a user's right passwords count for.
func rightPasswords(email string) []subject {
	return []subject{signInSubject("right", string(hashEmail(email))).times(3)}
}

// checkRight returns a [*SignInLimitError] after too many right passwords of a user, because each
// costs as much as a wrong one. Their limit is three times that of wrong ones.
func (g *guesses) checkRight(ctx context.Context, email string) error {
	err := g.check(ctx, g.db, rightPasswords(email))
	if limit, ok := errors.AsType[*SignInLimitError](err); ok {
		limit.Right = true
	}
	return err
}

// countRight counts a right password.
func (g *guesses) countRight(ctx context.Context, email string) error {
	ctx, cancel := context.WithTimeout(ctx, g.db.timeout)
	defer cancel()
	return failed("count a right password", g.insert(ctx, g.db, rightPasswords(email)))
}

// countWrong counts a wrong password for the subjects counted. If other instances have brought one
// of the subjects limited to the limit in the meantime, it returns a [*SignInLimitError].
func (g *guesses) countWrong(ctx context.Context, limited, counted []subject) error {
	return g.db.InTx(ctx, "count a wrong password", func(ctx context.Context, tx Tx) error {
		if err := tx.lockSubjects(ctx, counted); err != nil {
			return err
		}
		if err := g.check(ctx, tx, limited); err != nil {
			return err
		}
		return g.insert(ctx, tx, counted)
	})
}

func (g *guesses) insert(ctx context.Context, db bun.IDB, subjects []subject) error {
	rows := make([]signInFailure, len(subjects))
	for i, subject := range subjects {
		rows[i] = signInFailure{ID: newID(), Subject: subject.hash, At: g.db.Now()}
	}
	_, err := db.NewInsert().Model(&rows).Exec(ctx)
	return err
}

// checkCode calls check in a transaction while no other code of the user is checked, on any
// instance. If the code is wrong, checkCode counts it like a wrong password, commits the changes of
// check and returns [ErrWrongCode]. After too many wrong codes it returns a [*SignInLimitError]
// without calling check.
func (g *guesses) checkCode(
	ctx context.Context, operation string, userID uuid.UUID, check func(ctx context.Context, tx Tx) (right bool, err error),
) error {
	subjects := []subject{signInSubject("code", userID.String())}
	right := false
	err := g.db.InTx(ctx, operation, func(ctx context.Context, tx Tx) error {
		if err := tx.lockSubjects(ctx, subjects); err != nil {
			return err
		}
		if err := g.check(ctx, tx, subjects); err != nil {
			return err
		}
		var err error
		if right, err = check(ctx, tx); err != nil || right {
			return err
		}
		return g.insert(ctx, tx, subjects)
	})
	if limit, ok := errors.AsType[*SignInLimitError](err); ok {
		limit.Codes = true
	}
	if err == nil && !right {
		return ErrWrongCode
	}
	return err
}

// record records a wrong password or code in the account's activity log, or counts it if the same
// period has one. Because the response would otherwise take longer for a known email, record works
// in the background.
func (g *guesses) record(user User, actor Actor, action Action) {
	g.background.Go(func() {
		err := g.db.InTx(context.Background(), "record a wrong password or code", func(ctx context.Context, tx Tx) error {
			return recordRefusal(ctx, tx, user, actor, action)
		})
		if err != nil {
			g.db.logger.Error("background write failed", slog.Any("error", err))
		}
	})
}

func recordRefusal(ctx context.Context, tx Tx, user User, actor Actor, action Action) error {
	activity := Activity{ID: newID(), AccountID: user.AccountID, Action: action, SubjectID: &user.ID, Label: user.Email}
	first, err := tx.countRepeat(ctx, activityRepeat{
		UserID: user.ID, AccountID: user.AccountID, Action: action, ActivityID: activity.ID, Address: actor.Address,
	})
	if err != nil || !first {
		return err
	}
	return tx.RecordActivity(ctx, actor, activity)
}

// refusals are counters of [Stats].
type refusals struct{ wrong, limited, disabled atomic.Uint64 }

// count counts the outcome of a sign-in.
func (c *refusals) count(err error) {
	_, limited := errors.AsType[*SignInLimitError](err)
	switch {
	case limited:
		c.limited.Add(1)
	case errors.Is(err, ErrWrongCredentials), errors.Is(err, ErrWrongCode):
		c.wrong.Add(1)
	case errors.Is(err, ErrSignInDisabled):
		c.disabled.Add(1)
	}
}

// network returns the [usage.Network] of an address. Other text is returned unchanged.
func network(address string) string { return prefix(address, 128) }

// site returns the largest network that one attacker usually controls: the IPv4 address, or the /48
// network of an IPv6 address. Other text is returned unchanged.
func site(address string) string { return prefix(address, 48) }

// prefix returns the [usage.Network] of an address, or the network around it with a shorter length.
func prefix(address string, bits int) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	client := usage.Network(ip)
	return netip.PrefixFrom(client.Addr(), min(client.Bits(), bits)).Masked().String()
}
