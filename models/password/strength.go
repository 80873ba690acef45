package password

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/ccojocar/zxcvbn-go/data"
)

// The limits of a password's length in characters (OWASP ASVS 5.0, 6.2.1 and 6.2.9).
const (
	MinLength = 12
	MaxLength = 128
)

// Problem returns a message for the user if a new password breaks a rule, or "". A password must
// not be one of words, such as the user's email and the account's name.
func Problem(password string, words ...string) string {
	password = forms(password)[0]
	switch length := utf8.RuneCountInString(password); {
	case length < MinLength:
		return fmt.Sprintf("Password must be at least %d characters long.", MinLength)
	case length > MaxLength:
		return fmt.Sprintf("Password must be at most %d characters long.", MaxLength)
	case !utf8.ValidString(password) || strings.ContainsAny(password, "\r\n\x00"): // no form sends these
		return "Password contains invalid characters."
	case isCommon(strings.ToLower(password), words):
		return "This password is too easy to guess. Choose another, such as four unrelated words."
	}
	return ""
}

// isCommon reports whether a password in lower case is among the first guesses of an attacker
// (OWASP ASVS 5.0, 6.2.4 and 6.2.11): a common password or one of words, also if repeated, with
// separators, or between digits and punctuation, or a sequence such as abcdefghijkl.
//
// The zxcvbn library for Go scores more patterns. But it parses its dictionaries at the start of
// the program, which takes 135 ms, scores abababababab as strong, and needs a second for 128 random
// characters.
func isCommon(password string, words []string) bool {
	parts := strings.FieldsFunc(password, isSeparator)
	joined := strings.Join(parts, "")
	for i, part := range parts {
		parts[i] = strings.TrimFunc(part, unicode.IsDigit)
	}
	if isSequence(password) || len(joined) >= len(password)/2 && isSequence(joined) {
		return true
	}
	core := strings.TrimFunc(password, func(r rune) bool { return !unicode.IsLetter(r) })
	letters := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) {
			return r
		}
		return -1
	}, password)
	return slices.ContainsFunc([]string{password, core, joined, letters, strings.Join(parts, "")}, func(guess string) bool {
		return isGuess(guess, words) || isGuess(repeatedUnit(guess), words)
	})
}

// isSequence reports whether s repeats at most three bytes or counts up or down.
func isSequence(s string) bool { return s != "" && (len(repeatedUnit(s)) < 4 || isRun(s)) }

// isGuess reports whether text is a common password or one of words, without their separators too.
func isGuess(text string, words []string) bool {
	return commonPasswords()[text] || text != "" && slices.ContainsFunc(words, func(word string) bool {
		word = strings.ToLower(forms(word)[0])
		local, _, _ := strings.Cut(word, "@")
		return text == word || text == local || text == strings.Join(strings.FieldsFunc(local, isSeparator), "")
	})
}

func isSeparator(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// commonPasswords returns zxcvbn's list of the seven thousand most common passwords, which is
// parsed at its first use.
var commonPasswords = sync.OnceValue(func() map[string]bool {
	var list struct{ List []string }
	asset, err := data.Asset("data/Passwords.json")
	if err == nil {
		err = json.Unmarshal(asset, &list)
	}
	if err != nil || len(list.List) < 3000 {
		panic("the embedded list of common passwords is damaged")
	}
	common := make(map[string]bool, len(list.List))
	for _, password := range list.List {
		common[password] = true
	}
	return common
})

// repeatedUnit returns the shortest text whose repetition is s.
func repeatedUnit(s string) string {
	// In s doubled, s occurs again first at the end of its shortest period.
	if s == "" {
		return ""
	}
	return s[:1+strings.Index((s + s)[1:], s)]
}

// isRun reports whether s counts up or down, such as abcdefghijkl and 098765432109.
func isRun(s string) bool {
	up, down := true, true
	for i := 1; i < len(s); i++ {
		step := (int(s[i]) - int(s[i-1]) + 10) % 10 // 9 is followed by 0
		up, down = up && step == 1, down && step == 9
	}
	return up || down
}
