package widget

import (
	"crypto"

	"portal/models/secret"
)

// PrivateKeys returns the private keys of an algorithm, that of the current secret first.
func PrivateKeys(keyring secret.Keyring, algorithm Algorithm) []crypto.Signer {
	return privateKeys(keyring, algorithm)
}
