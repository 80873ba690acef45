package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"regexp"
	"strings"
	"syscall"
)

const (
	exitFailed  = 1 // the command failed
	exitInvalid = 2 // the command line or the configuration is invalid
)

// terminal holds the standard streams of the process. Results go to out, everything else to err.
type terminal struct {
	in  io.Reader
	out io.Writer
	err *logQueue
}

// output is standard output. A reader that has seen enough, such as head, is no failure.
type output struct{ io.Writer }

func (o output) Write(text []byte) (int, error) {
	n, err := o.Writer.Write(text)
	if errors.Is(err, syscall.EPIPE) {
		return len(text), nil
	}
	return n, err
}

// say writes a line about the command, which is not its result.
func (t terminal) say(format string, args ...any) error {
	_, err := fmt.Fprintf(t.err, "portal: "+format+"\n", args...)
	return err
}

// inputErrors lists everything that is wrong with a command line or a configuration, one line for
// each error. Each line names the value, says what to do, and never contains a secret.
type inputErrors []string

func (e inputErrors) Error() string { return strings.Join(e, "\n") }

func inputError(format string, args ...any) error {
	return inputErrors{fmt.Sprintf(format, args...)}
}

// report writes err to w, one line for each error, and returns the exit status.
func report(w io.Writer, err error) int {
	if err == nil {
		return 0
	}
	status, lines := exitFailed, []string{err.Error()}
	if invalid, ok := errors.AsType[inputErrors](err); ok {
		status, lines = exitInvalid, invalid
	}
	for _, line := range lines {
		// Messages of database drivers may have several lines.
		_, _ = fmt.Fprintln(w, "portal: "+strings.Join(strings.Fields(line), " "))
	}
	return status
}

// cause returns the text of an error without the address of the request, which the caller says.
func cause(err error) string {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	text := cmp.Or(systemCause(err), err.Error())
	if foreignAnswer.MatchString(text) {
		return "another program or protocol answers there"
	}
	return text
}

// foreignAnswer is in the errors of libraries about responses in another protocol or format.
var foreignAnswer = regexp.MustCompile(`malformed HTTP|look like a TLS handshake|to HTTPS client|invalid character`)

// systemCause returns the text of the system's error in err, or "" if there is none.
func systemCause(err error) string {
	if os.IsTimeout(err) || errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	if lookup, ok := errors.AsType[*net.DNSError](err); ok {
		return "the host name cannot be resolved: " + lookup.Err
	}
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number.Error()
	}
	return ""
}

// fileProblem returns the cause of an error about a file and what to do, for a message that names
// the file.
func fileProblem(err error, advice string) string {
	if errors.Is(err, syscall.ENOSPC) {
		return "the disk is full; free some space on it"
	}
	return cause(err) + "; " + advice
}
