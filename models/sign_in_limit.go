package models

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// An email, network address, device or session may have Options.SignInLimit wrong passwords within
// signInWindow. Further attempts are refused without checking the password.
const (
	signInWindow       = time.Minute
	defaultSignInLimit = 10
)

// signInFailure is one wrong password, or a right one if the subject is that of rightPasswords.
// Refused attempts are not stored, so that they do not make the wait longer.
type signInFailure struct {
	bun.BaseModel `bun:"table:sign_in_failures"`

	ID      uuid.UUID `bun:",pk"`
	Subject []byte
	At      time.Time
}

// guesses limits and records wrong passwords and codes.
type guesses struct {
	db         *DB
	limit      int // wrong passwords of a subject within signInWindow
	failures   signInFailureCounts
	background *sync.WaitGroup
}

// check returns a [*SignInLimitError] if one of the subjects has reached the limit.
func (g *guesses) check(ctx context.Context, db bun.IDB, subjects [][]byte) error {
	return g.checkLimit(ctx, db, g.limit, subjects)
}

func (g *guesses) checkLimit(ctx context.Context, db bun.IDB, limit int, subjects [][]byte) error {
	ctx, cancel := context.WithTimeout(ctx, g.db.timeout)
	defer cancel()
	now := g.db.Now()
	for _, subject := range subjects {
		var recent []time.Time
		err := db.NewSelect().Model((*signInFailure)(nil)).Column("at").
			Where("subject = ? AND at > ?", subject, now.Add(-signInWindow)).
			OrderExpr("at DESC").Limit(int64(limit)).Scan(ctx, &recent)
		if err != nil {
			return failed("count wrong passwords", err)
		}
		if len(recent) == limit {
			// The next attempt is possible when the oldest of these leaves the window.
			return &SignInLimitError{RetryAfter: recent[limit-1].Add(signInWindow).Sub(now)}
		}
	}
	return nil
}

// rightPasswords is the subject that a user's right passwords count for.
func rightPasswords(email string) [][]byte {
	return [][]byte{signInSubject("right", string(hashEmail(email)))}
}

// checkRight returns a [*SignInLimitError] after too many right passwords of a user,
// because each costs as much as a wrong one. Their limit is three times that of wrong ones.
func (g *guesses) checkRight(ctx context.Context, email string) error {
	err := g.checkLimit(ctx, g.db, 3*g.limit, rightPasswords(email))
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

// count counts a wrong password. It returns a [*SignInLimitError] if other instances
// have reached the limit in the meantime.
func (g *guesses) count(ctx context.Context, a attempt) error {
	ctx, cancel := context.WithTimeout(ctx, g.db.timeout)
	defer cancel()
	err := g.db.InTx(ctx, "count a wrong password", func(ctx context.Context, tx Tx) error {
		if err := tx.lockSubjects(ctx, a.counted); err != nil {
			return err
		}
		if err := g.check(ctx, tx, a.limited); err != nil {
			return err
		}
		return g.insert(ctx, tx, a.counted)
	})
	return err
}

func (g *guesses) insert(ctx context.Context, db bun.IDB, subjects [][]byte) error {
	failures := make([]signInFailure, len(subjects))
	for i, subject := range subjects {
		failures[i] = signInFailure{ID: newID(), Subject: subject, At: g.db.Now()}
	}
	_, err := db.NewInsert().Model(&failures).Exec(ctx)
	return err
}

// network returns the part of an address that identifies one client: the whole IPv4 address, or the
// /64 network of an IPv6 address, because a client can use any address in it.
func network(address string) string { return prefix(address, 64) }

// site returns the largest network that one attacker usually controls: the whole IPv4 address, or
// the /48 network of an IPv6 address.
func site(address string) string { return prefix(address, 48) }

// prefix returns the whole IPv4 address, or the network of an IPv6 address with this prefix length.
func prefix(address string, bits int) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	if ip = ip.Unmap().WithZone(""); ip.Is4() {
		bits = 32
	}
	return netip.PrefixFrom(ip, bits).Masked().String()
}

// signInSubject returns the stored hash of a rate-limited email, address, device or session. It is
// a hash, because users sometimes type a password into the email field.
func signInSubject(kind, value string) []byte {
	hash := sha256.Sum256([]byte(kind + "\x00" + value))
	return hash[:]
}
