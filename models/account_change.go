package models

import (
	"context"

	"github.com/google/uuid"
)

// Put creates the account with this id, or renames it. It then disables or enables it,
// unless disabled is nil. It records an activity for each change, and reports whether it has
// created the account, which then has no users. The error may be an [*InvalidError] for the field
// "name", or [ErrUnavailable].
func (a *Accounts) Put(
	ctx context.Context, id uuid.UUID, name string, disabled *bool, actor Actor,
) (account Account, created bool, err error) {
	if name, err = cleanName("name", "Name", name); err != nil {
		return Account{}, false, err
	}
	err = a.db.InTx(ctx, "put account", func(ctx context.Context, tx Tx) error {
		if created, err = insertAccount(ctx, tx, Account{ID: id, Name: name, CreatedAt: tx.Now()}, actor); err != nil {
			return err
		}
		if !created {
			if err := renameAccount(ctx, tx, id, name, actor); err != nil {
				return err
			}
		}
		if disabled != nil {
			if err := setAccountDisabled(ctx, tx, id, *disabled, actor); err != nil {
				return err
			}
		}
		account, err = findAccount(ctx, tx, id)
		return err
	})
	if err != nil {
		return Account{}, false, err
	}
	return account, created, nil
}

// SetDisabled disables or enables an account and records the activity, unless nothing
// changes. Disabling ends the sessions and sign-in links of the account's users. It is for
// operators. The error may be [ErrAccountNotFound] or [ErrUnavailable].
func (a *Accounts) SetDisabled(ctx context.Context, id uuid.UUID, disabled bool, actor Actor) error {
	err := a.db.InTx(ctx, "disable or enable account", func(ctx context.Context, tx Tx) error {
		if _, err := findAccount(ctx, tx, id); err != nil {
			return err
		}
		return setAccountDisabled(ctx, tx, id, disabled, actor)
	})
	return err
}

// insertAccount creates the account unless its id exists, and reports whether it did.
func insertAccount(ctx context.Context, tx Tx, account Account, actor Actor) (bool, error) {
	result, err := tx.NewInsert().Model(&account).On("CONFLICT (id) DO NOTHING").Exec(ctx)
	if err != nil {
		return false, err
	}
	inserted, err := result.RowsAffected()
	if err != nil || inserted == 0 {
		return false, err
	}
	return true, tx.Record(ctx, account.ID, actor, ActionAccountCreated, account.ID, account.Name)
}

func renameAccount(ctx context.Context, tx Tx, id uuid.UUID, name string, actor Actor) error {
	if err := tx.lockAccount(ctx, id); err != nil {
		return err
	}
	account, err := findAccount(ctx, tx, id)
	if err != nil || account.Name == name {
		return err
	}
	activity := Activity{AccountID: id, Action: ActionAccountRenamed, SubjectID: &id, Label: name, FormerLabel: account.Name}
	account.Name = name
	if err := tx.Update(ctx, &account, "name"); err != nil {
		return err
	}
	return tx.RecordActivity(ctx, actor, activity)
}

func setAccountDisabled(ctx context.Context, tx Tx, id uuid.UUID, disabled bool, actor Actor) error {
	changed, err := setDisabled(ctx, tx, (*Account)(nil), id, disabled)
	if err != nil || !changed {
		return err
	}
	account, err := findAccount(ctx, tx, id)
	if err != nil {
		return err
	}
	if disabled {
		if err := endAllSessions(ctx, tx, "account_id = ?", id); err != nil {
			return err
		}
		return tx.RecordEnd(ctx, id, actor, ActionAccountDisabled, id, account.Name)
	}
	if err := allowCalls(ctx, tx, id); err != nil {
		return err
	}
	return tx.Record(ctx, id, actor, ActionAccountEnabled, id, account.Name)
}
