package widget_test

import (
	"testing"
	"time"

	"portal/models/modelstest"
	"portal/models/secret"
	"portal/models/widget"
)

func BenchmarkToken(b *testing.B) {
	keyring := modelstest.Value(secret.NewKeyring("0123456789abcdef0123456789abcdef", ""))(b)
	grant := newGrant()
	for _, algorithm := range widget.Algorithms() {
		tokens := widget.NewTokens(keyring, "https://portal.example.com", 10*time.Minute, nil,
			algorithm)
		b.Run(string(algorithm)+"/issue", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := tokens.Issue(nil, grant); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(string(algorithm)+"/verify", func(b *testing.B) {
			token, _, err := tokens.Issue(nil, grant)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				modelstest.Value(tokens.Verify(string(token)))(b)
			}
		})
	}
}
