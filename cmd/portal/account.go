package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"portal/models"
)

// maxInput is the size limit of standard input in bytes. Passwords and keys are far shorter.
const maxInput = 4096

type accountCreateCommand struct {
	Name  string `required:"" placeholder:"NAME" help:"The account's name."`
	Email string `required:"" placeholder:"EMAIL" help:"The user's email, for signing in."`
}

func (c accountCreateCommand) Run(ctx context.Context, t terminal) error {
	password, err := readInput(t.in, "the password", withoutLineEnd)
	if err != nil {
		return err
	}
	return withStore(ctx, func(store *models.Store) error {
		account, err := store.CreateAccount(ctx, models.NewAccount{Name: c.Name, Email: c.Email, Password: password})
		if err != nil {
			return forOperator(err)
		}
		_, err = fmt.Fprintln(t.out, account.ID)
		return err
	})
}

type accountResetPasswordCommand struct {
	Email string `required:"" placeholder:"EMAIL" help:"The user's email."`
}

// Run writes nothing to standard output, because the command has no result.
func (c accountResetPasswordCommand) Run(ctx context.Context, t terminal) error {
	password, err := readInput(t.in, "the password", withoutLineEnd)
	if err != nil {
		return err
	}
	return withStore(ctx, func(store *models.Store) error {
		err := store.ResetPassword(ctx, c.Email, password)
		if errors.Is(err, models.ErrAccountNotFound) {
			return fmt.Errorf("--email %s: %w", c.Email, err)
		}
		if err != nil {
			return forOperator(err)
		}
		_, err = fmt.Fprintf(t.err, "portal: the password of %s was reset, and all of the user's sessions ended\n", c.Email)
		return err
	})
}

// readInput reads all of r and trims it. It returns an error when the result is empty or too long.
func readInput(r io.Reader, what string, trim func(string) string) (string, error) {
	content, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	if err != nil {
		return "", fmt.Errorf("read standard input: %w", err)
	}
	if len(content) > maxInput {
		return "", inputError("%s on standard input is longer than %d bytes", what, maxInput)
	}
	input := trim(string(content))
	if input == "" {
		return "", inputError("%s is read from standard input, but standard input is empty", what)
	}
	return input, nil
}

// withoutLineEnd removes the one line end that echo and editors add, and no other white space.
func withoutLineEnd(input string) string {
	return strings.TrimSuffix(strings.TrimSuffix(input, "\n"), "\r")
}

// forOperator reduces an error about invalid input to its message for users.
func forOperator(err error) error {
	if invalid, ok := errors.AsType[*models.InvalidError](err); ok {
		return errors.New(invalid.Message)
	}
	return err
}
