package value

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/schema"
	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"
)

// maxNameLength is the maximum length of a key's label and of the name of an agent or account, in
// Unicode code points.
const maxNameLength = 100

// CleanName trims a label or name and composes its characters (NFC), so that a search finds it
// whichever way its accents were typed. Unless the result has 1 to maxNameLength characters, and
// they are readable, the error is an [*InvalidError], whose message names the field by title.
func CleanName(field, title, value string) (string, error) {
	value = norm.NFC.String(strings.TrimSpace(value))
	switch length := utf8.RuneCountInString(value); {
	case !utf8.ValidString(value):
		return "", &InvalidError{field, title + " contains invalid characters."}
	case length == 0:
		return "", &InvalidError{field, "Enter a " + strings.ToLower(title) + "."}
	case length > maxNameLength:
		return "", &InvalidError{field, fmt.Sprintf("%s must be at most %d characters long. You entered %d.", title, maxNameLength, length)}
	case !readable(value):
		return "", &InvalidError{field, title + " must not contain line breaks, control characters or invisible characters."}
	}
	return value, nil
}

// readable reports whether people can tell a text from others by sight: it has a visible character,
// and none that is invisible or that changes the order of others.
func readable(text string) bool {
	visible := false
	runes := []rune(text)
	for i, r := range runes {
		switch {
		case !Hidden(r):
			visible = visible || unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S) && r != brailleBlank
		case i == 0 || Hidden(runes[i-1]) && !unicode.Is(unicode.Variation_Selector, runes[i-1]):
			return false
		case r == textStyle || r == emojiStyle:
			if runes[i-1] < utf8.RuneSelf || !unicode.In(runes[i-1], unicode.P, unicode.S) {
				return false
			}
		case r == zeroWidthNonJoiner || r == zeroWidthJoiner:
			if i+1 == len(runes) || !joins(runes[i-1]) || !joins(runes[i+1]) {
				return false
			}
		default:
			return false
		}
	}
	return visible
}

const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
	brailleBlank       = '\u2800' // a symbol without dots
	textStyle          = '\ufe0e' // the sign before it is not an emoji
	emojiStyle         = '\ufe0f' // it is an emoji
)

// Hidden reports whether a character is invisible, breaks lines or changes the order of others:
// control characters, the bidi controls, and the default-ignorable code points (Unicode, section
// 5.21).
func Hidden(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) &&
		!unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}

// joins reports whether a joiner beside the character can be seen: in words of scripts such as
// Arabic and Devanagari, and in emojis. Latin letters never join.
func joins(r rune) bool {
	return r >= utf8.RuneSelf && unicode.In(r, unicode.L, unicode.M, unicode.S) && !unicode.Is(unicode.Latin, r)
}

// apart matches characters that are written as several code points. Others are not composed: NFC
// turns the Kelvin sign into the letter K, which is another mailbox.
var apart = regexp.MustCompile(`\PM\pM+|[\x{1100}-\x{11ff}]{2,}`)

// ReadEmail returns an email as people read it: without spaces and invisible characters around it,
// with its accents composed, and with its domain in Unicode. Chromium sends domains in ASCII, and
// others send the input.
func ReadEmail(email string) string {
	email = strings.TrimFunc(email, func(r rune) bool { return unicode.IsSpace(r) || Hidden(r) && !unicode.IsControl(r) })
	email = apart.ReplaceAllStringFunc(email, norm.NFC.String)
	local, domain, ok := cutEmail(email)
	ascii, err := idna.Lookup.ToASCII(domain)
	if !ok || err != nil || strings.EqualFold(domain, ascii) && !strings.Contains(ascii, "xn--") {
		return email
	}
	if shown, err := idna.Lookup.ToUnicode(ascii); err == nil && readable(shown) {
		return local + "@" + shown
	}
	return email
}

// MailAddress returns an email for a mail server, with the domain in ASCII.
func MailAddress(email string) string {
	if local, domain, ok := cutEmail(email); ok {
		if ascii, err := idna.Lookup.ToASCII(domain); err == nil {
			return local + "@" + ascii
		}
	}
	return email
}

// maxDomain is more bytes than a domain in Unicode can have.
const maxDomain = 1024

// cutEmail returns the parts of an email before and after its last "@".
func cutEmail(email string) (local, domain string, ok bool) {
	at := strings.LastIndexByte(email, '@')
	if at < 0 || len(email)-at > maxDomain {
		return "", "", false
	}
	return email[:at], email[at+1:], true
}

// CleanEmail returns what [ReadEmail] does, or an [*InvalidError] for the field "email".
func CleanEmail(email string) (string, error) {
	email = ReadEmail(email)
	parsed, err := mail.ParseAddress(email)
	// RFC 5321 section 4.5.3.1.3.
	if err != nil || parsed.Address != email || len(MailAddress(email)) > 254 || !readable(email) {
		return "", &InvalidError{"email", "Enter an email address, such as name@example.com."}
	}
	return email, nil
}

// HashEmail returns the SHA-256 of an email in lower case and with the domain in ASCII, so that a
// mailbox has one hash. Queries for a user contain this hash and not the input of a sign-in form:
// the input may be a password, which must not reach the database.
func HashEmail(email string) []byte { return hashLowerCase(MailAddress(ReadEmail(email))) }

func hashLowerCase(email string) []byte {
	hash := sha256.Sum256([]byte(strings.Map(lowerCase, email)))
	return hash[:]
}

// EmailHashes returns the hashes that a user with an email may have: that of HashEmail and, for an
// email that is not ASCII, those of earlier releases, which hashed it as the browser sent it. The
// hash of the input is the first.
func EmailHashes(email string) (hashes [][]byte) {
	read := ReadEmail(email)
	for _, hash := range [][]byte{
		hashLowerCase(strings.TrimSpace(email)), HashEmail(email), hashLowerCase(read), hashLowerCase(MailAddress(takenApart(read))),
	} {
		if !slices.ContainsFunc(hashes, func(other []byte) bool { return bytes.Equal(other, hash) }) {
			hashes = append(hashes, hash)
		}
	}
	return hashes
}

// takenApart returns an email with accents as code points of their own.
func takenApart(email string) string {
	var all strings.Builder
	for _, r := range email {
		if parts := norm.NFD.String(string(r)); utf8.RuneCountInString(parts) > 1 {
			all.WriteString(parts)
		} else {
			all.WriteRune(r) // such as the Kelvin sign
		}
	}
	return all.String()
}

// StoredHash returns an expression for the hash that the user with an email has. If two users have
// one of its hashes, it is the hash of the input, as in earlier releases.
func StoredHash(email string) schema.QueryWithArgs {
	hashes := EmailHashes(email)
	if len(hashes) == 1 {
		return bun.SafeQuery("?", hashes[0])
	}
	return bun.SafeQuery("COALESCE((SELECT email_hash FROM users WHERE email_hash IN (?) ORDER BY email_hash = ? DESC LIMIT 1), ?)",
		bun.List(hashes), hashes[0], HashEmail(email))
}

// lowerCase is [unicode.ToLower] without the Kelvin sign and the dotted capital I: their lower case
// is an ASCII letter, which would make two different emails one.
func lowerCase(r rune) rune {
	lower := unicode.ToLower(r)
	if r >= utf8.RuneSelf && lower < utf8.RuneSelf {
		return r
	}
	return lower
}

// ReadCode returns a code, of an app or a recovery code, as the letters and ASCII digits that
// people type among spaces and dashes, with keyboards of any language.
func ReadCode(typed string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.In(r, unicode.L, unicode.Nd) {
			return -1
		}
		return asciiDigit(r)
	}, norm.NFKC.String(typed))
}

// asciiDigit returns the ASCII digit of the same value, or the character if it is not a digit.
// Unicode has digits in runs from 0 to 9.
func asciiDigit(r rune) rune {
	for _, run := range unicode.Nd.R16 {
		if rune(run.Lo) <= r && r <= rune(run.Hi) {
			return '0' + (r-rune(run.Lo))%10
		}
	}
	return r
}

// ReadSearch returns a search for labels, emails and addresses in the form of [CleanName], without
// what none of them has, and with API keys redacted.
func ReadSearch(text string) string {
	text = strings.Map(func(r rune) rune {
		if Hidden(r) && !slices.Contains([]rune{zeroWidthNonJoiner, zeroWidthJoiner, textStyle, emojiStyle}, r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return norm.NFC.String(strings.TrimPrefix(strings.TrimSpace(RedactKeys(text)), Mask("")))
}

// CleanUserAgent shortens a User-Agent header and removes the bytes that no database stores as
// text.
func CleanUserAgent(userAgent string) string {
	userAgent = userAgent[:min(maxUserAgent, len(userAgent))]
	return strings.ToValidUTF8(strings.ReplaceAll(userAgent, "\x00", ""), "")
}

// maxUserAgent is how many bytes of a User-Agent header are stored.
const maxUserAgent = 256

// maxNoteLength is the maximum length of a note or a reason, in Unicode code points.
const maxNoteLength = 500

// CleanNote trims a note or a reason. If the text is too long or has invisible characters other
// than line breaks, it returns an [*InvalidError].
func CleanNote(field, title, text string) (string, error) {
	text = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
	switch length := utf8.RuneCountInString(text); {
	case text == "":
		return "", nil
	case length > maxNoteLength:
		return "", &InvalidError{field, fmt.Sprintf("%s must be at most %d characters long. You entered %d.", title, maxNoteLength, length)}
	case !utf8.ValidString(text) || !readable(strings.ReplaceAll(text, "\n", " ")):
		return "", &InvalidError{field, title + " must not contain control characters or invisible characters."}
	}
	return text, nil
}

// WholeDays returns a duration in days or, if it is not whole days, in hours.
func WholeDays(d time.Duration) string {
	n, unit := int64(d/time.Hour), "hour"
	if d%Day == 0 {
		n, unit = int64(d/Day), "day"
	}
	if n != 1 {
		unit += "s"
	}
	return fmt.Sprintf("%d %s", n, unit)
}

// UnprovenDomain is the domain of the emails of users who lost their unproven ones. Nobody can
// receive mail there (RFC 2606, section 2).
const UnprovenDomain = "@unproven.invalid"
