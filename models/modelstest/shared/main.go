// Shared runs a command that runs the tests of several packages. For all of them it builds the
// program and starts a PostgreSQL server once.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"

	"portal/models/modelstest"
	"portal/models/modelstest/subprocess"
)

func main() {
	// A terminal sends an interrupt to the command too, whose tests need the server until they
	// end.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	if err := run(os.Args[1:]); err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			os.Exit(max(exit.ExitCode(), 1))
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(command []string) (err error) {
	dir, err := os.MkdirTemp("", "portal-tests-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program := filepath.Join(dir, "portal")
	if err := subprocess.BuildPortal(context.Background(), program); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, modelstest.StopServer()) }()
	server, err := modelstest.StartServer()
	if err != nil {
		return err
	}
	tests := exec.Command(command[0], command[1:]...) //nolint:gosec // the caller's own command
	tests.Stdin, tests.Stdout, tests.Stderr = os.Stdin, os.Stdout, os.Stderr
	tests.Env = append(os.Environ(), subprocess.PortalVariable+"="+program, server)
	return tests.Run()
}
