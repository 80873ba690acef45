package portal_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"portal/models/modelstest"
)

func TestPagesAreCompressedButKeysAreNot(t *testing.T) {
	s := sqliteSite(t, httpBase)
	c := s.customer(t)
	plain := c.get("/api-keys")
	c.headers = []string{"Accept-Encoding: gzip"} // set by hand, so that net/http does not decompress
	page := c.get("/api-keys").is(http.StatusOK)
	if page.header.Get("Content-Encoding") != "gzip" || !slices.Contains(page.header.Values("Vary"), "Accept-Encoding") {
		t.Fatalf("the page is not compressed: %v", page.header)
	}
	if len(page.body) > len(plain.body)/2 {
		t.Errorf("%d bytes became %d", len(plain.body), len(page.body))
	}
	reader := modelstest.Value(gzip.NewReader(strings.NewReader(page.body)))(t)
	whole, err := io.ReadAll(reader)
	if err != nil || !strings.Contains(string(whole), "</html>") {
		t.Errorf("the page is incomplete: %v", err)
	}

	for _, as := range []voice{{}, {htmx: true}} {
		v := as.of(t, c.visitor)
		v.headers = []string{"Accept-Encoding: gzip"}
		revealed := v.post("/api-keys", generation("production", plain.formID()))
		if revealed.header.Get("Content-Encoding") != "" {
			t.Error("the response to the form that generates a key is compressed")
		}
	}
	refusing := voice{}.of(t, c.visitor)
	refusing.headers = []string{"Accept-Encoding: gzip;q=0"}
	if got := refusing.get("/api-keys"); got.header.Get("Content-Encoding") != "" {
		t.Error("a client that does not accept gzip gets it")
	}
}
