package models

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"net/mail"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// Account is a customer. It owns agents and API keys, and its users sign in to the portal.
type Account struct {
	bun.BaseModel `bun:"table:accounts"`

	ID         uuid.UUID `bun:",pk"`
	Name       string
	CreatedAt  time.Time
	DisabledAt *time.Time // while set, its keys are refused and its users cannot sign in
}

// User is a person who signs in to the portal of an account.
type User struct {
	bun.BaseModel `bun:"table:users"`

	ID           uuid.UUID `bun:",pk"`
	AccountID    uuid.UUID
	Email        string // trimmed, case preserved
	EmailHash    []byte // unique; see hashEmail
	PasswordHash string // argon2id, PHC string
	CreatedAt    time.Time
	DisabledAt   *time.Time

	Disabled bool `bun:",scanonly"` // the user or the account is disabled; set by a sign-in only
}

// NewAccount is the input of [Store.CreateAccount].
type NewAccount struct {
	Name     string // 1 to 100 characters
	Email    string // unique, compared without case
	Password string // 12 to 128 characters, not trimmed
}

// CreateAccount creates an account and its first user. The error may be an [*InvalidError] for the
// field "name", "email" or "password", [ErrEmailTaken] or [ErrUnavailable].
func (s *Store) CreateAccount(ctx context.Context, n NewAccount) (Account, error) {
	name, err := cleanName("name", "Name", n.Name)
	if err != nil {
		return Account{}, err
	}
	email, err := cleanEmail(n.Email)
	if err != nil {
		return Account{}, err
	}
	if err := checkPassword(n.Password, email, name); err != nil {
		return Account{}, err
	}
	hash, err := s.passwords.hash(ctx, hashQueuePlace{known: true}, n.Password)
	if err != nil {
		return Account{}, err
	}
	account := Account{ID: newID(), Name: name, CreatedAt: s.clock()}
	user := User{
		ID: newID(), AccountID: account.ID, Email: email, EmailHash: hashEmail(email),
		PasswordHash: hash, CreatedAt: account.CreatedAt,
	}
	err = s.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		if _, err := tx.NewInsert().Model(&account).Exec(ctx); err != nil {
			return err
		}
		result, err := tx.NewInsert().Model(&user).On("CONFLICT (email_hash) DO NOTHING").Exec(ctx)
		return unlessAffected(result, err, ErrEmailTaken)
	})
	if errors.Is(err, ErrEmailTaken) {
		return Account{}, ErrEmailTaken
	}
	if err != nil {
		return Account{}, failed("create account", err)
	}
	return account, nil
}

// AccountByEmail returns the account of the user with this email. It is for operators. The error
// may be [ErrAccountNotFound] or [ErrUnavailable].
func (s *Store) AccountByEmail(ctx context.Context, email string) (Account, error) {
	var account Account
	err := s.db.NewSelect().Model(&account).
		Where("id = (SELECT account_id FROM users WHERE email_hash = ?)", hashEmail(email)).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return Account{}, ErrAccountNotFound
	}
	if err != nil {
		return Account{}, failed("find account", err)
	}
	return account, nil
}

// Empty reports whether the store has no accounts. The error may be [ErrUnavailable].
func (s *Store) Empty(ctx context.Context) (bool, error) {
	exists, err := s.db.NewSelect().Model((*Account)(nil)).Exists(ctx)
	if err != nil {
		return false, failed("look for accounts", err)
	}
	return !exists, nil
}

func cleanEmail(email string) (string, error) {
	email = strings.TrimSpace(email)
	parsed, err := mail.ParseAddress(email)
	if err != nil || parsed.Address != email || len(email) > 254 { // RFC 5321 section 4.5.3.1.3
		return "", &InvalidError{"email", "Enter an email address, such as name@example.com."}
	}
	return email, nil
}

// hashEmail returns the SHA-256 of the trimmed email in lower case. Users are looked up by it, so
// that the input of a sign-in form, which may be a password, never reaches the database.
func hashEmail(email string) []byte {
	hash := sha256.Sum256([]byte(strings.ToLower(strings.TrimSpace(email))))
	return hash[:]
}

// unlessAffected returns otherwise if a successful statement changed no row.
func unlessAffected(result sql.Result, err, otherwise error) error {
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n > 0 {
		return err
	}
	return otherwise
}
