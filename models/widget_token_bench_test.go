package models_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/secret"
)

func BenchmarkWidgetToken(b *testing.B) {
	keyring, err := secret.NewKeyring("0123456789abcdef0123456789abcdef", "")
	if err != nil {
		b.Fatal(err)
	}
	principal := models.Principal{AccountID: uuid.New(), KeyID: uuid.New()}
	for _, algorithm := range models.TokenAlgorithms() {
		tokens := models.NewWidgetTokens(keyring, "https://portal.example.com", 10*time.Minute, nil,
			algorithm)
		b.Run(string(algorithm)+"/issue", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := tokens.Issue(principal, principal.AccountID); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(string(algorithm)+"/verify", func(b *testing.B) {
			token, _, err := tokens.Issue(principal, principal.AccountID)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tokens.Verify(token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
