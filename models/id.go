package models

import "github.com/google/uuid"

// ParseID returns the id that text is, and whether it is one: the 36-character
// form alone (RFC 9562, section 4), in either case. uuid.Parse takes braces, a
// urn: prefix and no dashes as well.
func ParseID(text string) (uuid.UUID, bool) {
	const length = 36
	if len(text) != length {
		return uuid.Nil, false
	}
	id, err := uuid.Parse(text)
	return id, err == nil
}

// newID returns a UUIDv7 (RFC 9562 section 5.7), which sorts by time of making.
func newID() uuid.UUID {
	// NewV7 fails only if crypto/rand does, and that ends the program first.
	return uuid.Must(uuid.NewV7())
}
