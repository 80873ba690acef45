package models_test

import (
	"context"
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
			account, err := store.Accounts.Create(ctx, models.NewAccount{Name: "Bench", Email: "bench@example.com", Password: "correct horse battery"})
			if err != nil {
				b.Fatal(err)
			}
			_, key, err := store.Keys.Generate(ctx, account.ID, models.NewKey{Label: "bench", FormID: uuid.New()}, models.Operator())
			if err != nil {
				b.Fatal(err)
			}
			authenticate := func(b *testing.B) {
				if _, err := store.API.Authenticate(ctx, key); err != nil {
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

// BenchmarkManyKeys authenticates 10,000 keys in turn, 64 requests at once. Generating a key renews
// the epoch, so that every instance reads each key again.
func BenchmarkManyKeys(b *testing.B) {
	const n = 10_000
	for name, url := range map[string]func(testing.TB) string{"sqlite": modelstest.SQLiteURL, "postgres": modelstest.PostgresURL} {
		b.Run(name, func(b *testing.B) {
			ctx, url := context.Background(), url(b)
			store := modelstest.Open(b, url, models.Options{})
			account, err := store.Accounts.Create(ctx, models.NewAccount{Name: "Bench", Email: "bench@example.com", Password: "correct horse battery"})
			if err != nil {
				b.Fatal(err)
			}
			secrets, rows := make([]string, n), make([]models.Key, n)
			for i := range n {
				secrets[i] = models.NewKeySecret()
				hash := sha256.Sum256([]byte(secrets[i]))
				rows[i] = models.Key{
					ID: newID(), AccountID: account.ID, Label: "bench", KeyHash: hash[:], LastFour: "none",
					FormID: uuid.New(), CreatedAt: time.Now(),
				}
				if i%1000 == 999 {
					chunk := rows[i-999 : i+1]
					modelstest.Value(modelstest.OpenDatabase(b, url).NewInsert().Model(&chunk).Exec(ctx))(b)
				}
			}
			var next atomic.Int64
			measure := func(b *testing.B) {
				b.SetParallelism(32)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if _, err := store.API.Authenticate(ctx, secrets[next.Add(1)%n]); err != nil {
							b.Error(err)
						}
					}
				})
			}
			b.Run("quiet", measure)
			b.Run("a key a second", func(b *testing.B) {
				busy, stop := context.WithCancel(ctx)
				var generating sync.WaitGroup
				generating.Go(func() { generateEverySecond(busy, b, url) })
				measure(b)
				stop()
				generating.Wait()
			})
		})
	}
}

// generateEverySecond renews the epoch every second, as the generation of a key does.
func generateEverySecond(ctx context.Context, b *testing.B, url string) {
	b.Helper()
	db := modelstest.OpenDatabase(b, url)
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
		account := models.Account{ID: newID(), Name: "Bench", CreatedAt: time.Now()}
		if _, err := db.NewInsert().Model(&account).Exec(context.WithoutCancel(ctx)); err != nil {
			b.Error(err)
		}
	}
}
