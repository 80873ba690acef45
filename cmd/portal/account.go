package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"portal/models"
)

// longestInput bounds what is read from standard input: every password and key is far shorter.
const longestInput = 4096

type accountCreateCommand struct {
	Name  string `required:"" placeholder:"NAME" help:"What the account is called."`
	Email string `required:"" placeholder:"EMAIL" help:"What its user signs in with."`
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
	Email string `required:"" placeholder:"EMAIL" help:"What the user signs in with."`
}

// Run prints nothing on standard output: there is no result, and the password is the operator's own.
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
		_, err = fmt.Fprintf(t.err, "portal: the password of %s is reset, and every session of theirs has ended\n", c.Email)
		return err
	})
}

// readInput returns what standard input holds, trimmed.
func readInput(r io.Reader, what string, trim func(string) string) (string, error) {
	content, err := io.ReadAll(io.LimitReader(r, longestInput+1))
	if err != nil {
		return "", fmt.Errorf("read standard input: %w", err)
	}
	if len(content) > longestInput {
		return "", refusal("%s on standard input is longer than %d bytes", what, longestInput)
	}
	input := trim(string(content))
	if input == "" {
		return "", refusal("%s is read from standard input, which is empty", what)
	}
	return input, nil
}

// withoutLineEnd takes away the one line end that echo and editors add: all else may be meant.
func withoutLineEnd(input string) string {
	return strings.TrimSuffix(strings.TrimSuffix(input, "\n"), "\r")
}

// forOperator is what an error says on a terminal: of input that breaks a rule, only the sentence made for people.
func forOperator(err error) error {
	if invalid, ok := errors.AsType[*models.InvalidError](err); ok {
		return errors.New(invalid.Message)
	}
	return err
}
