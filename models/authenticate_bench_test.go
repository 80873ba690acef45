package models_test

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/modelstest"
)

// BenchmarkAuthenticate authenticates one key, one request at a time and 64 at once.
func BenchmarkAuthenticate(b *testing.B) {
	for name, url := range map[string]func(testing.TB) string{"sqlite": modelstest.SQLiteURL, "postgres": modelstest.PostgresURL} {
		b.Run(name, func(b *testing.B) {
			ctx := context.Background()
			store := modelstest.Open(b, url(b), models.Options{})
			account, err := store.CreateAccount(ctx, models.NewAccount{Name: "Bench", Email: "bench@example.com", Password: "correct horse battery"})
			if err != nil {
				b.Fatal(err)
			}
			_, key, err := store.GenerateAPIKey(ctx, account.ID, models.NewAPIKey{Label: "bench", FormID: uuid.New()}, models.Operator())
			if err != nil {
				b.Fatal(err)
			}
			authenticate := func(b *testing.B) {
				if _, err := store.Authenticate(ctx, key); err != nil {
					b.Error(err)
				}
			}
			b.Run("alone", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					authenticate(b)
				}
			})
			b.Run("64 at once", func(b *testing.B) {
				b.ReportAllocs()
				b.SetParallelism(32)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						authenticate(b)
					}
				})
			})
		})
	}
}
