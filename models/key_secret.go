package models

import (
	"crypto/rand"
	"crypto/sha256"
	"hash/crc32"
	"strings"
)

// keyAlphabet has the characters of a key, in the order of their values in its checksum.
const keyAlphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

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
