package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"portal/models/secret"
)

const secretFile = "portal.secret"

// fileSecret returns the secret in the file portal.secret in directory, and creates the file if it
// does not exist. Processes that start at the same time all return the same secret.
func fileSecret(directory string) (string, error) {
	path := filepath.Join(directory, secretFile)
	value, err := readSecret(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = writeSecret(path); err == nil {
			value, err = readSecret(path)
		}
	}
	if err != nil {
		return "", fmt.Errorf("PORTAL_SECRET is not set, and the secret file cannot be used: %w", err)
	}
	return value, nil
}

func readSecret(path string) (string, error) {
	content, err := os.ReadFile(path) //nolint:gosec // the operator names the directory
	if err != nil {
		return "", err
	}
	value := strings.TrimSpace(string(content))
	if len(value) < secret.MinLength {
		return "", fmt.Errorf("%s has fewer than %d bytes; restore the file, or delete it, which signs everyone out", path, secret.MinLength)
	}
	return value, nil
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
	if err := errors.Join(err, draft.Sync(), draft.Close()); err != nil {
		return err
	}
	if err := os.Link(draft.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
