package keys

import (
	"crypto/rand"
	"crypto/sha256"
	"hash/crc32"
	"strings"

	"portal/models/value"
)

// keyAlphabet has the characters of a key, in the order of their values in its checksum.
const keyAlphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// keyHash is the SHA-256 of a key. Only the hash is stored.
type keyHash = [sha256.Size]byte

// newKeySecret returns a new key with about 178 random bits from crypto/rand. All characters are
// equally likely. No struct may hold the result.
func newKeySecret() string {
	key := make([]byte, 0, value.KeyLength)
	key = append(key, value.KeyPrefix...)
	// Bytes below the largest multiple of 62 map to the alphabet without bias, so the others,
	// about 1 in 32, are skipped.
	const fair = 256 - 256%len(keyAlphabet)
	buffer := make([]byte, 2*value.KeyRandomLength)
	for {
		_, _ = rand.Read(buffer) // never fails (crypto/rand)
		for _, b := range buffer {
			if int(b) >= fair {
				continue
			}
			key = append(key, keyAlphabet[int(b)%len(keyAlphabet)])
			if len(key) == len(value.KeyPrefix)+value.KeyRandomLength {
				sum := keyChecksum(string(key))
				return string(append(key, sum[:]...))
			}
		}
	}
}

// checkKeySecret returns [value.ErrKeyMissingPrefix] or [value.ErrKeyMalformed] if the text is not
// well-formed, without using the database.
func checkKeySecret(key string) error {
	if !strings.HasPrefix(key, value.KeyPrefix) {
		return value.ErrKeyMissingPrefix
	}
	if len(key) != value.KeyLength {
		return value.ErrKeyMalformed
	}
	for i := len(value.KeyPrefix); i < value.KeyLength; i++ {
		if !alphanumeric(key[i]) {
			return value.ErrKeyMalformed
		}
	}
	sum := keyChecksum(key[:value.KeyLength-value.KeyChecksumLength])
	if key[value.KeyLength-value.KeyChecksumLength:] != string(sum[:]) {
		return value.ErrKeyMalformed
	}
	return nil
}

func alphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

// keyChecksum returns the CRC-32 (IEEE) of body in base 62, the most significant digit first,
// padded with zeros.
func keyChecksum(body string) [value.KeyChecksumLength]byte {
	var digits [value.KeyChecksumLength]byte
	sum := crc32.ChecksumIEEE([]byte(body))
	for i := value.KeyChecksumLength - 1; i >= 0; i-- {
		digits[i] = keyAlphabet[sum%62]
		sum /= 62
	}
	return digits
}

func hashKey(key string) keyHash { return sha256.Sum256([]byte(key)) }
