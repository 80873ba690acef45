package keyset

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
)

// ParseScanner returns the keys for ECDSA with P-256 in the list that GitHub publishes for its
// secret scanning, by their identifiers, and why other entries are not used. It errs if there is no
// key. A key that is published verifies, whether it is the current one or not.
func ParseScanner(document []byte) (keys map[string]*ecdsa.PublicKey, skipped []string, err error) {
	var list struct {
		Keys []json.RawMessage `json:"public_keys"`
	}
	if err := json.Unmarshal(withoutMark(document), &list); err != nil {
		return nil, nil, err
	}
	keys, left := map[string]*ecdsa.PublicKey{}, skips{}
	for i, text := range list.Keys {
		found, err := readEntry(text)
		id, _ := found["key_identifier"].(string)
		var key *ecdsa.PublicKey
		if err == nil {
			key, err = found.scannerKey()
		}
		switch {
		case err != nil:
			left.add(i, id, err)
		case id == "":
			left.add(i, "", errors.New("it has no key_identifier"))
		default:
			keys[id] = key
		}
	}
	if len(keys) == 0 {
		return nil, nil, noKeys(left.list())
	}
	return keys, left.list(), nil
}

func (e entry) scannerKey() (*ecdsa.PublicKey, error) {
	text, _ := e["key"].(string)
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("key is not PEM")
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("it is not for ECDSA with P-256")
	}
	return key, nil
}
