package subprocess

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// PortalVariable is the environment variable with the path of the program for all tests of a run.
const PortalVariable = "TEST_PORTAL"

// Portal returns the path of the program. Unless [PortalVariable] has one, Portal builds it beside
// the test binary, where go test removes it.
var Portal = sync.OnceValues(func() (string, error) {
	if built := os.Getenv(PortalVariable); built != "" {
		return built, nil
	}
	tests, err := os.Executable()
	if err != nil {
		return "", err
	}
	program := filepath.Join(filepath.Dir(tests), "portal")
	return program, BuildPortal(context.Background(), program)
})

// BuildPortal builds the program from the working tree as make build does, with these extra flags.
func BuildPortal(ctx context.Context, program string, flags ...string) error {
	args := []string{"build", "-tags", "nomsgpack", "-trimpath", "-ldflags", "-s -w", "-o", program}
	build := exec.CommandContext(ctx, "go", append(append(args, flags...), "portal/cmd/portal")...) //nolint:gosec // constant arguments
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the portal: %w\n%s", err, output)
	}
	return nil
}
