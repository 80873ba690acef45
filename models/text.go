package models

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxNameLength is the maximum length of a key's label and of the name of an agent or account, in
// Unicode code points.
const maxNameLength = 100

// cleanName trims a label or name. It returns an [*InvalidError] unless the result has 1 to
// maxNameLength characters and no control characters. The title is the field's name in messages.
func cleanName(field, title, value string) (string, error) {
	value = strings.TrimSpace(value)
	switch length := utf8.RuneCountInString(value); {
	case !utf8.ValidString(value):
		return "", &InvalidError{field, title + " contains invalid characters."}
	case length == 0:
		return "", &InvalidError{field, "Enter a " + strings.ToLower(title) + "."}
	case length > maxNameLength:
		return "", &InvalidError{field, fmt.Sprintf("%s must be at most %d characters long. You entered %d.", title, maxNameLength, length)}
	case strings.ContainsFunc(value, unicode.IsControl):
		return "", &InvalidError{field, title + " must not contain line breaks or control characters."}
	}
	return value, nil
}
