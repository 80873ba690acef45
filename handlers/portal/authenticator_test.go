package portal_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"net/url"
	"testing"

	"github.com/go-webauthn/webauthn/protocol/webauthncbor"

	"portal/models/modelstest"
)

// authenticator has one passkey, and gives the answers of a browser.
type authenticator struct {
	t      *testing.T
	key    *ecdsa.PrivateKey
	id     []byte
	user   string // handle, in base64url
	copied bool   // to other devices
	count  uint32

	format    string         // of the attestation
	statement map[string]any // of the attestation
}

func newAuthenticator(t *testing.T) *authenticator {
	t.Helper()
	key := modelstest.Value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	id := make([]byte, 16)
	_, _ = rand.Read(id)
	return &authenticator{t: t, key: key, id: id, format: "none", statement: map[string]any{}}
}

// data returns the authenticator data with this end.
func (a *authenticator) data(end []byte) []byte {
	const present, verified, canBeCopied, isCopied, attested = 1, 4, 8, 16, 64
	hash := sha256.Sum256([]byte("portal.test"))
	flags := byte(present | verified)
	if a.copied {
		flags |= canBeCopied | isCopied
	}
	if end != nil {
		flags |= attested
	}
	return append(binary.BigEndian.AppendUint32(append(hash[:], flags), a.count), end...)
}

// options returns the challenge and the handle of the user in the options at a path.
func (a *authenticator) options(v *visitor, path string) (challenge, user string) {
	a.t.Helper()
	var options struct {
		PublicKey struct {
			Challenge string
			User      struct{ ID string }
		}
	}
	modelstest.Must(a.t, json.Unmarshal([]byte(v.post(path, nil).is(200).body), &options))
	return options.PublicKey.Challenge, options.PublicKey.User.ID
}

func (a *authenticator) answer(kind, challenge string, response map[string]any) url.Values {
	clientData, err := json.Marshal(map[string]any{"type": "webauthn." + kind, "challenge": challenge, "origin": "https://portal.test"})
	modelstest.Must(a.t, err)
	response["clientDataJSON"] = base64url(clientData)
	if data, ok := response["authenticatorData"].([]byte); ok {
		hash := sha256.Sum256(clientData)
		signed := sha256.Sum256(append(data, hash[:]...))
		signature := modelstest.Value(ecdsa.SignASN1(rand.Reader, a.key, signed[:]))(a.t)
		response["authenticatorData"], response["signature"] = base64url(data), base64url(signature)
	}
	text, err := json.Marshal(map[string]any{"id": base64url(a.id), "rawId": base64url(a.id), "type": "public-key", "response": response})
	modelstest.Must(a.t, err)
	return url.Values{"credential": {string(text)}}
}

func base64url(value []byte) string { return base64.RawURLEncoding.EncodeToString(value) }

// create creates the passkey.
func (a *authenticator) create(v *visitor) answer {
	a.t.Helper()
	challenge, user := a.options(v, "/account/passkeys/options")
	a.user = user
	point := modelstest.Value(a.key.PublicKey.Bytes())(a.t) // 4, x, y
	key := modelstest.Value(webauthncbor.Marshal(map[int]any{1: 2, 3: -7, -1: 1, -2: point[1:33], -3: point[33:]}))(a.t)
	end := append(make([]byte, 16), 0, byte(len(a.id))) // no model
	end = append(append(end, a.id...), key...)
	object, err := webauthncbor.Marshal(map[string]any{"fmt": a.format, "attStmt": a.statement, "authData": a.data(end)})
	modelstest.Must(a.t, err)
	return v.post("/account/passkeys", a.answer("create", challenge, map[string]any{"attestationObject": base64url(object)}))
}

// signIn uses the passkey.
func (a *authenticator) signIn(v *visitor) answer {
	a.t.Helper()
	challenge, _ := a.options(v, "/login/passkey/options")
	response := map[string]any{"authenticatorData": a.data(nil)}
	if a.user != "" {
		response["userHandle"] = a.user
	}
	return v.post("/login/passkey", a.answer("get", challenge, response))
}
