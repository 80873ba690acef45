package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"portal/handlers/api"
	"portal/models"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
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
		account, err := store.Accounts.Create(ctx, people.NewAccount{Name: c.Name, Email: c.Email, Password: password})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(t.out, account.ID)
		return errors.Join(err, warnOfPassword(store, t))
	})
}

type accountListCommand struct{ listFlags }

// accountRow is an account in a list.
type accountRow struct {
	api.Account

	Keys       int        `json:"keys"` // active ones
	Users      int        `json:"users"`
	LastUsedAt *time.Time `json:"lastUsedAt"` // the last request with one of its keys
}

func (c accountListCommand) Run(ctx context.Context, t terminal) error {
	return withStore(ctx, func(store *models.Store) error {
		return listing[people.AccountSummary, accountRow]{
			fetch: func(page value.Page) (value.List[people.AccountSummary], error) {
				return store.Accounts.Summaries(ctx, page)
			},
			row: func(account people.AccountSummary) accountRow {
				return accountRow{Account: api.NewAccount(account.Account), Keys: account.Keys, Users: account.Users, LastUsedAt: account.LastUsedAt}
			},
			header: "ID\tNAME\tSTATE\tCREATED\tKEYS\tUSERS\tLAST USED",
			line: func(row accountRow) string {
				return strings.Join([]string{
					row.ID.String(), row.Name, state(row.Disabled), moment(&row.CreatedAt),
					strconv.Itoa(row.Keys), strconv.Itoa(row.Users), moment(row.LastUsedAt),
				}, "\t")
			},
		}.write(t.out, c.listFlags)
	})
}

type accountRenameCommand struct {
	accountFlag

	Name string `required:"" placeholder:"NAME" help:"The account's new name."`
}

func (c accountRenameCommand) Run(ctx context.Context, t terminal) error {
	return c.withAccount(ctx, func(store *models.Store, account people.Account) error {
		if err := store.Accounts.Rename(ctx, account.ID, c.Name, record.Operator()); err != nil {
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
	return c.withAccount(ctx, func(store *models.Store, account people.Account) error {
		if err := store.Accounts.SetDisabled(ctx, account.ID, c.disable, record.Operator()); err != nil {
			return err
		}
		outcome := "enabled"
		if c.disable {
			outcome = "disabled: its keys and tokens are refused, and its users are signed out"
		}
		return t.say("account %q is %s", account.Name, outcome)
	})
}

type accountSetLimitsCommand struct {
	accountFlag

	Calls           *int64 `placeholder:"N" help:"Calls at a time, 1 to 10,000; 0: no limit."`
	MinutesPerCall  *int64 `placeholder:"N" help:"Minutes a call, 1 to 1,440; 0: no limit."`
	MinutesPerMonth *int64 `placeholder:"N" help:"Minutes a calendar month (UTC), 1 to 10,000,000; 0: no limit."`
}

// Run changes the limits that have a flag.
func (c accountSetLimitsCommand) Run(ctx context.Context, t terminal) error {
	return c.withAccount(ctx, func(store *models.Store, account people.Account) error {
		limits := account.Limits
		for _, limit := range []struct{ flag, field *int64 }{
			{c.Calls, &limits.Calls}, {c.MinutesPerCall, &limits.MinutesPerCall}, {c.MinutesPerMonth, &limits.MinutesPerMonth},
		} {
			if limit.flag != nil {
				*limit.field = *limit.flag
			}
		}
		account, err := store.Accounts.SetLimits(ctx, account.ID, limits, record.Operator())
		if err != nil {
			return err
		}
		return t.say("account %q has these limits: %s", account.Name, account.Limits)
	})
}

type accountEraseCommand struct {
	accountFlag

	Name string `required:"" placeholder:"NAME" help:"The account's name, as a safeguard."`
}

func (c accountEraseCommand) Run(ctx context.Context, t terminal) error {
	return withStore(ctx, func(store *models.Store) error {
		account, err := c.find(ctx, store)
		if id, ok := value.ParseID(c.Account); ok && errors.Is(err, value.ErrAccountNotFound) {
			return erasedBefore(ctx, t, store, "account", id, err)
		}
		if err != nil {
			return err
		}
		if c.Name != account.Name {
			return fmt.Errorf("--name: the name of the account is %q", account.Name)
		}
		err = store.Erasures.BeginAccount(ctx, account.ID)
		if errors.Is(err, value.ErrAccountEnabled) {
			return fmt.Errorf("%w; disable it first with: portal account disable --account %s", err, c.Account)
		}
		if err == nil {
			err = finishErasures(ctx, store)
		}
		if err != nil {
			return err
		}
		return t.say("account %q is erased; its id %s and the time are kept", account.Name, account.ID)
	})
}

// erasedBefore says when an account or a user was erased, after it has finished an erasure that was
// interrupted. If it was not erased, erasedBefore returns notErased.
func erasedBefore(ctx context.Context, t terminal, store *models.Store, kind string, id uuid.UUID, notErased error) error {
	at, err := store.Erasures.ErasedAt(ctx, id)
	if err == nil && at == nil {
		return notErased
	}
	if err == nil {
		err = finishErasures(ctx, store)
	}
	if err != nil {
		return err
	}
	return t.say("%s %s was erased at %s", kind, id, at.UTC().Format(time.RFC3339))
}

// finishErasures finishes the erasures that have begun.
func finishErasures(ctx context.Context, store *models.Store) error {
	err := store.Erasures.Finish(ctx)
	if err != nil {
		err = fmt.Errorf("the erasure has begun, and a running portal finishes it within an hour: %w", err)
	}
	return err
}

type accountFlag struct {
	Account string `required:"" placeholder:"EMAIL" help:"Email of a user of the account, or the account's id."`
}

// withAccount opens the store and calls work with it and the account.
func (f accountFlag) withAccount(ctx context.Context, work func(*models.Store, people.Account) error) error {
	return withStore(ctx, func(store *models.Store) error {
		account, err := f.find(ctx, store)
		if err != nil {
			return err
		}
		return work(store, account)
	})
}

func (f accountFlag) find(ctx context.Context, store *models.Store) (account people.Account, err error) {
	if id, ok := value.ParseID(f.Account); ok {
		account, err = store.Accounts.Find(ctx, id)
	} else {
		account, err = store.Accounts.FindByEmail(ctx, f.Account)
	}
	if errors.Is(err, value.ErrAccountNotFound) {
		err = fmt.Errorf("--account %s: %w; list the accounts with: portal account list", f.Account, err)
	}
	return account, err
}
