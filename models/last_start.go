package models

import (
	"context"

	"github.com/uptrace/bun"

	"portal/models/value"
)

// lastStart is what commands need to know of the instance that started last.
type lastStart struct {
	bun.BaseModel `bun:"table:last_start"`

	OnlyRow      int `bun:",pk"`
	PasswordsOff bool
}

// RecordSettings stores the settings that commands need. An instance calls it at its start.
func (s *Store) RecordSettings(ctx context.Context) error {
	row := lastStart{OnlyRow: 1, PasswordsOff: s.PasswordsOff()}
	ctx, cancel := context.WithTimeout(ctx, s.db.Timeout)
	defer cancel()
	_, err := s.db.NewInsert().Model(&row).On("CONFLICT (only_row) DO UPDATE").Set("passwords_off = EXCLUDED.passwords_off").Exec(ctx)
	return value.Failed("record the settings", err)
}

// PasswordsOff reports whether sign-in with a password is turned off.
func (s *Store) PasswordsOff() bool { return s.people.PasswordsOff() }

// AdoptSettings sets the settings of a command to those of the instance that started last, if there
// was one. Nothing else may use the store before.
func (s *Store) AdoptSettings(ctx context.Context) error {
	var row lastStart
	err := value.NoRows(s.db.NewSelect().Model(&row).Scan(ctx), nil)
	s.people.SetPasswordsOff(row.PasswordsOff)
	return value.Failed("read the settings", err)
}
