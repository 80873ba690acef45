package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"
)

// maxEnvFile is the size limit of the file in bytes.
const maxEnvFile = 1 << 20

// envFile is the flag --env-file: a file with environment variables, as systemd's EnvironmentFile=
// reads it.
type envFile string

// BeforeReset adds the variables of the file to the environment. Kong calls it before it reads the
// environment for other flags. A variable that the environment has already stays; an empty one
// counts as not set, as everywhere.
func (envFile) BeforeReset(c *kong.Context, flag *kong.Path, t terminal) error {
	path := string(c.FlagValue(flag.Flag).(envFile)) //nolint:forcetypeassert // the flag's own type
	content, err := readEnvFile(path)
	if err != nil {
		return fmt.Errorf("--env-file %s: %w", path, err)
	}
	values := map[string]string{}
	for _, assigned := range parseEnvFile(content) {
		// The name is not in the message: it may be a part of a secret.
		if !variableName.MatchString(assigned.name) {
			_ = t.say("--env-file %s: line %d ignored, because what is left of = is not the name of a variable", path, assigned.line)
			continue
		}
		values[assigned.name] = assigned.value
	}
	for name, value := range values {
		if os.Getenv(name) != "" {
			continue
		}
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("--env-file %s: set %s: %w", path, name, err)
		}
	}
	return nil
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// readEnvFile returns the content of the file, which must be text.
func readEnvFile(path string) (string, error) {
	file, err := os.Open(path) //nolint:gosec // the operator names the file
	if err != nil {
		return "", errors.Unwrap(err) // without the path
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, maxEnvFile+1))
	switch {
	case err != nil:
		return "", errors.Unwrap(err)
	case len(content) > maxEnvFile:
		return "", fmt.Errorf("the file is longer than %d bytes", maxEnvFile)
	case !utf8.Valid(content) || strings.ContainsRune(string(content), 0):
		return "", errors.New("the file is not UTF-8 text")
	}
	return string(content), nil
}

// assignment is a variable in a file.
type assignment struct {
	name, value string
	line        int // of the name
}

// parseEnvFile returns the assignments of a file in their order, by the rules of EnvironmentFile=
// in systemd.exec(5). A line without = is ignored.
func parseEnvFile(content string) (all []assignment) {
	r := envReader{rest: content}
	for {
		r.rest = strings.TrimLeft(r.rest, envSpace)
		if r.rest == "" {
			return all
		}
		line := 1 + strings.Count(content[:len(content)-len(r.rest)], "\n")
		end := strings.IndexAny(r.rest, envLineEnds)
		if end < 0 {
			end = len(r.rest)
		}
		equals := 1 + strings.Index(r.rest[1:end], "=") // a name has at least one character
		if equals == 0 || strings.ContainsAny(r.rest[:1], "#;") {
			r.rest = r.rest[end:]
			continue
		}
		name := strings.TrimRight(r.rest[:equals], envSpace)
		r.rest = r.rest[equals+1:]
		all = append(all, assignment{name: name, value: r.value(), line: line})
	}
}

const (
	envLineEnds = "\n\r"
	envSpace    = " \t" + envLineEnds
)

// envReader reads the value of an assignment.
type envReader struct {
	rest string // the file from here on
}

// next returns the next byte, and 0 at the end of the file.
func (r *envReader) next() (c byte) {
	if r.rest != "" {
		c, r.rest = r.rest[0], r.rest[1:]
	}
	return c
}

// value returns the value up to the end of its line: quoted parts, and then text without quotes.
func (r *envReader) value() string {
	var value []byte
	for {
		here := r.rest
		switch r.next() {
		case 0, '\n', '\r':
			return string(value)
		case '\'':
			quoted, rest, _ := strings.Cut(r.rest, "'")
			value, r.rest = append(value, quoted...), rest
		case '"':
			value = r.doubleQuoted(value)
		case ' ', '\t':
		default:
			r.rest = here
			return r.unquoted(value)
		}
	}
}

// doubleQuoted appends the text up to the closing quote.
func (r *envReader) doubleQuoted(value []byte) []byte {
	for {
		c := r.next()
		switch c {
		case 0, '"':
			return value
		case '\\':
			c = r.next()
			if c == 0 || c == '\n' { // the line continues
				continue
			}
			if !strings.ContainsRune("\"\\`$", rune(c)) {
				value = append(value, '\\')
			}
		}
		value = append(value, c)
	}
}

// unquoted appends the text up to the end of the line, without white space at its end.
func (r *envReader) unquoted(value []byte) string {
	length := len(value)
	for {
		c := r.next()
		switch c {
		case 0, '\n', '\r':
			return string(value[:length])
		case '\\':
			// The line continues, or the next character has no special meaning.
			if c = r.next(); c != 0 && c != '\n' && c != '\r' {
				value = append(value, c)
			}
			length = len(value)
		case ' ', '\t':
			value = append(value, c)
		default:
			value = append(value, c)
			length = len(value)
		}
	}
}
