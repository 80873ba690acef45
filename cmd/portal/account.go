package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"portal/handlers/api"
	"portal/models"
)

type accountCreateCommand struct {
	Name  string `required:"" placeholder:"NAME" help:"The account's name."`
	Email string `required:"" placeholder:"EMAIL" help:"The user's email, for signing in."`
}

func (c accountCreateCommand) Run(ctx context.Context, t terminal) error {
	password, err := readPassword(ctx, t)
	if err != nil {
		return err
	}
	return withStore(ctx, func(store *models.Store) error {
		account, err := store.Accounts.Create(ctx, models.NewAccount{Name: c.Name, Email: c.Email, Password: password})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(t.out, account.ID)
		return err
	})
}

type accountListCommand struct{ listFlags }

func (c accountListCommand) Run(ctx context.Context, t terminal) error {
	return withStore(ctx, func(store *models.Store) error {
		return listing[models.Account, api.Account]{
			fetch:  func(page models.Page) (models.List[models.Account], error) { return store.Accounts.List(ctx, page) },
			row:    api.NewAccount,
			header: "ID\tNAME\tSTATE\tCREATED",
			line: func(row api.Account) string {
				return strings.Join([]string{row.ID.String(), row.Name, state(row.Disabled), row.CreatedAt.Format(time.RFC3339)}, "\t")
			},
		}.write(t.out, c.listFlags)
	})
}

type accountRenameCommand struct {
	accountFlag

	Name string `required:"" placeholder:"NAME" help:"The account's new name."`
}

func (c accountRenameCommand) Run(ctx context.Context, t terminal) error {
	return c.withAccount(ctx, func(store *models.Store, account models.Account) error {
		if err := store.Accounts.Rename(ctx, account.ID, c.Name, models.Operator()); err != nil {
			return err
		}
		return t.say("account %q is renamed to %q", account.Name, strings.TrimSpace(c.Name))
	})
}

type accountSwitchCommand struct {
	accountFlag

	disable bool // or enable
}

func (c accountSwitchCommand) Run(ctx context.Context, t terminal) error {
	return c.withAccount(ctx, func(store *models.Store, account models.Account) error {
		if err := store.Accounts.SetDisabled(ctx, account.ID, c.disable, models.Operator()); err != nil {
			return err
		}
		outcome := "enabled"
		if c.disable {
			outcome = "disabled: its keys and tokens are refused, and its users are signed out"
		}
		return t.say("account %q is %s", account.Name, outcome)
	})
}

// accountFlag names an account.
type accountFlag struct {
	Account string `required:"" placeholder:"EMAIL" help:"Email of a user of the account, or the account's id."`
}

// withAccount opens the store and calls work with it and the account.
func (f accountFlag) withAccount(ctx context.Context, work func(*models.Store, models.Account) error) error {
	return withStore(ctx, func(store *models.Store) error {
		find := func() (models.Account, error) { return store.Accounts.FindByEmail(ctx, f.Account) }
		if id, ok := models.ParseID(f.Account); ok {
			find = func() (models.Account, error) { return store.Accounts.Find(ctx, id) }
		}
		account, err := find()
		if errors.Is(err, models.ErrAccountNotFound) {
			return fmt.Errorf("--account %s: %w; list the accounts with: portal account list", f.Account, err)
		}
		if err != nil {
			return err
		}
		return work(store, account)
	})
}

type accountResetPasswordCommand struct{ userFlag }

// Run writes nothing to standard output, because the command has no result.
func (c accountResetPasswordCommand) Run(ctx context.Context, t terminal) error {
	password, err := readPassword(ctx, t)
	if err != nil {
		return err
	}
	return withStore(ctx, func(store *models.Store) error {
		if err := store.Credentials.ResetPassword(ctx, c.Email, password); err != nil {
			return c.explain(err)
		}
		return t.say("the password of %s was reset, and all of the user's sessions ended", c.Email)
	})
}

// forOperator reduces an error about invalid input to its message for users, with the flag of the
// input.
func forOperator(err error) error {
	invalid, ok := errors.AsType[*models.InvalidError](err)
	switch {
	case !ok:
		return err
	case invalid.Field == "password": // from standard input
		return errors.New(invalid.Message)
	}
	return fmt.Errorf("--%s: %s", invalid.Field, invalid.Message)
}
