package models

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
)

// The limits of a password's length in characters (OWASP ASVS 5.0, 6.2.1 and 6.2.9).
const (
	MinPasswordLength = 12
	MaxPasswordLength = 128
)

// checkPassword returns an [*InvalidError] for the field "password" if a new password breaks a
// rule. A password must not be one of words, such as the user's email and the account's name.
func checkPassword(password string, words ...string) error {
	switch length := utf8.RuneCountInString(password); {
	case length < MinPasswordLength:
		return &InvalidError{"password", fmt.Sprintf("Password must be at least %d characters long.", MinPasswordLength)}
	case length > MaxPasswordLength:
		return &InvalidError{"password", fmt.Sprintf("Password must be at most %d characters long.", MaxPasswordLength)}
	case !utf8.ValidString(password):
		return &InvalidError{"password", "Password contains invalid characters."}
	case isCommon(password, words...):
		return &InvalidError{"password", "This password is too easy to guess. Choose another, such as four unrelated words."}
	}
	return nil
}

// argon2Params are the parameters of argon2id (RFC 9106). Each stored hash contains its own, so
// that old hashes stay valid when the parameters of new ones change.
type argon2Params struct {
	memory  uint32 // KiB
	time    uint32 // passes
	threads uint8
}

// DefaultPasswordMemory is the memory in KiB that hashing one password takes. With one pass it is
// OWASP's first choice (Password Storage Cheat Sheet).
const DefaultPasswordMemory = 46 * 1024

const (
	argon2SaltLength = 16 // bytes
	argon2HashLength = 32 // bytes
	phcFormat        = "$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s"
)

// matches reports in constant time whether the password has this hash. The result outdated means
// that the hash does not have the parameters of new hashes. Call it only within exclusively.
func (h *passwordHasher) matches(password, phc string) (match, outdated bool, err error) {
	params, salt, want, err := decodePHC(phc)
	if err != nil {
		return false, false, err
	}
	got := derive(params, password, salt, uint32(len(want))) //nolint:gosec // the length of a stored hash
	return subtle.ConstantTimeCompare(got, want) == 1, params != h.params, nil
}

// hashNow returns the PHC string of a password. Call it only within exclusively.
func (h *passwordHasher) hashNow(password string) string {
	salt := make([]byte, argon2SaltLength)
	_, _ = rand.Read(salt) // never fails (crypto/rand)
	return encodePHC(h.params, salt, derive(h.params, password, salt, argon2HashLength))
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
