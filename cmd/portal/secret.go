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
)

const (
	leastSecret = 32 // bytes
	secretFile  = "portal.secret"
)

// fileSecret returns the secret kept in portal.secret in directory, and makes it first if there is none. Of several
// processes that start at once one makes it and all return the same.
func fileSecret(directory string) (string, error) {
	path := filepath.Join(directory, secretFile)
	secret, err := readSecret(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = writeSecret(path); err == nil {
			secret, err = readSecret(path)
		}
	}
	if err != nil {
		return "", fmt.Errorf("PORTAL_SECRET is not set, and its file cannot be used: %w", err)
	}
	return secret, nil
}

func readSecret(path string) (string, error) {
	content, err := os.ReadFile(path) //nolint:gosec // the operator names the directory
	if err != nil {
		return "", err
	}
	secret := strings.TrimSpace(string(content))
	if len(secret) < leastSecret {
		return "", fmt.Errorf("%s holds fewer than %d bytes; restore it, or delete it and everyone signs in again", path, leastSecret)
	}
	return secret, nil
}

// writeSecret makes the file in one step, whole or not at all: it is written under another name, and linked to its own
// unless another process has done so meanwhile.
func writeSecret(path string) error {
	draft, err := os.CreateTemp(filepath.Dir(path), secretFile+".*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(draft.Name()) }()
	random := make([]byte, leastSecret)
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
