package mailer

import (
	"mime"
	"strings"
	"testing"
)

func TestNoLineOfASubjectIsEmptyOrTooLong(t *testing.T) {
	for _, subject := range []string{
		"New sign-in – Voice Portal", "Invitation to join " + strings.Repeat("Müller & Söhne 🔑 ", 6) + "– Voice Portal", strings.Repeat("x", 300), "–",
	} {
		header := "Subject: " + foldedSubject(subject)
		for i, line := range strings.Split(header, "\r\n") {
			if len(line) > 76 || !strings.Contains(line, "=?") || i > 0 && !strings.HasPrefix(line, " ") {
				t.Errorf("line %d is %q", i, line)
			}
		}
		unfolded := strings.ReplaceAll(strings.TrimPrefix(header, "Subject: "), "\r\n", "")
		if got, err := new(mime.WordDecoder).DecodeHeader(unfolded); err != nil || got != subject {
			t.Errorf("%q, %v, want %q", got, err, subject)
		}
	}
}
