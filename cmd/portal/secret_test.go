package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"portal/models/modelstest"
	"portal/models/secret"
)

func TestTheSecretFileIsCreatedOnceAndOnlyItsOwnerCanReadIt(t *testing.T) {
	dir := t.TempDir()
	first, isNew, err := fileSecret(dir)
	if err != nil || !isNew || len(first) < secret.MinLength {
		t.Fatalf("got %d bytes, new %t, error %v", len(first), isNew, err)
	}
	second, isNew, err := fileSecret(dir)
	if err != nil || isNew || second != first {
		t.Errorf("the second call returned another secret, new %t, error %v", isNew, err)
	}
	info, err := os.Stat(filepath.Join(dir, secretFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("want mode 0600, got %v, error %v", info.Mode(), err)
	}
	other, _, err := fileSecret(t.TempDir())
	if err != nil || other == first {
		t.Errorf("two directories share a secret, error %v", err)
	}
}

func TestConcurrentCallsReturnTheSameSecret(t *testing.T) {
	dir := t.TempDir()
	const many = 16
	secrets, errs := make([]string, many), make([]error, many)
	var group sync.WaitGroup
	for i := range many {
		group.Go(func() { secrets[i], _, errs[i] = fileSecret(dir) })
	}
	group.Wait()
	for i := range many {
		if errs[i] != nil || secrets[i] != secrets[0] {
			t.Errorf("call %d returned another secret, error %v", i, errs[i])
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("want only the secret file, got %v, error %v", left, err)
	}
}

func TestTheSecretFileIsReadAsAVariable(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, secretFile)
	for content, words := range map[string]string{
		"\ufeff " + goodSecret + " \r\n\n": "", goodSecret + "\n" + goodSecret: "control character", goodSecret + "\xff": "not UTF-8",
	} {
		modelstest.Must(t, os.WriteFile(path, []byte(content), 0o600))
		value, _, err := fileSecret(dir)
		if words == "" {
			if err != nil || value != goodSecret {
				t.Errorf("%q: got %q, error %v", content, value, err)
			}
			continue
		}
		text := fmt.Sprint(err)
		if !strings.Contains(text, words) || !strings.Contains(text, path) || strings.Contains(text, goodSecret[:8]) {
			t.Errorf("%q: got %q, error %v", content, value, err)
		}
	}
}

func TestATruncatedSecretFileIsAnErrorWithoutItsContent(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, secretFile)
	modelstest.Must(t, os.WriteFile(path, []byte("hunter2\n"), 0o600))
	_, _, err := fileSecret(dir)
	if err == nil || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("want an error with the path and without the content, got %v", err)
	}
	checked := settings{database: databaseConfig{directory: dir}}.checkSecret(true)
	if checked.grade != gradeFailed || !strings.Contains(checked.text, path) || strings.Contains(checked.text, "hunter2") {
		t.Errorf("check says %+v", checked)
	}
}

// The service's user must get at what a first start as root makes.
func TestNewDirectoriesAndSecretsBelongToTheOwnerAbove(t *testing.T) {
	t.Parallel()
	above, owner := t.TempDir(), os.Geteuid()
	if owner == 0 {
		owner = 65534
		modelstest.Must(t, os.Chown(above, owner, owner))
	}
	d := databaseConfig{url: "sqlite:", directory: filepath.Join(above, "portal", "data")}
	modelstest.Must(t, d.makeDirectory())
	_, _, err := fileSecret(d.directory)
	modelstest.Must(t, err)
	for _, path := range []string{filepath.Dir(d.directory), d.directory, filepath.Join(d.directory, secretFile)} {
		info := modelstest.Value(os.Stat(path))(t)
		if uid := int(info.Sys().(*syscall.Stat_t).Uid); uid != owner || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: of %d with mode %v, want %d and no others", path, uid, info.Mode(), owner)
		}
	}
}
