package models

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"errors"
)

// errSealed means that no key of the portal's secrets opens a sealed value.
var errSealed = errors.New("the value is encrypted with a key that PORTAL_SECRET and PORTAL_SECRET_PREVIOUS do not yield")

// sealer encrypts values for the database with AES-256-GCM. Its zero value has no keys and can
// neither encrypt nor decrypt.
type sealer struct{ keys []sealingKey } // the current one first

type sealingKey struct {
	id   []byte // stored beside a sealed value
	aead cipher.AEAD
}

// sealingKeyID is the number of bytes of a key's id.
const sealingKeyID = 8

// newSealer returns the sealer of a keyring. The zero keyring has no keys.
func newSealer(keyring Keyring) (sealer, error) {
	var s sealer
	if keyring.IsZero() {
		return s, nil
	}
	for _, key := range keyring.derive("portal authenticator secret v1", 32) {
		block, err := aes.NewCipher(key)
		if err != nil {
			return sealer{}, err
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return sealer{}, err
		}
		id := sha256.Sum256(append([]byte("key id "), key...))
		s.keys = append(s.keys, sealingKey{id[:sealingKeyID], aead})
	}
	return s, nil
}

// seal encrypts a value for one owner, such as a user, and returns the id of the key. The value can
// be opened only for the same owner.
func (s sealer) seal(value, owner []byte) (sealed, keyID []byte, err error) {
	if len(s.keys) == 0 {
		return nil, nil, errSealed
	}
	key := s.keys[0]
	return key.aead.Seal(nil, nil, value, owner), key.id, nil //nolint:gosec // the cipher adds a random nonce
}

// open decrypts a sealed value of an owner.
func (s sealer) open(sealed, keyID, owner []byte) ([]byte, error) {
	for _, key := range s.keys {
		if string(key.id) == string(keyID) {
			return key.aead.Open(nil, nil, sealed, owner)
		}
	}
	return nil, errSealed
}

// previousIDs returns the ids of the keys that only open.
func (s sealer) previousIDs() (ids [][]byte) {
	for _, key := range s.keys[1:] {
		ids = append(ids, key.id)
	}
	return ids
}

// random returns n random bytes.
func random(n int) []byte {
	bytes := make([]byte, n)
	_, _ = rand.Read(bytes) // never fails (crypto/rand)
	return bytes
}
