package models

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxNameLength is the longest label of a key and name of an agent or an
// account, in characters (Unicode code points).
const MaxNameLength = 100

// cleanName returns a label or name trimmed, or an [*InvalidError] unless it
// has 1 to [MaxNameLength] characters and no control characters. Title is what
// people call the field.
func cleanName(field, title, value string) (string, error) {
	value = strings.TrimSpace(value)
	switch length := utf8.RuneCountInString(value); {
	case !utf8.ValidString(value):
		return "", &InvalidError{field, title + " must be text in UTF-8."}
	case length == 0:
		return "", &InvalidError{field, "Enter a " + strings.ToLower(title) + "."}
	case length > MaxNameLength:
		return "", &InvalidError{field, fmt.Sprintf("%s must be at most %d characters long; this one has %d.", title, MaxNameLength, length)}
	case strings.ContainsFunc(value, unicode.IsControl):
		return "", &InvalidError{field, title + " must not contain line breaks or other control characters."}
	}
	return value, nil
}
