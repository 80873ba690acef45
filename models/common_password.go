package models

import (
	"encoding/json"
	"strings"
	"sync"
	"unicode"

	"github.com/ccojocar/zxcvbn-go/data"
)

// commonPasswords returns zxcvbn's list of the seven thousand most common passwords. The list is
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

// isCommon reports whether a password is among the first guesses of an attacker (OWASP ASVS 5.0,
// 6.2.4 and 6.2.11): a common password or one of words, also if repeated or surrounded by digits
// and punctuation, or a sequence such as abcdefghijkl.
func isCommon(password string, words ...string) bool {
	password = strings.ToLower(password)
	core := strings.TrimFunc(password, func(r rune) bool { return !unicode.IsLetter(r) })
	unit := repeatedUnit(password)
	for _, candidate := range []string{password, core, unit, repeatedUnit(core)} {
		if candidate == "" {
			continue
		}
		if commonPasswords()[candidate] {
			return true
		}
		for _, word := range words {
			if local, _, _ := strings.Cut(strings.ToLower(word), "@"); candidate == local || candidate == strings.ToLower(word) {
				return true
			}
		}
	}
	return len(unit) < 4 || isRun(password)
}

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
