package keys

import (
	"errors"
	"math"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"portal/models/value"
)

// The checksums come from Python's zlib.crc32.
func TestChecksumOfKnownKeys(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"nas_000000000000000000000000000000": "1rjTT1",
		"nas_zzzzzzzzzzzzzzzzzzzzzzzzzzzzzz": "4YgeBw",
		"nas_0123456789ABCDEFGHIJKLMNOPQRST": "49UbFO",
		"nas_abcdefghijklmnopqrstuvwxyz0123": "2gDnvB",
		// Small checksums are padded with zeros. The last one is nearly the largest,
		// 4294966609.
		"nas_Zero00000000000000000000408132": "0000wZ",
		"nas_Zero00000000000000000014683087": "00000Q",
		"nas_Zero00000000000000000004718458": "4gfF0z",
	} {
		if sum := keyChecksum(body); string(sum[:]) != want {
			t.Errorf("checksum of %s is %s, not %s", body, sum, want)
		}
		if err := checkKeySecret(body + want); err != nil {
			t.Errorf("%s%s: %v", body, want, err)
		}
	}
}

// Keys are well-formed and unique. All characters are equally likely, overall and at each position.
// A deviation of eight standard deviations does not happen by chance. With plain bytes modulo 62,
// the first eight characters would deviate by twenty.
func TestNewKeysHaveNoBias(t *testing.T) {
	t.Parallel()
	const keys = 20_000
	shape, seen := regexp.MustCompile(`^nas_[0-9A-Za-z]{36}$`), map[string]bool{}
	var total [256]int
	var at [value.KeyRandomLength][256]int
	for range keys {
		key := newKeySecret()
		if err := checkKeySecret(key); err != nil || !shape.MatchString(key) || seen[key] {
			t.Fatalf("%q: %v, generated before: %t", key, err, seen[key])
		}
		seen[key] = true
		random := key[len(value.KeyPrefix):][:value.KeyRandomLength]
		for i := range random {
			total[random[i]]++
			at[i][random[i]]++
		}
	}
	check := func(where string, counts [256]int, n float64) {
		p := 1 / float64(len(keyAlphabet))
		mean, deviation := n*p, math.Sqrt(n*p*(1-p))
		for i := range len(keyAlphabet) {
			if c := keyAlphabet[i]; math.Abs(float64(counts[c])-mean) > 8*deviation {
				t.Errorf("%s: %q occurs %d times, want %.0f", where, c, counts[c], mean)
			}
		}
	}
	check("all positions", total, keys*value.KeyRandomLength)
	for i := range at {
		check("position "+string(rune('A'+i)), at[i], keys)
	}
}

func TestCheckOfKeys(t *testing.T) {
	t.Parallel()
	const key = "nas_0123456789ABCDEFGHIJKLMNOPQRST49UbFO"
	for name, test := range map[string]struct {
		key  string
		want error
	}{
		"whole":                   {key, nil},
		"empty":                   {"", value.ErrKeyMissingPrefix},
		"without its prefix":      {strings.TrimPrefix(key, "nas_"), value.ErrKeyMissingPrefix},
		"another prefix":          {"sk_" + key[4:], value.ErrKeyMissingPrefix},
		"prefix in capitals":      {"NAS_" + key[4:], value.ErrKeyMissingPrefix},
		"prefix cut short":        {"nas", value.ErrKeyMissingPrefix},
		"space before":            {" " + key, value.ErrKeyMissingPrefix},
		"prefix alone":            {"nas_", value.ErrKeyMalformed},
		"last character missing":  {key[:len(key)-1], value.ErrKeyMalformed},
		"checksum missing":        {key[:34], value.ErrKeyMalformed},
		"one character too many":  {key + "0", value.ErrKeyMalformed},
		"space after":             {key + " ", value.ErrKeyMalformed},
		"line break after":        {key + "\n", value.ErrKeyMalformed},
		"prefix twice":            {"nas_" + key, value.ErrKeyMalformed},
		"masked":                  {"nas_...UbFO", value.ErrKeyMalformed},
		"in capitals":             {"nas_" + strings.ToUpper(key[4:]), value.ErrKeyMalformed},
		"two characters swapped":  {"nas_1023456789ABCDEFGHIJKLMNOPQRST49UbFO", value.ErrKeyMalformed},
		"a hyphen":                {"nas_-123456789ABCDEFGHIJKLMNOPQRST49UbFO", value.ErrKeyMalformed},
		"a wide letter, 40 bytes": {"nas_" + "é" + key[6:], value.ErrKeyMalformed},
		"a NUL":                   {key[:39] + "\x00", value.ErrKeyMalformed},
	} {
		if err := checkKeySecret(test.key); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
}

func TestMistypedKeysAreMalformed(t *testing.T) {
	t.Parallel()
	body := rapid.StringMatching(`nas_[0-9A-Za-z]{30}`)
	generated := rapid.Custom(func(t *rapid.T) string {
		body := body.Draw(t, "body")
		sum := keyChecksum(body)
		return body + string(sum[:])
	})
	position := rapid.IntRange(len(value.KeyPrefix), value.KeyLength-1)

	t.Run("one character changed", rapid.MakeCheck(func(t *rapid.T) {
		key, at := []byte(generated.Draw(t, "key")), position.Draw(t, "position")
		was := key[at]
		// Typing errors are letters and digits, but every other byte must be refused too.
		key[at] = rapid.OneOf(rapid.SampledFrom([]byte(keyAlphabet)), rapid.Byte()).
			Filter(func(c byte) bool { return c != was }).Draw(t, "character")
		if err := checkKeySecret(string(key)); !errors.Is(err, value.ErrKeyMalformed) {
			t.Fatalf("%s: %v", key, err)
		}
	}))
	t.Run("cut short", rapid.MakeCheck(func(t *rapid.T) {
		key := generated.Draw(t, "key")[:position.Draw(t, "length")]
		if err := checkKeySecret(key); !errors.Is(err, value.ErrKeyMalformed) {
			t.Fatalf("%s: %v", key, err)
		}
	}))
	t.Run("one character missing", rapid.MakeCheck(func(t *rapid.T) {
		key, at := generated.Draw(t, "key"), position.Draw(t, "position")
		if err := checkKeySecret(key[:at] + key[at+1:]); !errors.Is(err, value.ErrKeyMalformed) {
			t.Fatalf("%s: %v", key, err)
		}
	}))
	t.Run("neighbors swapped", rapid.MakeCheck(func(t *rapid.T) {
		key := []byte(generated.Draw(t, "key"))
		// A CRC finds every error this short in its input, which is the key without the
		// checksum.
		at := rapid.IntRange(len(value.KeyPrefix), len(value.KeyPrefix)+value.KeyRandomLength-2).
			Filter(func(i int) bool { return key[i] != key[i+1] }).Draw(t, "position")
		key[at], key[at+1] = key[at+1], key[at]
		if err := checkKeySecret(string(key)); !errors.Is(err, value.ErrKeyMalformed) {
			t.Fatalf("%s: %v", key, err)
		}
	}))
	t.Run("any other text is refused without a panic", rapid.MakeCheck(func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`nas_.*`)).Draw(t, "text")
		if err := checkKeySecret(text); err == nil {
			t.Fatalf("%q is accepted as a key", text)
		}
	}))
}

func TestRedactKeysLeavesTheLastFourCharacters(t *testing.T) {
	t.Parallel()
	const key = "nas_0123456789ABCDEFGHIJKLMNOPQRST49UbFO"
	for text, want := range map[string]string{
		"":                               "",
		"production":                     "production",
		"nas_":                           "nas_",
		"nas_...UbFO":                    "nas_...UbFO",
		"nas_a":                          "a",
		"nas_0123456":                    "3456",
		key[:39]:                         "9UbF",
		key:                              "UbFO",
		strings.ToUpper(key):             "UBFO",
		"NAS_API_KEY=" + key:             "UbFO",
		"Authorization: Bearer " + key:   "UbFO",
		"\"" + key + "\" nas_0123 other": "UbFO",
		"KEY=nas_0123456; echo":          "KEY=3456; echo",
	} {
		if redacted := value.RedactKeys(text); redacted != want {
			t.Errorf("RedactKeys(%q) = %q, want %q", text, redacted, want)
		}
	}
}
