package main

import (
	"crypto/rand"
	"hash/crc32"
)

// newKey returns a well-formed API key that is in no database. Some characters are slightly more
// likely than others.
func newKey() string {
	const (
		alphabet       = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
		randomLength   = 30
		checksumLength = 6
	)
	var random [randomLength]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	key := []byte("nas_")
	for _, b := range random {
		key = append(key, alphabet[int(b)%len(alphabet)])
	}
	sum := crc32.ChecksumIEEE(key)
	var digits [checksumLength]byte
	for i := range digits {
		digits[checksumLength-1-i] = alphabet[sum%62]
		sum /= 62
	}
	return string(append(key, digits[:]...))
}
