package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"errors"
)

var errSealed = errors.New("the value is encrypted with a key that PORTAL_SECRET and PORTAL_SECRET_PREVIOUS do not yield")

// Sealer encrypts values for the database with AES-256-GCM. Its zero value has no keys and can
// neither encrypt nor decrypt.
type Sealer struct{ keys []sealingKey } // the current one first

type sealingKey struct {
	id   []byte // stored beside a sealed value
	aead cipher.AEAD
}

// keyIDLength is the number of bytes of a key's id.
const keyIDLength = 8

// NewSealer returns the sealer of a keyring. The zero keyring has no keys.
func NewSealer(keyring Keyring) (Sealer, error) {
	var s Sealer
	if keyring.IsZero() {
		return s, nil
	}
	for _, key := range keyring.Derive("portal authenticator secret v1", 32) {
		block, err := aes.NewCipher(key)
		if err != nil {
			return Sealer{}, err
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return Sealer{}, err
		}
		id := sha256.Sum256(append([]byte("key id "), key...))
		s.keys = append(s.keys, sealingKey{id[:keyIDLength], aead})
	}
	return s, nil
}

// Seal encrypts a value that can be opened only for the same owner, such as a user, and returns the
// id of the key.
func (s Sealer) Seal(value, owner []byte) (sealed, keyID []byte, err error) {
	if len(s.keys) == 0 {
		return nil, nil, errSealed
	}
	key := s.keys[0]
	return key.aead.Seal(nil, nil, value, owner), key.id, nil //nolint:gosec // the cipher adds a random nonce
}

// Open decrypts a sealed value of an owner.
func (s Sealer) Open(sealed, keyID, owner []byte) ([]byte, error) {
	for _, key := range s.keys {
		if string(key.id) == string(keyID) {
			return key.aead.Open(nil, nil, sealed, owner)
		}
	}
	return nil, errSealed
}

// PreviousIDs returns the ids of the keys that only open.
func (s Sealer) PreviousIDs() (ids [][]byte) {
	for _, key := range s.keys[min(1, len(s.keys)):] {
		ids = append(ids, key.id)
	}
	return ids
}
