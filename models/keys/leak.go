package keys

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"portal/models/value"
)

// keyInLine matches what may be an API key.
var keyInLine = regexp.MustCompile(fmt.Sprintf(`%s[0-9A-Za-z]{%d}`, value.KeyPrefix, value.KeyLength-len(value.KeyPrefix)))

// LeakedText is a reported text, which may have an API key, and holds only hashes.
type LeakedText struct {
	hash   keyHash // of the text
	key    keyHash // of the key in it
	hasKey bool
	url    string
}

// NewLeakedText returns a reported text and where it was found; the URL may be empty. The key is
// the first in the text, because people report the line that they have found.
func NewLeakedText(text, url string) LeakedText {
	leaked := LeakedText{hash: hashKey(text), url: cleanLeakURL(url)}
	for _, key := range keyInLine.FindAllString(text, -1) {
		if checkKeySecret(key) == nil {
			leaked.key, leaked.hasKey = hashKey(key), true
			break
		}
	}
	return leaked
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
