package password

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
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

// macOS types accents as characters of their own in places, and other systems do not.
func TestAccentsMatchInBothForms(t *testing.T) {
	t.Parallel()
	const composed, decomposed = "Gr\u00fc\u00dfe aus Z\u00fcrich 2026", "Gru\u0308\u00dfe aus Zu\u0308rich 2026"
	turn := newTurn(t)
	for name, hash := range map[string]string{
		"composed": turn.Hash(composed), "decomposed": turn.Hash(decomposed), "as it was typed": turn.hash(decomposed),
	} {
		for _, typed := range []string{composed, decomposed} {
			right, outdated, err := turn.Matches(typed, hash)
			if !right || outdated != (name == "as it was typed") || err != nil {
				t.Errorf("the hash of the password %s, against %+q: %t, outdated %t, %v", name, typed, right, outdated, err)
			}
		}
		if right, _, err := turn.Matches("Gru\u00dfe aus Zurich 2026", hash); right || err != nil {
			t.Errorf("without accents: %t, %v", right, err)
		}
	}
	for typed, want := range map[string]int{"correct horse": 1, "\u6771\u4eac": 1, composed: 2, decomposed: 2, "\u212bngstr\u00f6m A\u030a": 2, "\u2126": 2} {
		if got := len(forms(typed)); got != want {
			t.Errorf("%+q is hashed %d times, want %d", typed, got, want)
		}
	}
	if Problem("re\u0301sume\u0301s dix9") != "" || Problem("re\u0301sume\u0301s dix") == "" {
		t.Error("the length is not that of the composed characters")
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

// outcome describes the result that a request in the queue has received so far.
func (t *Turn) outcome() string {
	select {
	case err := <-t.granted:
		if err != nil {
			return "refused"
		}
		return "granted"
	default:
		return "waiting"
	}
}

func TestHashQueueIsFair(t *testing.T) {
	t.Parallel()
	flooding, other := Place{Client: "a network"}, Place{Client: "another network"}
	known := Place{Client: "a user", Known: true}
	h := NewHasher(DefaultMemory)
	check := func(name string, turn *Turn, want string) {
		t.Helper()
		if got := turn.outcome(); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	first := h.enter(flooding)
	check("the first", first, "granted")
	var flood []*Turn
	for range 1000 {
		flood = append(flood, h.enter(flooding))
	}
	if h.Waiting() != maxWaiting {
		t.Errorf("%d wait, want %d", h.Waiting(), maxWaiting)
	}
	check("the last of the flood", flood[999], "refused")
	stranger, second := h.enter(other), h.enter(other)
	user, again := h.enter(known), h.enter(known)
	first.Done()
	check("a known user", user, "granted")
	user.Done()
	check("the flood's first", flood[0], "granted")
	check("the known user's second", again, "waiting")
	check("another network", stranger, "waiting")
	flood[0].Done()
	check("the known user's second", again, "granted")
	again.Done()
	check("another network", stranger, "granted")
	stranger.Done()
	check("the flood's second", flood[1], "granted")
	flood[1].Done()
	check("its second", second, "granted")
	check("the flood's third", flood[2], "waiting")
}

func TestHashQueueForgetsCanceledRequests(t *testing.T) {
	t.Parallel()
	h := NewHasher(DefaultMemory)
	turn, err := h.Wait(t.Context(), Place{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := h.Wait(ctx, Place{}); !errors.Is(err, context.DeadlineExceeded) || h.Waiting() != 0 {
		t.Errorf("%v, %d wait", err, h.Waiting())
	}
	turn.Done()
	if h.busy {
		t.Error("the queue is still busy")
	}
}

func TestCommonPasswordsAreRefused(t *testing.T) {
	for _, password := range []string{
		"summer2026summer",
		"password1234", "Password-123!", "passwordpassword", "iloveyou1234", "letmein12345", "monkeymonkey",
		"123456789012", "098765432109", "abcdefghijkl", "aaaaaaaaaaaa", "abababababab", "qwertyuiop123", "trustno1trustno1",
		"password password", "letmein letmein1", "letmein1-letmein2", "pass-word-pass-word", "p.a.s.s.w.o.r.d", "Pass Word_123",
		"1-2-3-4-5-6-7-8", "12 12 12 12 12", "ada lovelace 1843", "analytical_engines",
		"ada.lovelace", "ada.lovelace2024", "ada.lovelace@example.com", "Analytical Engines!",
	} {
		if Problem(password, "Ada.Lovelace@example.com", "Analytical Engines") == "" {
			t.Errorf("%q is accepted", password)
		}
	}
}

// Nobody can type these in a form.
func TestPasswordsOfSeveralLinesAreRefused(t *testing.T) {
	for _, password := range []string{"correct horse\nbattery staple", "correct horse battery\r", "correct horse\x00 battery"} {
		if Problem(password) == "" {
			t.Errorf("%q is accepted", password)
		}
	}
}

func TestUncommonPasswordsAreAccepted(t *testing.T) {
	for _, password := range []string{
		"correct horse battery staple", "correct-horse-battery", "Kei5-vohz-Aij3", "ünïcödé wörds fïne", "839201746552", "    spaces    x", "!@#$%^&*()_a", "word-passing-6", "8392-0174-6552",
	} {
		if problem := Problem(password, "ada@example.com", "Acme"); problem != "" {
			t.Errorf("%q: %s", password, problem)
		}
	}
}
