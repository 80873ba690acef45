package modelstest

import (
	"crypto/rand"
	"crypto/sha256"
	"hash/crc32"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models/keys"
)

// Keys adds many active keys to an account, even above its limit, and returns their values.
func Keys(t testing.TB, url string, accountID uuid.UUID, n int) []string {
	t.Helper()
	db, secrets, rows := OpenDatabase(t, url), make([]string, n), make([]keys.Key, n)
	for i := range secrets {
		secrets[i] = newSecret()
		hash := sha256.Sum256([]byte(secrets[i]))
		rows[i] = keys.Key{
			ID: uuid.Must(uuid.NewV7()), AccountID: accountID, Label: "one of many", KeyHash: hash[:],
			Credential: keys.CredentialSecret, LastFour: secrets[i][len(secrets[i])-4:], FormID: uuid.New(), CreatedAt: time.Now(), Access: keys.AccessAgents,
		}
	}
	for chunk := range slices.Chunk(rows, 1000) {
		_, err := db.NewInsert().Model(&chunk).Exec(t.Context())
		Must(t, err)
	}
	return secrets
}

// newSecret returns a random key with its checksum.
func newSecret() string {
	key := "nas_" + rand.Text()[:26] + "test"
	// big.Int writes the lower-case letters before the upper-case ones.
	sum := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r ^ 0x20
		}
		return r
	}, big.NewInt(int64(crc32.ChecksumIEEE([]byte(key)))).Text(62))
	return key + strings.Repeat("0", 6-len(sum)) + sum
}
