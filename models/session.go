package models

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"
)

// maxUserAgent is how much of a browser's name is kept, in bytes.
const maxUserAgent = 256

// Client is where a request to the portal comes from.
type Client struct {
	Address   string // network address
	UserAgent string // what the browser calls itself
}

// Session is a user's stay in the portal on one browser.
type Session struct {
	bun.BaseModel `bun:"table:sessions,alias:session"`

	ID            uuid.UUID `bun:",pk"`
	UserID        uuid.UUID
	ReferenceHash []byte // SHA-256 of the reference in the browser's cookie
	CreatedAt     time.Time
	LastSeenAt    time.Time // written behind, at most a minute late
	ExpiresAt     time.Time // the absolute end
	FirstAddress  string
	LastAddress   string
	UserAgent     string

	AccountID   uuid.UUID `bun:",scanonly"`
	AccountName string    `bun:",scanonly"`
	Email       string    `bun:",scanonly"`
}

// CreateSession begins a session for a user who has just proved who they are,
// as [Store.VerifyPassword] returned them, and records the activity. It returns
// the session's reference: 256 random bits, of which only the hash is stored.
//
// It returns [ErrWrongCredentials] if the password has been changed since it
// was verified: that ended all sessions, and a guesser's would begin after it.
// The error may also be [ErrUnavailable].
func (s *Store) CreateSession(ctx context.Context, user User, client Client) (string, error) {
	reference, now := newReference(), s.clock()
	session := Session{
		ID: newID(), UserID: user.ID, ReferenceHash: hashReference(reference),
		CreatedAt: now, LastSeenAt: now, ExpiresAt: now.Add(s.sessionMax),
		FirstAddress: client.Address, LastAddress: client.Address, UserAgent: cleanUserAgent(client.UserAgent),
	}
	err := s.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		if err := s.holdPassword(ctx, tx, user); err != nil {
			return err
		}
		if _, err := tx.NewInsert().Model(&session).Exec(ctx); err != nil {
			return err
		}
		return s.record(ctx, tx, user.AccountID, UserActor(user.ID, client.Address), ActionSignedIn, session.ID, "")
	})
	if err != nil {
		return "", failed("create session", err)
	}
	return reference, nil
}

// holdPassword returns [ErrWrongCredentials] unless the user's password is the
// one that was verified, which then stays as it is until the transaction ends.
// In SQLite every transaction of ours is alone.
func (s *Store) holdPassword(ctx context.Context, tx bun.Tx, user User) error {
	query := tx.NewSelect().Model((*User)(nil)).Column("id").
		Where("id = ? AND password_hash = ?", user.ID, user.PasswordHash)
	if s.db.Dialect().Name() == dialect.PG {
		query = query.For("SHARE")
	}
	err := query.Scan(ctx, new(uuid.UUID))
	if errors.Is(err, sql.ErrNoRows) {
		return ErrWrongCredentials
	}
	return err
}

// Session returns the session with this reference and notes that it was seen.
// It returns [ErrSessionNotFound] if it has ended, was idle for too long, or
// its user or account is disabled; or [ErrUnavailable].
func (s *Store) Session(ctx context.Context, reference string, client Client) (Session, error) {
	var session Session
	err := s.db.NewSelect().Model(&session).ColumnExpr("session.*").
		ColumnExpr("u.account_id, u.email, a.name AS account_name").
		Join("JOIN users AS u ON u.id = session.user_id AND u.disabled_at IS NULL").
		Join("JOIN accounts AS a ON a.id = u.account_id AND a.disabled_at IS NULL").
		Where("session.reference_hash = ?", hashReference(reference)).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return Session{}, ErrSessionNotFound
	}
	if err != nil {
		return Session{}, failed("find session", err)
	}
	now := s.clock()
	session.LastSeenAt = s.seen.latest(session.ID, session.LastSeenAt)
	if !now.Before(session.ExpiresAt) || now.Sub(session.LastSeenAt) >= s.sessionIdle {
		return Session{}, ErrSessionNotFound
	}
	// A write each minute is enough to tell who is idle, if the limit is not
	// shorter than that.
	if now.Sub(session.LastSeenAt) >= min(time.Minute, s.sessionIdle/4) || client.Address != session.LastAddress {
		s.seen.note(session.ID, now, client.Address)
	}
	return session, nil
}

// EndSession ends the session that a user signs out of, and records the
// activity. It returns [ErrSessionNotFound] if it has ended already, or
// [ErrUnavailable].
func (s *Store) EndSession(ctx context.Context, accountID, sessionID uuid.UUID, actor Actor) error {
	ended, err := s.endSessions(ctx, accountID, actor, ActionSignedOut, func(q *bun.DeleteQuery) *bun.DeleteQuery {
		return q.Where("id = ?", sessionID)
	})
	if err == nil && ended == 0 {
		err = ErrSessionNotFound
	}
	return err
}

func newReference() string {
	random := make([]byte, 32)
	_, _ = rand.Read(random) // never fails (crypto/rand)
	return base64.RawURLEncoding.EncodeToString(random)
}

func hashReference(reference string) []byte {
	hash := sha256.Sum256([]byte(reference))
	return hash[:]
}

// cleanUserAgent keeps what every database stores as text.
func cleanUserAgent(userAgent string) string {
	userAgent = strings.ReplaceAll(userAgent[:min(maxUserAgent, len(userAgent))], "\x00", "")
	if !utf8.ValidString(userAgent) {
		userAgent = strings.ToValidUTF8(userAgent, "")
	}
	return userAgent
}
