package password

import "testing"

func TestCommonPasswordsAreRefused(t *testing.T) {
	for _, password := range []string{
		"password1234", "Password-123!", "passwordpassword", "iloveyou1234", "letmein12345", "monkeymonkey",
		"123456789012", "098765432109", "abcdefghijkl", "aaaaaaaaaaaa", "abababababab", "qwertyuiop123", "trustno1trustno1",
		"ada.lovelace", "ada.lovelace2024", "ada.lovelace@example.com", "Analytical Engines!",
	} {
		if Problem(password, "Ada.Lovelace@example.com", "Analytical Engines") == "" {
			t.Errorf("%q is accepted", password)
		}
	}
}

func TestUncommonPasswordsAreAccepted(t *testing.T) {
	for _, password := range []string{
		"correct horse battery staple", "correct-horse-battery", "Kei5-vohz-Aij3", "ünïcödé wörds fïne", "839201746552", "    spaces    x",
	} {
		if problem := Problem(password, "ada@example.com", "Acme"); problem != "" {
			t.Errorf("%q: %s", password, problem)
		}
	}
}
