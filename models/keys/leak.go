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

// LeakedText is a reported text or API key, and holds only hashes.
type LeakedText struct {
	hash   keyHash // of what was reported
	key    keyHash // of the key in it
	hasKey bool
	url    string
}

// LeakedTexts returns each key in a reported text, because people report the lines that they have
// found. It returns the text if it has no key.
func LeakedTexts(text string) (leaked []LeakedText) {
	for _, secret := range keyInLine.FindAllString(text, -1) {
		if checkKeySecret(secret) == nil {
			key := hashKey(secret)
			leaked = append(leaked, LeakedText{hash: key, key: key, hasKey: true})
		}
	}
	if leaked == nil {
		leaked = []LeakedText{{hash: hashKey(text)}}
	}
	return leaked
}

// NewLeakedText returns a reported text with the first key in it, and where it was found. The URL
// may be empty.
func NewLeakedText(text, url string) LeakedText {
	leaked := LeakedTexts(text)[0]
	leaked.hash, leaked.url = hashKey(text), cleanLeakURL(url)
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
