package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/alecthomas/kong"
)

// maxEnvFile is the size limit of the file in bytes.
const maxEnvFile = 1 << 20

// envFile is the flag --env-file: a file with environment variables.
type envFile string

// BeforeReset adds the variables of the file to the environment. Kong calls it before the command
// runs. A variable that the environment has already stays; an empty one counts as not set, as
// everywhere.
func (envFile) BeforeReset(c *kong.Context, flag *kong.Path) error {
	path := string(c.FlagValue(flag.Flag).(envFile)) //nolint:forcetypeassert // the flag's own type
	all, err := readEnvFile(path)
	if err != nil {
		return inputError("--env-file %s: %s", path, err)
	}
	values := map[string]string{}
	for _, assigned := range all {
		values[assigned.name] = assigned.value
	}
	for name, value := range values {
		if current, _ := variable(name); current != "" {
			continue
		}
		if err := os.Setenv(name, value); err != nil {
			return inputError("--env-file %s: set %s: %s", path, name, err)
		}
	}
	return nil
}

// readEnvFile returns the assignments in the file. If it cannot read all of it, it returns an error
// with the number of the line and no part of its text.
func readEnvFile(path string) ([]assignment, error) {
	file, err := os.Open(path) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, errors.New(fileProblem(err, "name a file that this user may read"))
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, maxEnvFile+1))
	switch {
	case err != nil:
		return nil, errors.New(fileProblem(err, "name a file that this user may read"))
	case len(content) > maxEnvFile:
		return nil, fmt.Errorf("the file is longer than %d bytes", maxEnvFile)
	}
	return parseEnvFile(string(content))
}

// assignment is a variable in a file.
type assignment struct{ name, value string }

// lineError is an error about a line of a file.
func lineError(line int, text string) error { return fmt.Errorf("line %d: %s", line, text) }

// assigned matches the beginning of an assignment up to its value.
var assigned = regexp.MustCompile(`^(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*`)

// parseEnvFile returns the assignments of a file in their order. It reads what EnvironmentFile= of
// systemd, the files of Docker Compose and dotenv, and shells with export have in common. If they
// read a line differently, it returns an error.
func parseEnvFile(content string) ([]assignment, error) {
	if strings.HasPrefix(content, "\xff\xfe") || strings.HasPrefix(content, "\xfe\xff") {
		return nil, errors.New("the file is UTF-16 text; save it as UTF-8")
	}
	content = strings.TrimPrefix(content, string(byteOrderMark))
	content = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(content)
	for i, line := range strings.Split(content, "\n") {
		if !utf8.ValidString(line) {
			return nil, lineError(i+1, "it is not UTF-8 text; save the file as UTF-8")
		}
		if strings.ContainsFunc(strings.ReplaceAll(line, "\t", " "), unicode.IsControl) {
			return nil, lineError(i+1, "it has a control character; remove it")
		}
	}
	var all []assignment
	for r := (envReader{rest: content, line: 1}); r.rest != ""; {
		r.skip(" \t")
		switch {
		case r.rest == "":
		case strings.ContainsAny(r.rest[:1], "#;\n"):
			_, r.rest, _ = strings.Cut(r.rest, "\n")
			r.line++
		default:
			begin := assigned.FindStringSubmatch(r.rest)
			if begin == nil {
				return nil, lineError(r.line, "it is not NAME=value; write # before a comment")
			}
			r.rest = r.rest[len(begin[0]):]
			value, err := r.value(strings.HasSuffix(begin[0], " ") || strings.HasSuffix(begin[0], "\t"))
			if err != nil {
				return nil, err
			}
			all = append(all, assignment{name: begin[1], value: value})
		}
	}
	return all, nil
}

// The errors about values that tools read differently.
const (
	ambiguousBackslash = "tools read a backslash differently; put the value in single quotes"
	ambiguousComment   = "tools read a # after a space differently; put the value in quotes, or the comment in a line of its own"
	unexpanded         = "${ and $( are not expanded; write the value itself, or put it in single quotes if it has these characters"
)

// envReader reads a file.
type envReader struct {
	rest string // the file from here on
	line int    // number of the line where rest begins
}

// next returns the next byte, and 0 at the end of the file.
func (r *envReader) next() (c byte) {
	if r.rest != "" {
		c, r.rest = r.rest[0], r.rest[1:]
	}
	if c == '\n' {
		r.line++
	}
	return c
}

// skip skips these characters, which are not line ends.
func (r *envReader) skip(characters string) { r.rest = strings.TrimLeft(r.rest, characters) }

// expands reports whether a shell or Compose would put something else in the place of what begins
// with c.
func (r *envReader) expands(c byte) bool {
	return c == '$' && (strings.HasPrefix(r.rest, "{") || strings.HasPrefix(r.rest, "("))
}

// value returns a value, and skips its line end.
func (r *envReader) value(spaced bool) (string, error) {
	if r.rest == "" || !strings.ContainsAny(r.rest[:1], `"'`) {
		return r.unquoted(spaced)
	}
	begin := r.line
	value, err := r.quoted(r.next())
	if err != nil {
		return "", err
	}
	here := r.rest
	r.skip(" \t")
	switch {
	case r.rest == "":
	case r.rest[0] == '\n':
		r.next()
	case r.rest[0] == '#' && len(here) > len(r.rest):
		_, r.rest, _ = strings.Cut(r.rest, "\n")
		r.line++
	case begin == r.line:
		return "", lineError(r.line, "there is text after the closing quote; put the whole value in one pair of quotes")
	default:
		return "", lineError(r.line, fmt.Sprintf("there is text after the closing quote of line %d; put the whole value in one pair of quotes", begin))
	}
	return value, nil
}

// quoted returns the text up to the closing quote, which may be in a later line.
func (r *envReader) quoted(quote byte) (string, error) {
	var value []byte
	for begin := r.line; ; {
		c := r.next()
		switch {
		case c == 0:
			return "", lineError(begin, "the quote has no closing one")
		case c == quote:
			return string(value), nil
		case quote == '"' && c == '\\':
			switch c = r.next(); c {
			case 0:
				return "", lineError(begin, "the quote has no closing one")
			case '\n': // the line continues
				continue
			case '"', '\\', '`', '$':
			default:
				return "", lineError(r.line, ambiguousBackslash)
			}
		case quote == '"' && r.expands(c):
			return "", lineError(r.line, unexpanded)
		}
		value = append(value, c)
	}
}

// unquoted returns the text up to the end of the line, without white space at its end. A backslash
// at the end of the line continues it. The argument is whether white space is before it.
func (r *envReader) unquoted(spaced bool) (string, error) {
	var value []byte
	for {
		line, c := r.line, r.next()
		switch {
		case c == 0 || c == '\n':
			return strings.TrimRight(string(value), " \t"), nil
		case c == '\\' && strings.HasPrefix(r.rest, "\n"):
			r.next()
			continue
		case c == '\\':
			return "", lineError(line, ambiguousBackslash)
		case c == '#' && spaced:
			return "", lineError(line, ambiguousComment)
		case r.expands(c):
			return "", lineError(line, unexpanded)
		}
		spaced = c == ' ' || c == '\t'
		value = append(value, c)
	}
}

// variable returns the [settingValue] of an environment variable. Because compose files and unit
// files cannot leave a variable out, an empty value counts as not set.
func variable(name string) (string, error) { return settingValue(os.Getenv(name)) }

// settingValue returns the value of a setting in the environment or in a file without the white
// space at its ends, which files of secrets and editors add. If a control character is inside,
// settingValue returns an error too.
func settingValue(text string) (string, error) {
	value := strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == byteOrderMark })
	switch {
	case strings.ContainsFunc(value, unicode.IsControl):
		return value, errors.New("has a control character inside, such as a line break or a tab; remove it")
	case !utf8.ValidString(value):
		return value, errors.New("is not UTF-8 text; encode it as UTF-8")
	}
	return value, nil
}

// errQuoted is the error of a value in quotes. Docker and Kubernetes keep those that a shell,
// Compose and systemd remove.
var errQuoted = errors.New("the value is in quotes, which Docker and Kubernetes keep; remove the quotes")

// isQuoted reports whether a value has quotes around it.
func isQuoted(value string) bool {
	return len(value) > 1 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0]
}

// byteOrderMark is what some editors write at the beginning of a file.
const byteOrderMark = '\ufeff'

// tidyEnvironment cuts the white space at the ends of the variables that libraries read. They read
// the environment themselves.
func tidyEnvironment() error {
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		foreign := strings.HasPrefix(name, "OTEL_") || strings.HasPrefix(name, "PG") || strings.HasSuffix(strings.ToUpper(name), "_PROXY")
		if !foreign {
			continue
		}
		if tidied, _ := variable(name); tidied != value {
			if err := os.Setenv(name, tidied); err != nil {
				return fmt.Errorf("set %s: %w", name, err)
			}
		}
	}
	return nil
}
