package password

import (
	"strings"
	"testing"
)

func newTurn(t *testing.T) *Turn {
	t.Helper()
	turn, err := NewHasher(DefaultMemory).Wait(t.Context(), Place{})
	if err != nil {
		t.Fatal(err)
	}
	return turn
}

func TestPasswordHashIsAPHCString(t *testing.T) {
	t.Parallel()
	const password = "correct horse battery staple"
	turn := newTurn(t)
	var hashes []string
	for range 2 {
		hash := turn.Hash(password)
		if !strings.HasPrefix(hash, "$argon2id$v=19$m=47104,t=1,p=1$") || strings.Contains(hash, password) {
			t.Errorf("the hash is %s", hash)
		}
		if right, _, err := turn.Matches(password, hash); !right || err != nil {
			t.Errorf("the password does not match its hash: %v", err)
		}
		hashes = append(hashes, hash)
	}
	if hashes[0] == hashes[1] {
		t.Error("two hashes of one password are the same: no random salt")
	}
	if right, _, err := turn.Matches("correct horse battery stapler", hashes[0]); right || err != nil {
		t.Errorf("another password: %t, %v", right, err)
	}
}

// Hashes with old parameters stay valid. This one is from the reference implementation.
func TestPasswordHashWithOtherParameters(t *testing.T) {
	t.Parallel()
	const hash = "$argon2id$v=19$m=64,t=2,p=2$c29tZXNhbHQ$NQrDciL0Nsy1wJcvHr079rlYvyBxhBNi"
	turn := newTurn(t)
	if right, _, err := turn.Matches("password", hash); !right || err != nil {
		t.Errorf("the right password: %t, %v", right, err)
	}
	if right, _, err := turn.Matches("Password", hash); right || err != nil {
		t.Errorf("a wrong password: %t, %v", right, err)
	}
}

func TestDamagedPasswordHash(t *testing.T) {
	t.Parallel()
	turn := newTurn(t)
	for name, hash := range map[string]string{
		"empty":              "",
		"not a PHC string":   "5f4dcc3b5aa765d61d8327deb882cf99",
		"bcrypt":             "$2b$12$R9h/cIPz0gi.URNNX3kh2OPST9/PgBkqquzi.Ss7KIUgO2t0jWMUW",
		"argon2i":            "$argon2i$v=19$m=8,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$MDEyMzQ1Njc4OWFiY2RlZg",
		"another version":    "$argon2id$v=16$m=8,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$MDEyMzQ1Njc4OWFiY2RlZg",
		"no parameters":      "$argon2id$v=19$$MDEyMzQ1Njc4OWFiY2RlZg$MDEyMzQ1Njc4OWFiY2RlZg",
		"no passes":          "$argon2id$v=19$m=8,t=0,p=1$MDEyMzQ1Njc4OWFiY2RlZg$MDEyMzQ1Njc4OWFiY2RlZg",
		"no threads":         "$argon2id$v=19$m=8,t=1,p=0$MDEyMzQ1Njc4OWFiY2RlZg$MDEyMzQ1Njc4OWFiY2RlZg",
		"salt not base64":    "$argon2id$v=19$m=8,t=1,p=1$!$MDEyMzQ1Njc4OWFiY2RlZg",
		"hash not base64":    "$argon2id$v=19$m=8,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$!",
		"hash missing":       "$argon2id$v=19$m=8,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$",
		"something trailing": "$argon2id$v=19$m=8,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$MDEyMzQ1Njc4OWFiY2RlZg$",
	} {
		if right, _, err := turn.Matches("password", hash); right || err == nil {
			t.Errorf("%s: %t, %v", name, right, err)
		}
	}
}
