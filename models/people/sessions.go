package people

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"portal/models/internal/db"
	"portal/models/internal/throttle"
	"portal/models/password"
	"portal/models/record"
	"portal/models/value"
)

// Sessions are the sessions of users.
type Sessions struct {
	db        *db.DB
	idle, max time.Duration // the limits of a session
	lastSeen  *db.LastSeenBuffer
	passwords *passwords
}

// create starts a session for a user who has proved an identity, and records the activity. It
// returns the session token, which has 256 random bits and is stored as a hash only. A user has at
// most 100 sessions: above that, the least recently used one ends.
//
// It returns [value.ErrWrongCredentials] if the password has changed since it was verified, or if
// the user or the account has been disabled. These changes end all sessions, and no later session
// may start.
func (s *Sessions) create(ctx context.Context, tx db.Tx, user User, method signInMethod, client Client) (token string, err error) {
	token, now := value.NewToken(), tx.Now()
	session := Session{
		ID: value.NewID(), UserID: user.ID, TokenHash: value.HashToken(token),
		CreatedAt: now, LastSeenAt: now, ExpiresAt: now.Add(s.max), AuthenticatedAt: now,
		FirstAddress: client.Address, LastAddress: client.Address, UserAgent: value.CleanUserAgent(client.UserAgent),
	}
	if client.Provider != "" && client.AuthenticatedAt.Before(now) {
		// The provider may have recognized the browser and not asked the user.
		session.AuthenticatedAt = client.AuthenticatedAt
	}
	// The lock also lets only one sign-in of a user at a time count the sessions.
	if err := lockVerified(ctx, tx, user); err != nil {
		return "", err
	}
	if method.own() {
		if err := checkOwnSignIn(ctx, tx.DB, tx, user.ID); err != nil {
			return "", err
		}
	}
	if err := tx.Insert(ctx, &session); err != nil {
		return "", err
	}
	if _, err := tx.NewUpdate().Model((*User)(nil)).Set("last_sign_in_at = ?", now).Where("id = ?", user.ID).Exec(ctx); err != nil {
		return "", err
	}
	if err := endOldestSessions(ctx, tx, user.ID, session.ID); err != nil {
		return "", err
	}
	label := cmp.Or(client.Provider, signInLabels[method])
	activity := record.Activity{ID: record.NewActivityID(tx), AccountID: user.AccountID, Action: record.ActionSignedIn, SubjectID: &session.ID, Label: label}
	if err := record.Add(ctx, tx, record.UserActor(user.ID, client.Address), activity); err != nil {
		return "", err
	}
	if !tx.DB.Mails || method == byInvitation || client.Device.belongsTo(user) {
		return token, nil
	}
	_, err = record.QueueMails(ctx, tx, []string{user.Email}, record.Mail{
		Kind: activity.Action, AccountID: &user.AccountID, ActivityID: &activity.ID,
		DeviceHash: throttle.SubjectOf("client", value.Network(client.Address)+"\x00"+session.UserAgent).Hash,
	})
	return token, err
}

// Find returns the session with this token and updates when it was last seen. If the session has
// ended or expired or its user or account is disabled, the error is [value.ErrSessionNotFound].
func (s *Sessions) Find(ctx context.Context, token string, client Client) (Session, error) {
	session, err := s.Peek(ctx, token)
	if err != nil {
		return Session{}, err
	}
	// One write a minute is precise enough, unless the idle limit is shorter.
	now := s.db.Now()
	if now.Sub(session.LastSeenAt) >= min(time.Minute, s.idle/4) || client.Address != session.LastAddress {
		s.lastSeen.Set(db.SeenID{ID: session.ID}, db.LastSeen{Owner: session.UserID, At: now, Address: client.Address})
	}
	return session, nil
}

// Peek is [Sessions.Find] for requests that a page sends by itself, which do not update when the
// session was last seen.
func (s *Sessions) Peek(ctx context.Context, token string) (Session, error) {
	session, err := s.findByToken(ctx, token)
	if err == nil && s.isIdle(session) {
		// A flush may have moved the time from memory to the database between the two
		// reads.
		session, err = s.findByToken(ctx, token)
	}
	if err != nil {
		return Session{}, value.NotFound("find session", err, value.ErrSessionNotFound)
	}
	if !s.db.Now().Before(session.ExpiresAt) || s.isIdle(session) {
		return Session{}, value.ErrSessionNotFound
	}
	session.NoPassword = session.NoPassword || session.ByProvider || s.passwords.off
	return session, nil
}

// findByToken returns the session with this token, also if it has expired.
func (s *Sessions) findByToken(ctx context.Context, token string) (Session, error) {
	var session Session
	err := s.db.NewSelect().Model(&session).ColumnExpr("?TableColumns").
		ColumnExpr("u.account_id, u.email, u.role, a.name AS account_name, u.password_hash LIKE ? AS no_password", "%"+password.AbsentEnd).
		ColumnExpr("a.second_factor_required AND NOT "+hasFactor+" AND NOT ? AS factor_due", decidedByProvider(s.db)).
		ColumnExpr("? AS by_provider", decidedByProvider(s.db)).
		Join("JOIN users AS u ON u.id = session.user_id AND u.disabled_at IS NULL").
		Join("JOIN accounts AS a ON a.id = u.account_id AND a.disabled_at IS NULL").
		Where("session.token_hash = ?", value.HashToken(token)).Scan(ctx)
	session.LastSeenAt = s.lastSeen.Latest(db.SeenID{ID: session.ID}, session.LastSeenAt)
	return session, err
}

func (s *Sessions) isIdle(session Session) bool {
	return s.db.Now().Sub(session.LastSeenAt) >= s.idle
}

// List returns a user's sessions that have not ended, the most recently seen first.
func (s *Sessions) List(ctx context.Context, accountID, userID uuid.UUID) ([]Session, error) {
	now := s.db.Now()
	sessions := []Session{}
	err := s.db.NewSelect().Model(&sessions).
		Where("session.user_id = (SELECT id FROM users WHERE account_id = ? AND id = ?)", accountID, userID).
		Where("session.expires_at > ? AND session.last_seen_at > ?", now, now.Add(-s.idle)).
		OrderExpr("session.last_seen_at DESC, session.id DESC").Limit(maxSessions).Scan(ctx)
	if err != nil {
		return nil, value.Failed("list sessions", err)
	}
	for i := range sessions {
		sessions[i].LastSeenAt = s.lastSeen.Latest(db.SeenID{ID: sessions[i].ID}, sessions[i].LastSeenAt)
	}
	slices.SortStableFunc(sessions, func(a, b Session) int { return b.LastSeenAt.Compare(a.LastSeenAt) })
	return sessions, nil
}

// Reauthenticate checks the password of the user of a session, and makes the session's sign-in
// fresh again. It returns a new token for the session, so that a stolen copy of the old token does
// not become fresh.
//
// If the user has no password to use, the error is [value.ErrSignInTooOld]. Reauthenticate sets its
// own deadlines.
func (s *Sessions) Reauthenticate(ctx context.Context, session Session, password string, actor record.Actor) (token string, err error) {
	if session.NoPassword {
		return "", value.ErrSignInTooOld
	}
	user, err := s.passwords.verifyCurrent(ctx, session, password, actor)
	if err != nil {
		return "", err
	}
	return db.InTx(ctx, s.db, "reauthenticate", func(ctx context.Context, tx db.Tx) (string, error) {
		if err := lockPassword(ctx, tx, user); err != nil {
			return "", err
		}
		token := value.NewToken()
		result, err := tx.NewUpdate().Model((*Session)(nil)).Set("token_hash = ?, authenticated_at = ?", value.HashToken(token), tx.Now()).
			Where("id = ? AND user_id = ?", session.ID, user.ID).Exec(ctx)
		return token, value.UnlessAffected(result, err, value.ErrSessionNotFound)
	})
}

// maxSessions is the number of sessions that a user can have. Above that, a sign-in ends the least
// recently used one.
const maxSessions = 100

// End signs a user out: it deletes the session and records the activity.
func (s *Sessions) End(ctx context.Context, accountID, sessionID uuid.UUID, actor record.Actor) error {
	return s.db.InTx(ctx, "end session", func(ctx context.Context, tx db.Tx) error {
		return deleteSession(ctx, tx, accountID, actor, record.ActionSignedOut, "id = ?", sessionID)
	})
}

// Revoke ends one of a user's sessions from another session and records the activity.
func (s *Sessions) Revoke(ctx context.Context, accountID, userID, sessionID uuid.UUID, actor record.Actor) error {
	return s.db.InTx(ctx, "end session", func(ctx context.Context, tx db.Tx) error {
		return deleteSession(ctx, tx, accountID, actor, record.ActionSessionRevoked, "id = ? AND user_id = ?", sessionID, userID)
	})
}

// RevokeOthers ends all of a user's sessions except one and records their number as one activity.
func (s *Sessions) RevokeOthers(ctx context.Context, accountID, userID, keep uuid.UUID, actor record.Actor) error {
	return s.db.InTx(ctx, "end sessions", func(ctx context.Context, tx db.Tx) error {
		return endOtherSessions(ctx, tx, accountID, userID, keep, actor)
	})
}

// deleteSession deletes the account's session that matches where, and records the activity.
func deleteSession(ctx context.Context, tx db.Tx, accountID uuid.UUID, actor record.Actor, action record.Action, where string, args ...any) error {
	var session Session
	err := tx.NewDelete().Model(&session).Where(where, args...).
		Where("user_id IN (SELECT id FROM users WHERE account_id = ?)", accountID).
		Returning("id, user_agent").Scan(ctx)
	if err != nil {
		return value.NoRows(err, value.ErrSessionNotFound)
	}
	return record.Add(ctx, tx, actor, record.Activity{AccountID: accountID, Action: action, SubjectID: &session.ID, Label: session.UserAgent})
}

// endOtherSessions deletes all of a user's sessions except keep, and records their number as one
// activity.
func endOtherSessions(ctx context.Context, tx db.Tx, accountID, userID, keep uuid.UUID, actor record.Actor) error {
	ended, err := value.Affected(tx.NewDelete().Model((*Session)(nil)).Where("user_id = ? AND id <> ?", userID, keep).
		Where("user_id IN (SELECT id FROM users WHERE account_id = ?)", accountID).Exec(ctx))
	if err != nil || ended == 0 {
		return err
	}
	return record.Add(ctx, tx, actor, record.Activity{
		AccountID: accountID, Action: record.ActionSessionsRevoked, SubjectID: &userID, Count: ended,
	})
}

// endOldestSessions makes room for a new session: it deletes the user's least recently used
// sessions above the limit.
func endOldestSessions(ctx context.Context, tx db.Tx, userID, newest uuid.UUID) error {
	old := tx.NewSelect().Model((*Session)(nil)).Column("id").Where("user_id = ? AND id <> ?", userID, newest).
		OrderExpr("last_seen_at DESC, id DESC").Offset(maxSessions - 1).Limit(math.MaxInt32)
	return tx.Delete(ctx, (*Session)(nil), "id IN (?)", old)
}

// endAllSessions deletes the sessions, the pending sign-ins and the links of the users that match
// where, and the invitations from them.
func endAllSessions(ctx context.Context, tx db.Tx, where string, args ...any) error {
	users := tx.NewSelect().Model((*User)(nil)).Column("id").Where(where, args...)
	err := tx.DeleteOf(ctx, users, append(tokenTables, "sessions")...)
	if err != nil {
		return err
	}
	return tx.Delete(ctx, (*Invitation)(nil), "inviter_id IN (?)", users)
}

// Count returns the number of sessions that have not reached their absolute end.
func (s *Sessions) Count(ctx context.Context) (int, error) {
	count, err := s.db.NewSelect().Model((*Session)(nil)).Where("expires_at > ?", s.db.Now()).Count(ctx)
	return int(count), value.Failed("count sessions", err)
}

// Flush skips locked sessions: such a session has just ended, or another instance has just
// seen it too.
func (s *Sessions) Flush(ctx context.Context) error {
	return value.Failed("write when sessions were last seen", s.lastSeen.Flush(ctx, s.db.Now(), func(ctx context.Context, rows []db.LastSeenRow) error {
		unlocked := s.db.NewSelect().TableExpr("sessions").Column("id").Where("id IN (SELECT id FROM seen)")
		_, err := s.db.NewUpdate().With("seen", s.db.NewValues(&rows)).Model((*Session)(nil)).TableExpr("seen").
			Set("last_seen_at = seen.at, last_address = seen.address").
			Where("session.id = seen.id AND session.last_seen_at < seen.at").
			Where("session.id IN (?)", s.db.Locked(unlocked, "NO KEY UPDATE SKIP LOCKED")).Exec(ctx)
		return err
	}))
}
