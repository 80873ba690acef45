// Package process runs programs in the background, for tests and benchmarks.
package process

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"syscall"
	"time"
)

// Process is a program that runs in the background.
type Process struct {
	*exec.Cmd

	exited chan struct{}
	err    error // the result of Wait; set before exited is closed
}

// Start starts the command. The caller must call Stop or Kill.
func Start(command *exec.Cmd) (*Process, error) {
	if err := command.Start(); err != nil {
		return nil, err
	}
	p := &Process{Cmd: command, exited: make(chan struct{})}
	go func() {
		p.err = command.Wait()
		close(p.exited)
	}()
	return p, nil
}

// Exited returns a channel that is closed when the process has exited.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// AwaitReady calls ready until it returns nil. It returns an error when the process exits or ctx
// ends first.
func (p *Process) AwaitReady(ctx context.Context, ready func(context.Context) error) error {
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.exited:
			return fmt.Errorf("the process exited before it was ready: %s", p.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("the process is not ready: %w; last attempt: %w", ctx.Err(), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Stop sends SIGTERM and waits for the process to exit. It returns an error when the process had
// exited before, when its exit status is not 0, or when it takes longer than timeout. In the last
// case Stop kills the process.
func (p *Process) Stop(timeout time.Duration) error {
	select {
	case <-p.exited:
		return fmt.Errorf("the process had exited already: %s", p.ProcessState)
	default:
	}
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return p.AwaitExit(timeout)
}

// AwaitExit waits for the process to exit. It returns an error when the exit status is not 0, or
// when it takes longer than timeout. In the last case AwaitExit kills the process.
func (p *Process) AwaitExit(timeout time.Duration) error {
	select {
	case <-p.exited:
		return p.err
	case <-time.After(timeout):
		p.Kill()
		return fmt.Errorf("the process did not exit within %s", timeout)
	}
}

// Kill kills the process if it runs, and waits until it has exited.
func (p *Process) Kill() {
	_ = p.Process.Kill()
	<-p.exited
}

// FreePort returns a TCP port of the loopback interface that is free at the time of the call.
// Another process may take it before the caller listens on it.
func FreePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	return port, listener.Close()
}

// FreeAddress returns 127.0.0.1 with a [FreePort].
func FreeAddress() (string, error) {
	port, err := FreePort()
	return fmt.Sprintf("127.0.0.1:%d", port), err
}
