package main

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestTheBinaryIsStaticAndKnowsItsVersion(t *testing.T) {
	t.Parallel()
	binary := buildPortal(t)
	version, err := exec.Command(binary, "--version").Output()
	if err != nil || strings.TrimSpace(string(version)) != "v1.2.3" {
		t.Errorf("got version %q, error %v", version, err)
	}
	if runtime.GOOS != "linux" {
		return // static linking is checked on Linux only
	}
	file, err := elf.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		t.Error("the binary is linked dynamically")
	}
}

// buildPortal builds the program as make build does, and returns its path.
func buildPortal(t *testing.T) (binary string) {
	t.Helper()
	binary = filepath.Join(t.TempDir(), "portal")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-X main.version=v1.2.3", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return binary
}
