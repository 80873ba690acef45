package models

import (
	"crypto/rand"
	"crypto/sha256"
	"hash/crc32"
	"regexp"
	"strings"
)

// An API key is the prefix nas_, 30 random characters and a checksum of 6 characters.
const (
	keyRandomLength   = 30
	keyChecksumLength = 6
	keyLength         = len(keyPrefix) + keyRandomLength + keyChecksumLength

	keyAlphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// keyHash is the SHA-256 of a key. Only the hash is stored.
type keyHash = [sha256.Size]byte

// newKeySecret returns a new key with about 178 random bits from crypto/rand. All characters are
// equally likely. No struct may hold the result.
func newKeySecret() string {
	key := make([]byte, 0, keyLength)
	key = append(key, keyPrefix...)
	// Bytes below the largest multiple of 62 map to the alphabet without bias, so the others,
	// about 1 in 32, are skipped.
	const fair = 256 - 256%len(keyAlphabet)
	buffer := make([]byte, 2*keyRandomLength)
	for {
		_, _ = rand.Read(buffer) // never fails (crypto/rand)
		for _, b := range buffer {
			if int(b) >= fair {
				continue
			}
			key = append(key, keyAlphabet[int(b)%len(keyAlphabet)])
			if len(key) == len(keyPrefix)+keyRandomLength {
				sum := keyChecksum(string(key))
				return string(append(key, sum[:]...))
			}
		}
	}
}

// checkKeySecret returns [ErrKeyMissingPrefix] or [ErrKeyMalformed] if the text is not well-formed,
// without using the database.
func checkKeySecret(key string) error {
	if !strings.HasPrefix(key, keyPrefix) {
		return ErrKeyMissingPrefix
	}
	if len(key) != keyLength {
		return ErrKeyMalformed
	}
	for i := len(keyPrefix); i < keyLength; i++ {
		if !alphanumeric(key[i]) {
			return ErrKeyMalformed
		}
	}
	sum := keyChecksum(key[:keyLength-keyChecksumLength])
	if key[keyLength-keyChecksumLength:] != string(sum[:]) {
		return ErrKeyMalformed
	}
	return nil
}

// keyInText matches API keys in a text, and keys whose end is missing.
var keyInText = regexp.MustCompile(`(?i)` + keyPrefix + `[0-9a-z]+`)

// RedactKeys returns the last four characters of the first whole key in text. If text has no whole
// key, RedactKeys returns it with every part of a key reduced to at most four characters.
func RedactKeys(text string) string {
	for _, key := range keyInText.FindAllString(text, -1) {
		if len(key) >= keyLength {
			return key[len(key)-4:]
		}
	}
	return keyInText.ReplaceAllStringFunc(text, func(key string) string {
		return key[max(len(keyPrefix), len(key)-4):]
	})
}

func alphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

// keyChecksum returns the CRC-32 (IEEE) of body in base 62, the most significant digit first,
// padded with zeros.
func keyChecksum(body string) [keyChecksumLength]byte {
	var digits [keyChecksumLength]byte
	sum := crc32.ChecksumIEEE([]byte(body))
	for i := keyChecksumLength - 1; i >= 0; i-- {
		digits[i] = keyAlphabet[sum%62]
		sum /= 62
	}
	return digits
}

func hashKey(key string) keyHash { return sha256.Sum256([]byte(key)) }
