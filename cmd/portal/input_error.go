package main

import (
	"fmt"
	"strings"
)

// inputErrors lists everything that is wrong with a command line or a configuration, one line for
// each error. Each line names the value and says what to do. It never contains a secret.
type inputErrors []string

func (e inputErrors) Error() string { return strings.Join(e, "\n") }

// inputError returns a single input error.
func inputError(format string, args ...any) error {
	return inputErrors{fmt.Sprintf(format, args...)}
}
