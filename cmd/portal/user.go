package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"portal/handlers/api"
	"portal/models"
	"portal/models/erasure"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

type userListCommand struct {
	accountFlag
	listFlags
}

func (c userListCommand) Run(ctx context.Context, t terminal) error {
	return c.withAccount(ctx, func(store *models.Store, account people.Account) error {
		return listing[people.User, api.User]{
			fetch: func(page value.Page) (value.List[people.User], error) {
				return store.People.List(ctx, account.ID, page)
			},
			row:    api.NewUser,
			header: "ID\tEMAIL\tROLE\tSTATE\tLAST SIGN-IN\tTWO-STEP",
			line: func(row api.User) string {
				twoStep := "-"
				if row.TwoStep != nil {
					twoStep = *row.TwoStep
				}
				return strings.Join([]string{
					row.ID.String(), row.Email, string(row.Role), state(row.Disabled), moment(row.LastSignInAt), twoStep,
				}, "\t")
			},
		}.write(t.out, c.listFlags)
	})
}

type userAddCommand struct {
	accountFlag

	Email string      `required:"" placeholder:"EMAIL" help:"The new user's email, for signing in."`
	Role  people.Role `enum:"owner,member" default:"member" help:"owner or member. Default: ${default}."`
}

func (c userAddCommand) Run(ctx context.Context, t terminal) error {
	password, err := readPassword(ctx, t)
	if err != nil {
		return err
	}
	return c.withAccount(ctx, func(store *models.Store, account people.Account) error {
		user, err := store.People.Add(ctx, account.ID, people.NewUser{Email: c.Email, Password: password, Role: c.Role}, record.Operator())
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(t.out, user.ID)
		return errors.Join(err, warnOfPassword(store, t))
	})
}

type userSwitchCommand struct {
	userFlag

	disable bool // or enable
}

func (c userSwitchCommand) Run(ctx context.Context, t terminal) error {
	return withStore(ctx, func(store *models.Store) error {
		if err := store.People.SetDisabled(ctx, c.Email, c.disable); err != nil {
			return c.explain(err)
		}
		outcome := "enabled"
		if c.disable {
			outcome = "disabled, and all of the user's sessions ended"
		}
		return t.say("%s is %s", c.Email, outcome)
	})
}

type userFlag struct {
	Email string `required:"" placeholder:"EMAIL" help:"The user's email."`
}

type userChangeEmailCommand struct {
	userFlag

	NewEmail string `required:"" placeholder:"EMAIL" help:"The new email."`
}

func (c userChangeEmailCommand) Run(ctx context.Context, t terminal) error {
	return withStore(ctx, func(store *models.Store) error {
		if err := store.Credentials.ChangeEmail(ctx, c.Email, c.NewEmail); err != nil {
			if invalid, ok := errors.AsType[*value.InvalidError](err); ok {
				invalid.Field = "new-email"
			}
			return c.explain(err)
		}
		return t.say("the email of %s is now %s", c.Email, c.NewEmail)
	})
}

type userResetSecondFactorCommand struct{ userFlag }

func (c userResetSecondFactorCommand) Run(ctx context.Context, t terminal) error {
	return c.withUser(ctx, func(store *models.Store, user people.User) error {
		if err := store.Credentials.ResetSecondFactor(ctx, user.AccountID, user.ID); err != nil {
			return err
		}
		return t.say("the authenticator app, the recovery codes and the passkeys of %s are removed, and all of the user's sessions ended", c.Email)
	})
}

type userRemoveCommand struct{ userFlag }

func (c userRemoveCommand) Run(ctx context.Context, t terminal) error {
	return c.withUser(ctx, func(store *models.Store, user people.User) error {
		if err := store.People.Remove(ctx, user.AccountID, user.ID, record.Operator()); err != nil {
			return err
		}
		return t.say("%s is removed, and all of the user's sessions ended; the user's keys stay", user.Email)
	})
}

type userEraseCommand struct {
	Email string `required:"" placeholder:"EMAIL" help:"The user's email, or the user's id."`
}

func (c userEraseCommand) Run(ctx context.Context, t terminal) error {
	return withStore(ctx, func(store *models.Store) error {
		user, err := store.Erasures.FindUser(ctx, c.Email)
		if err == nil && user.Email == erasure.ErasedName {
			return erasedBefore(ctx, t, store, "user", user.ID, value.ErrUserNotFound)
		}
		if errors.Is(err, value.ErrUserNotFound) {
			return fmt.Errorf("--email %s: %w; list the users of an account with: portal user list --account EMAIL; "+
				"an erased user is found by the id only", c.Email, value.ErrUserNotFound)
		}
		if err == nil {
			err = store.Erasures.BeginUser(ctx, user.AccountID, user.ID, record.Operator())
		}
		if errors.Is(err, value.ErrLastOwner) {
			return fmt.Errorf("--email %s: %w; add another owner first, or erase the account with: portal account erase", c.Email, err)
		}
		if err == nil {
			err = finishErasures(ctx, store)
		}
		if err != nil {
			return err
		}
		return t.say("%s is erased; the user's keys stay", c.Email)
	})
}

type userSetRoleCommand struct {
	userFlag

	Role people.Role `required:"" enum:"owner,member" placeholder:"ROLE" help:"The new role: owner or member."`
}

func (c userSetRoleCommand) Run(ctx context.Context, t terminal) error {
	return c.withUser(ctx, func(store *models.Store, user people.User) error {
		if _, err := store.People.SetRole(ctx, user.AccountID, user.ID, c.Role, record.Operator()); err != nil {
			return err
		}
		return t.say("the role of %s is %s", user.Email, c.Role)
	})
}

// withUser opens the store and calls work with it and the user.
func (f userFlag) withUser(ctx context.Context, work func(*models.Store, people.User) error) error {
	return withStore(ctx, func(store *models.Store) error {
		user, err := store.People.FindByEmail(ctx, f.Email)
		if err == nil {
			err = work(store, user)
		}
		return f.explain(err)
	})
}

// explain adds a command that helps to the text of an error.
func (f userFlag) explain(err error) error {
	if errors.Is(err, value.ErrUserNotFound) {
		return fmt.Errorf("--email %s: %w; list the users of an account with: portal user list --account EMAIL", f.Email, value.ErrUserNotFound)
	}
	if errors.Is(err, value.ErrLastOwner) {
		return fmt.Errorf("--email %s: %w; add another owner first with: portal user add --role owner", f.Email, value.ErrLastOwner)
	}
	return err
}

type accountResetPasswordCommand struct{ userFlag }

// Run writes nothing to standard output, because the command has no result.
func (c accountResetPasswordCommand) Run(ctx context.Context, t terminal) error {
	// They serve a warning only, so a mistake in them must not stop the command.
	s, _ := readSettings("PORTAL_OIDC_ISSUER", "PORTAL_OIDC_ACCOUNTS")
	password, err := readPassword(ctx, t)
	if err != nil {
		return err
	}
	return withStore(ctx, func(store *models.Store) error {
		if err := store.Credentials.ResetPassword(ctx, c.Email, password); err != nil {
			return c.explain(err)
		}
		return errors.Join(
			t.say("the password of %s was reset, and all of the user's sessions ended", c.Email), warnOfPassword(store, t),
			c.warnOfProvider(ctx, s, store, t),
		)
	})
}

// warnOfProvider says that the new password has no effect if the provider decides about the access
// of the user.
func (f userFlag) warnOfProvider(ctx context.Context, s settings, store *models.Store, t terminal) error {
	if !s.oidc.Claims {
		return nil
	}
	user, err := store.People.FindByEmail(ctx, f.Email)
	if err == nil {
		_, err = store.Credentials.FindIdentity(ctx, user.AccountID, user.ID, s.oidc.Issuer)
	}
	if errors.Is(err, value.ErrIdentityNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return t.say("%s signs in with %s alone, so the password does not sign in: restore the access there, or create a sign-in link with the operator API",
		f.Email, s.oidc.Issuer)
}
