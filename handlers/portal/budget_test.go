package portal_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"testing"

	"github.com/google/uuid"
)

// The sizes for an account with 50 keys, each used. Headers add about 600 bytes to a response.
func TestThePageOfKeysStaysSmall(t *testing.T) {
	s := sqliteSite(t, httpBase)
	c := s.customer(t)
	for i := range 50 {
		c.used(fmt.Sprintf("Production backend %d", i), 1)
	}
	c.headers = []string{"Accept-Encoding: gzip"} // set by hand, so that net/http does not decompress
	total := len(c.get("/api-keys").is(http.StatusOK).body)
	c.headers = nil
	page := c.get("/api-keys")
	for _, asset := range regexp.MustCompile(`/static/[^"]+`).FindAllString(page.body, -1) {
		total += len(c.send(http.MethodGet, asset, "", "Accept-Encoding: gzip").body)
	}
	if total > 57_000 {
		t.Errorf("the first load is %d bytes", total)
	}

	generated := c.fragments().post("/api-keys", url.Values{"label": {"Batch import"}, "form_id": {uuid.NewString()}}).is(http.StatusOK)
	if n := len(generated.body); n > 4_500 {
		t.Errorf("a generated key is %d bytes", n)
	}
}
