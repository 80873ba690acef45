package value

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"time"

	"github.com/google/uuid"
)

// ParseID parses a UUID in the 36-character form of RFC 9562, section 4, in either case, and
// reports false for any other text. Unlike uuid.Parse, it accepts no braces, no urn: prefix and no
// missing hyphens.
func ParseID(text string) (uuid.UUID, bool) {
	const length = 36
	if len(text) != length {
		return uuid.Nil, false
	}
	id, err := uuid.Parse(text)
	return id, err == nil
}

// NewID returns a UUIDv7 (RFC 9562 section 5.7), which sorts by creation time.
func NewID() uuid.UUID {
	// NewV7 fails only if crypto/rand fails, and crypto/rand then ends the program.
	return uuid.Must(uuid.NewV7())
}

// Random returns n random bytes from crypto/rand.
func Random(n int) []byte {
	bytes := make([]byte, n)
	_, _ = rand.Read(bytes) // never fails (crypto/rand)
	return bytes
}

// NewToken returns a random token of 256 bits in base64url.
func NewToken() string { return base64.RawURLEncoding.EncodeToString(Random(32)) }

// HashToken returns the SHA-256 of a token, which the database holds in its place.
func HashToken(token string) []byte {
	hash := sha256.Sum256([]byte(token))
	return hash[:]
}

// SortedIDs returns the ids in the order in which their rows are locked.
func SortedIDs(ids []uuid.UUID) []uuid.UUID {
	if ids == nil {
		return nil
	}
	sorted := append([]uuid.UUID{}, ids...)
	slices.SortFunc(sorted, CompareIDs)
	return slices.Compact(sorted)
}

// CompareIDs compares ids byte by byte.
func CompareIDs(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }

// LowestID returns the lowest UUIDv7 of a time (RFC 9562 section 5.7). Before 1970, that is zero.
func LowestID(at time.Time) (id uuid.UUID) {
	binary.BigEndian.PutUint64(id[:8], uint64(max(0, at.UnixMilli()))<<16)
	return id
}
