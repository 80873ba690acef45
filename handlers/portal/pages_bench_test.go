package portal_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/value"
)

// BenchmarkPages renders the lists of a large account: the most keys, each used on 30 days, and the
// most agents.
func BenchmarkPages(b *testing.B) {
	for name, url := range map[string]func(testing.TB) string{"sqlite": modelstest.SQLiteURL, "postgres": modelstest.PostgresURL} {
		b.Run(name, func(b *testing.B) {
			s := newSite(b, url(b), httpBase, models.Options{})
			c := s.customer(b)
			for i := range value.MaxActiveKeys {
				key, _ := c.newKey(fmt.Sprintf("Key %d", i), uuid.Nil)
				for days := range 30 {
					s.store.Usage.Add(key, keys.Source{}, key.CreatedAt.AddDate(0, 0, -days), int64(i+days), 0)
				}
			}
			for i := range value.MaxAgents {
				c.agent(fmt.Sprintf("Agent %d", i))
			}
			c.headers = []string{"Accept-Encoding: gzip"}
			for _, path := range []string{"/api-keys", "/agents", "/activity"} {
				b.Run(path, func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						c.get(path).is(http.StatusOK)
					}
				})
			}
		})
	}
}
