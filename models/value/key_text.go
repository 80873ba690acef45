package value

import "regexp"

// An API key is the prefix nas_, 30 random characters and a checksum of 6 characters.
const (
	KeyPrefix         = "nas_"
	KeyRandomLength   = 30
	KeyChecksumLength = 6
	KeyLength         = len(KeyPrefix) + KeyRandomLength + KeyChecksumLength
)

// Mask returns an API key as lists show it, such as "nas_...x7Qz".
func Mask(lastFour string) string { return KeyPrefix + "..." + lastFour }

// MaskIfKnown is Mask, or "" for a key that is not known.
func MaskIfKnown(lastFour string) string {
	if lastFour == "" {
		return ""
	}
	return Mask(lastFour)
}

// keyInText matches API keys in a text, and keys whose end is missing.
var keyInText = regexp.MustCompile(`(?i)` + KeyPrefix + `[0-9a-z]+`)

// RedactKeys returns the last four characters of the first whole key in text. If text has no whole
// key, RedactKeys returns it with every part of a key reduced to at most four characters.
func RedactKeys(text string) string {
	for _, key := range keyInText.FindAllString(text, -1) {
		if len(key) >= KeyLength {
			return key[len(key)-4:]
		}
	}
	return keyInText.ReplaceAllStringFunc(text, func(key string) string {
		return key[max(len(KeyPrefix), len(key)-4):]
	})
}
