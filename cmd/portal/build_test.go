package main

import (
	"debug/elf"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"portal/models/modelstest"
	"portal/models/modelstest/subprocess"
)

func TestTheBinaryIsStaticAndKnowsItsVersion(t *testing.T) {
	t.Parallel()
	binary := buildPortal(t)
	for _, argument := range []string{"version", "--version"} {
		printed, err := exec.Command(binary, argument).Output()
		if err != nil || string(printed) != version+"\n" {
			t.Errorf("portal %s prints %q, error %v", argument, printed, err)
		}
	}
	if runtime.GOOS != "linux" {
		return // static linking is checked on Linux only
	}
	file := modelstest.Value(elf.Open(binary))(t)
	defer file.Close()
	if slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		t.Error("the binary is linked dynamically")
	}
}

// The largest dependencies that the program once had came with a single import.
func TestTheProgramStaysSmall(t *testing.T) {
	t.Parallel()
	const maxSize, maxPackages = 39 << 20, 560
	if info, err := os.Stat(buildPortal(t)); err != nil || info.Size() > maxSize {
		t.Errorf("the program has %d bytes, want at most %d; error %v", info.Size(), maxSize, err)
	}
	packages, err := exec.Command("go", "list", "-tags", "nomsgpack", "-deps", ".").Output()
	if n := strings.Count(string(packages), "\n"); err != nil || n > maxPackages {
		t.Errorf("the program has %d packages, want at most %d; error %v", n, maxPackages, err)
	}
}

// buildPortal returns the path of the program, which is built as make build does.
func buildPortal(t *testing.T) (binary string) {
	t.Helper()
	return modelstest.Value(subprocess.Portal())(t)
}

// actAsPortal is the environment variable that makes the test binary act as the portal.
const actAsPortal = "TEST_BINARY_IS_PORTAL"

func TestMain(m *testing.M) {
	if os.Getenv(actAsPortal) != "" {
		main()
		return
	}
	modelstest.Main(m)
}
