package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/google/uuid"
	"golang.org/x/term"

	"portal/models/value"
)

// maxInput is the size limit of standard input in bytes. Passwords and keys are far shorter.
const maxInput = 4096

// readPassword reads a new password from standard input. On a terminal the user enters it twice.
func readPassword(ctx context.Context, t terminal) (string, error) {
	keyboard, ok := keyboardOf(t.in)
	if !ok {
		return readInput(t.in, "the password", withoutLineEnd)
	}
	password, err := prompt(ctx, t, keyboard, "Password: ")
	if err != nil {
		return "", err
	}
	again, err := prompt(ctx, t, keyboard, "Repeat the password: ")
	if err == nil && again != password {
		err = inputError("the two passwords differ; run the command again")
	}
	return password, err
}

// readKey reads an API key from standard input.
func readKey(ctx context.Context, t terminal) (string, error) {
	if keyboard, ok := keyboardOf(t.in); ok {
		key, err := prompt(ctx, t, keyboard, "API key: ")
		return strings.TrimSpace(key), err
	}
	return readInput(t.in, "the key", strings.TrimSpace)
}

// readInput reads all of r and trims it. If the result is empty or too long, readInput returns an
// error.
func readInput(r io.Reader, what string, trim func(string) string) (string, error) {
	content, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	if err != nil {
		return "", fmt.Errorf("read standard input: %w", err)
	}
	if len(content) > maxInput {
		return "", inputError("%s on standard input is longer than %d bytes", what, maxInput)
	}
	input := trim(strings.TrimPrefix(string(content), "\ufeff")) // of PowerShell and Windows editors
	if input == "" {
		return "", inputError("%s is read from standard input, but standard input is empty", what)
	}
	return input, nil
}

// keyboardOf returns the file descriptor of a terminal, or false if r is not one.
func keyboardOf(r io.Reader) (descriptor int, ok bool) {
	file, ok := r.(*os.File)
	if !ok {
		return 0, false
	}
	descriptor = int(file.Fd())
	return descriptor, term.IsTerminal(descriptor)
}

// prompt asks for a secret on a terminal, which does not show the input. If ctx ends, it restores
// the terminal.
func prompt(ctx context.Context, t terminal, keyboard int, question string) (string, error) {
	before, err := term.GetState(keyboard)
	if err != nil {
		return "", fmt.Errorf("prepare the terminal: %w", err)
	}
	_, _ = fmt.Fprint(t.err, question)
	type answer struct {
		text []byte
		err  error
	}
	answered := make(chan answer, 1)
	go func() {
		text, err := term.ReadPassword(keyboard)
		answered <- answer{text, err}
	}()
	select {
	case <-ctx.Done():
		return "", errors.Join(ctx.Err(), term.Restore(keyboard, before))
	case a := <-answered:
		_, _ = fmt.Fprintln(t.err) // the terminal does not show the Enter key either
		if a.err != nil {
			return "", fmt.Errorf("read the terminal: %w", a.err)
		}
		if len(a.text) == 0 {
			return "", inputError("nothing was entered; run the command again")
		}
		return string(a.text), nil
	}
}

// withoutLineEnd removes the line ends that echo and editors add, and no other white space.
func withoutLineEnd(input string) string { return strings.TrimRight(input, "\r\n") }

// mapText sets the value of a flag or an argument, which must not be empty: an unset variable of a
// script is not a choice.
func mapText(c *kong.DecodeContext, target reflect.Value) error {
	if !c.Scan.Peek().IsValue() {
		return errors.New("a value is missing")
	}
	if err := c.Scan.PopValueInto("text", target.Addr().Interface()); err != nil {
		return err
	}
	if strings.TrimSpace(target.String()) == "" {
		return errors.New("the value is empty; give one or leave the flag out")
	}
	return nil
}

// mapNumber is mapText for a whole number.
func mapNumber(c *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := mapText(c, reflect.ValueOf(&text).Elem()); err != nil {
		return err
	}
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || target.OverflowInt(number) {
		return errors.New("write a whole number")
	}
	target.SetInt(number)
	return nil
}

// mapID is mapText for an id, and accepts the same ids as [value.ParseID] except the nil UUID.
func mapID(c *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := mapText(c, reflect.ValueOf(&text).Elem()); err != nil {
		return err
	}
	id, ok := value.ParseID(text)
	if !ok {
		return errors.New("write a UUID of 36 characters, such as 0198c2f4-7a31-7c6e-9d52-3f8be6a1c004")
	}
	if id == uuid.Nil {
		return errors.New("the nil UUID is not a valid id")
	}
	target.Set(reflect.ValueOf(id))
	return nil
}
