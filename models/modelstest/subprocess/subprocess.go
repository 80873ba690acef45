// Package subprocess runs programs in the background, for tests and benchmarks.
package subprocess

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// Child is a program that runs in the background.
type Child struct {
	*exec.Cmd

	exited chan struct{}
	err    error // the result of Wait; set before exited is closed
}

// Start starts the command. The caller must call Stop or Kill.
func Start(command *exec.Cmd) (*Child, error) {
	if err := command.Start(); err != nil {
		return nil, err
	}
	c := &Child{Cmd: command, exited: make(chan struct{})}
	go func() {
		c.err = command.Wait()
		close(c.exited)
	}()
	return c, nil
}

// Exited returns a channel that is closed when the process has exited.
func (c *Child) Exited() <-chan struct{} { return c.exited }

// AwaitReady calls ready until it returns nil. It returns an error when the process exits or ctx
// ends first.
func (c *Child) AwaitReady(ctx context.Context, ready func(context.Context) error) error {
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-c.exited:
			return fmt.Errorf("the process exited before it was ready: %s", c.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("the process is not ready: %w; last attempt: %w", ctx.Err(), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// CheckOK returns an error unless the response to a GET request for url has status 200.
func CheckOK(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, response.Status)
	}
	return nil
}

// Stop sends SIGTERM and waits for the process to exit. It returns an error when the process had
// exited before, when its exit status is not 0, or when it takes longer than timeout. In the last
// case Stop kills the process.
func (c *Child) Stop(timeout time.Duration) error {
	select {
	case <-c.exited:
		return fmt.Errorf("the process had exited already: %s", c.ProcessState)
	default:
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return c.AwaitExit(timeout)
}

// AwaitExit waits for the process to exit. It returns an error when the exit status is not 0, or
// when it takes longer than timeout. In the last case AwaitExit kills the process.
func (c *Child) AwaitExit(timeout time.Duration) error {
	select {
	case <-c.exited:
		return c.err
	case <-time.After(timeout):
		c.Kill()
		return fmt.Errorf("the process did not exit within %s", timeout)
	}
}

// Kill kills the process if it runs, and waits until it has exited.
func (c *Child) Kill() {
	_ = c.Process.Kill()
	<-c.exited
}

// Above returns the nearest folder, from the working directory upwards, that has this path.
func Above(path string) (string, error) {
	folder, err := os.Getwd()
	for ; err == nil; folder = filepath.Dir(folder) {
		if _, err = os.Stat(filepath.Join(folder, path)); err == nil || folder == filepath.Dir(folder) {
			return folder, err
		}
		err = nil
	}
	return "", err
}

// FreePort returns a free TCP port of the loopback interface. Until this process ends, the system
// gives the port to nobody who asks for any port. So ports that are needed together differ, and no
// other program takes one before it is used.
func FreePort() (int, error) {
	// On Linux, a socket that is bound and does not listen keeps a port. Another one can still
	// listen on it by its number, if both have SO_REUSEADDR, as the listeners of servers have.
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	syscall.CloseOnExec(socket)
	err = errors.Join(
		syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1),
		syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}),
	)
	address, nameErr := syscall.Getsockname(socket)
	if err := errors.Join(err, nameErr); err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	if runtime.GOOS != "linux" {
		err = syscall.Close(socket) // elsewhere it could keep the server from listening
	}
	return address.(*syscall.SockaddrInet4).Port, err
}

// FreeAddress returns 127.0.0.1 with a [FreePort].
func FreeAddress() (string, error) {
	port, err := FreePort()
	return fmt.Sprintf("127.0.0.1:%d", port), err
}
