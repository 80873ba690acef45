package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"portal/models/database"
	"portal/models/secret"
)

const secretFile = "portal.secret"

// fileSecret returns the secret in the file portal.secret in directory. If the file does not exist,
// fileSecret creates it and reports that it is new. Processes that start at the same time all
// return the same secret.
func fileSecret(directory string) (value string, isNew bool, err error) {
	path := absolute(filepath.Join(directory, secretFile))
	value, err = readSecret(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := writeSecret(path); err != nil {
			return "", false, fmt.Errorf("PORTAL_SECRET is not set, and %s cannot be written: %s", path,
				fileProblem(err, "let the user that runs the portal write to the directory, or set PORTAL_SECRET"))
		}
		isNew = true
		value, err = readSecret(path)
	}
	if err != nil {
		return "", false, fmt.Errorf("PORTAL_SECRET is not set, and %w", err)
	}
	return value, isNew, nil
}

// othersMayRead reports whether other users of the machine may read the secret file in directory.
func othersMayRead(directory string) bool {
	info, err := os.Stat(filepath.Join(directory, secretFile))
	return err == nil && info.Mode().Perm()&0o077 != 0
}

// readSecret returns the secret in a file, read as a variable is. The error is fs.ErrNotExist if
// there is no such file.
func readSecret(path string) (string, error) {
	content, err := os.ReadFile(path) //nolint:gosec // the operator names the directory
	if errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err != nil {
		return "", fmt.Errorf("%s cannot be read: %s", path,
			fileProblem(err, "it must be a file that the user that runs the portal may read, or set PORTAL_SECRET"))
	}
	value, err := settingValue(string(content))
	if err != nil {
		return "", fmt.Errorf("%s %w", path, err)
	}
	if len(value) < secret.MinLength {
		return "", fmt.Errorf("%s has fewer than %d bytes; restore the file from your copy, or delete it to get a new "+
			"one, which signs everyone out and loses authenticator apps", path, secret.MinLength)
	}
	return value, nil
}

// absolute returns the absolute path, or path if there is none.
func absolute(path string) string {
	if absolute, err := filepath.Abs(path); err == nil {
		return absolute
	}
	return path
}

// writeSecret creates the file atomically: it writes a temporary file and links it to path. If
// another process has created path in the meantime, writeSecret does nothing.
func writeSecret(path string) error {
	draft, err := os.CreateTemp(filepath.Dir(path), secretFile+".*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(draft.Name()) }()
	random := make([]byte, secret.MinLength)
	_, _ = rand.Read(random) // never fails
	_, err = draft.WriteString(hex.EncodeToString(random) + "\n")
	if err := errors.Join(err, draft.Sync(), database.GiveToOwner(draft), draft.Close()); err != nil {
		return err
	}
	if err := os.Link(draft.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
