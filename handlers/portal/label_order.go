package portal

import (
	"cmp"
	"strings"
)

// compareLabels orders labels as people do: "Key 2" before "key 10".
func compareLabels(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	for a != "" && b != "" {
		var headA, headB string
		headA, a = cutRun(a)
		headB, b = cutRun(b)
		if isDigit(headA[0]) && isDigit(headB[0]) {
			if order := compareNumbers(headA, headB); order != 0 {
				return order
			}
		} else if order := cmp.Compare(headA, headB); order != 0 {
			return order
		}
	}
	return cmp.Compare(len(a), len(b))
}

// cutRun cuts text after its first digits, or before them.
func cutRun(text string) (run, rest string) {
	end := 1
	for end < len(text) && isDigit(text[end]) == isDigit(text[0]) {
		end++
	}
	return text[:end], text[end:]
}

// compareNumbers compares digits as numbers of any size.
func compareNumbers(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }
