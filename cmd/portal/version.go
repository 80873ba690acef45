package main

import "fmt"

// version is that of the first heading in CHANGELOG.md. The Makefile reads it too.
const version = "1.0.0"

type versionCommand struct{}

func (versionCommand) Run(t terminal) error {
	_, err := fmt.Fprintln(t.out, version)
	return err
}
