package models

import "regexp"

// An API key is the prefix nas_, 30 random characters and a checksum of 6 characters.
const (
	keyPrefix         = "nas_"
	keyRandomLength   = 30
	keyChecksumLength = 6
	keyLength         = len(keyPrefix) + keyRandomLength + keyChecksumLength
)

// mask returns an API key as lists show it, such as "nas_...x7Qz".
func mask(lastFour string) string { return keyPrefix + "..." + lastFour }

// maskIfKnown is mask, or "" for a key that is not known.
func maskIfKnown(lastFour string) string {
	if lastFour == "" {
		return ""
	}
	return mask(lastFour)
}

// keyInText matches API keys in a text, and keys whose end is missing.
var keyInText = regexp.MustCompile(`(?i)` + keyPrefix + `[0-9a-z]+`)

// RedactKeys returns the last four characters of the first whole key in text. If text has no whole
// key, RedactKeys returns it with every part of a key reduced to at most four characters.
func RedactKeys(text string) string {
	for _, key := range keyInText.FindAllString(text, -1) {
		if len(key) >= keyLength {
			return key[len(key)-4:]
		}
	}
	return keyInText.ReplaceAllStringFunc(text, func(key string) string {
		return key[max(len(keyPrefix), len(key)-4):]
	})
}
