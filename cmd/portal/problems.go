package main

import (
	"fmt"
	"strings"
)

// problems is everything that is wrong with a command line or a configuration, one line each: the name of what is
// wrong and what to do about it. It is collected and told at once, because one restart for each mistake wears people
// out. It never holds a secret.
type problems []string

func (p problems) Error() string { return strings.Join(p, "\n") }

// refusal is a single problem.
func refusal(format string, args ...any) error {
	return problems{fmt.Sprintf(format, args...)}
}
