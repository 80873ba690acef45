package keys

import (
	"encoding/hex"
	"regexp"
	"strings"
	"unicode/utf8"

	"portal/models/value"
)

// LeakedText is a reported text, which may be an API key, and holds only its hash.
type LeakedText struct {
	hash       keyHash
	wellFormed bool
	url        string
}

// NewLeakedText returns a reported text and where it was found; the URL may be empty.
func NewLeakedText(text, url string) LeakedText {
	return LeakedText{hash: hashKey(text), wellFormed: checkKeySecret(text) == nil, url: cleanLeakURL(url)}
}

// Hash returns the SHA-256 of the text.
func (t LeakedText) Hash() [32]byte { return t.hash }

// LeakOutcome is what became of a reported text.
type LeakOutcome string

// The outcomes.
const (
	LeakRevoked  LeakOutcome = "revoked"
	LeakInactive LeakOutcome = "inactive" // a key that was revoked or had expired
	LeakUnknown  LeakOutcome = "unknown"  // not a key of this portal
)

// maxLeakURL is how many characters of a reported URL are stored.
const maxLeakURL = 500

var percentEncoded = regexp.MustCompile(`(?:%[0-9A-Fa-f]{2})+`)

// percentDecode returns the bytes of a text that [percentEncoded] matches.
func percentDecode(text string) string {
	// Only hexadecimal digits are left.
	decoded, _ := hex.DecodeString(strings.ReplaceAll(text, "%", ""))
	return string(decoded)
}

// keyInURL matches an API key in a URL, and most of one, but no usual name that begins with nas_.
var keyInURL = regexp.MustCompile(`(?i)nas(?:_|%5f)[0-9a-z]{20,}`)

// cleanLeakURL masks API keys and removes what could mislead a reader: control characters, bidi
// controls and other invisible characters.
func cleanLeakURL(reported string) string {
	clean := withoutHidden(reported)
	// A key may be percent-encoded, also in a URL that is not well-formed.
	if decoded := withoutHidden(percentEncoded.ReplaceAllStringFunc(clean, percentDecode)); keyInURL.MatchString(decoded) {
		clean = decoded
	}
	clean = keyInURL.ReplaceAllStringFunc(clean, func(key string) string { return value.Mask(key[len(key)-4:]) })
	if utf8.RuneCountInString(clean) > maxLeakURL {
		clean = string([]rune(clean)[:maxLeakURL])
	}
	return clean
}

func withoutHidden(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if value.Hidden(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "")))
}
