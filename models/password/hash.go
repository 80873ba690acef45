// Package password checks the strength of new passwords and hashes passwords one at a time, in a
// fair queue. It imports nothing of ours.
package password

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"
)

// DefaultMemory is the memory in KiB that hashing one password takes. With one pass it is OWASP's
// first choice (Password Storage Cheat Sheet).
const DefaultMemory = 46 * 1024

const (
	saltLength = 16 // bytes
	hashLength = 32 // bytes
	phcFormat  = "$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s"
)

// AbsentEnd is the end of every hash that [Hasher.Absent] has returned: its salt and hash are
// zeros. The beginning may have the parameters of an older release.
var AbsentEnd = "$" + base64.RawStdEncoding.EncodeToString(make([]byte, saltLength)) +
	"$" + base64.RawStdEncoding.EncodeToString(make([]byte, hashLength))

// Absent returns the hash of a user without a password: no password has it. For an unknown user,
// the password is compared with this hash too, so that the response takes as long as for a known
// user.
func (h *Hasher) Absent() string {
	return encodePHC(h.params, make([]byte, saltLength), make([]byte, hashLength))
}

// forms returns the texts whose hash a typed password may have. The first is the one that new
// hashes have. Hashes of an older release are of what was typed at the time, so a second one
// follows if accents can be written differently. The number does not depend on the user.
func forms(typed string) []string {
	composed, decomposed := norm.NFC.String(typed), norm.NFD.String(typed)
	switch {
	case typed != composed:
		return []string{composed, typed}
	case composed != decomposed:
		return []string{composed, decomposed}
	}
	return []string{composed}
}

// Hash returns the PHC string of a password with a new salt. Passwords that differ only in how
// accents are written have the same hash.
func (t *Turn) Hash(password string) string { return t.hash(forms(password)[0]) }

func (t *Turn) hash(password string) string {
	salt := make([]byte, saltLength)
	_, _ = rand.Read(salt) // never fails (crypto/rand)
	params := t.hasher.params
	return encodePHC(params, salt, derive(params, password, salt, hashLength))
}

// Matches reports in constant time whether the password has this hash. The result outdated means
// that the hash does not have the parameters of new hashes, or is not of the form that they are of.
func (t *Turn) Matches(password, phc string) (match, outdated bool, err error) {
	params, salt, want, err := decodePHC(phc)
	if err != nil {
		return false, false, err
	}
	for i, form := range forms(password) {
		got := derive(params, form, salt, uint32(len(want))) //nolint:gosec // the length of a stored hash
		if subtle.ConstantTimeCompare(got, want) == 1 {
			return true, i > 0 || params != t.hasher.params, nil
		}
	}
	return false, false, nil
}

// argon2Params are the parameters of argon2id (RFC 9106). Each stored hash contains its own, so
// that old hashes stay valid when the parameters of new ones change.
type argon2Params struct {
	memory  uint32 // KiB
	time    uint32 // passes
	threads uint8
}

func derive(p argon2Params, password string, salt []byte, length uint32) []byte {
	return argon2.IDKey([]byte(password), salt, p.time, p.memory, p.threads, length)
}

func encodePHC(p argon2Params, salt, hash []byte) string {
	return fmt.Sprintf(phcFormat, argon2.Version, p.memory, p.time, p.threads,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(hash))
}

func decodePHC(phc string) (p argon2Params, salt, hash []byte, err error) {
	parts := strings.Split(phc, "$")
	if len(parts) != 6 || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return p, nil, nil, errors.New("the stored password hash is not argon2id")
	}
	_, err = fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &p.memory, &p.time, &p.threads)
	if err != nil || p.time == 0 || p.threads == 0 { // argon2 panics on zero
		return p, nil, nil, errors.New("the stored password hash has no parameters")
	}
	if salt, err = base64.RawStdEncoding.DecodeString(parts[4]); err == nil {
		hash, err = base64.RawStdEncoding.DecodeString(parts[5])
	}
	if err != nil || len(hash) == 0 {
		return p, nil, nil, errors.New("the stored password hash is damaged")
	}
	return p, salt, hash, nil
}
