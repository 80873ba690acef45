package static_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"portal/static"
)

func TestAssetsAreServedPlainAndCompressed(t *testing.T) {
	assets, err := static.New()
	if err != nil {
		t.Fatal(err)
	}
	for name, contentType := range map[string]string{
		"app.css":     "text/css; charset=utf-8",
		"app.js":      "text/javascript; charset=utf-8",
		"htmx.js":     "text/javascript; charset=utf-8",
		"favicon.svg": "image/svg+xml",
	} {
		url, err := assets.URL(name)
		if err != nil {
			t.Fatal(err)
		}
		asset, ok := assets.Find(strings.TrimPrefix(url, static.Prefix))
		if !ok {
			t.Fatalf("%s is not served as %s", name, url)
		}
		plain := get(asset, "")
		if got := plain.Header().Get("Content-Type"); got != contentType {
			t.Errorf("%s has content type %q", name, got)
		}
		if got := plain.Header().Get("Content-Length"); got != strconv.Itoa(plain.Body.Len()) || plain.Body.Len() == 0 {
			t.Errorf("%s has %d bytes and Content-Length %s", name, plain.Body.Len(), got)
		}
		compressed := get(asset, "br, gzip")
		if compressed.Header().Get("Content-Encoding") != "gzip" || compressed.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s is not compressed: %v", name, compressed.Header())
		}
		reader, err := gzip.NewReader(compressed.Body)
		if err != nil {
			t.Fatal(err)
		}
		if content, err := io.ReadAll(reader); err != nil || string(content) != plain.Body.String() {
			t.Errorf("%s differs when decompressed: %v", name, err)
		}
	}
}

// Comments are for readers of the source.
func TestBundlesHaveNoComments(t *testing.T) {
	assets, err := static.New()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"app.css": `{content:"Last sign-in: " / "";}`, "app.js": "\n(() => {\n'use strict';\n"} {
		url, err := assets.URL(name)
		if err != nil {
			t.Fatal(err)
		}
		asset, _ := assets.Find(strings.TrimPrefix(url, static.Prefix))
		text := "\n" + get(asset, "").Body.String()
		if !strings.Contains(text, want) || strings.Contains(text, "\n/") || strings.Contains(text, "\n ") || strings.Contains(text, "\n\n") {
			t.Errorf("%s has comments or indentation, or lacks %q", name, want)
		}
	}
}

func TestAssetsAreCompressedOnlyForClientsThatAcceptGzip(t *testing.T) {
	assets, err := static.New()
	if err != nil {
		t.Fatal(err)
	}
	url, err := assets.URL("app.css")
	if err != nil {
		t.Fatal(err)
	}
	asset, _ := assets.Find(strings.TrimPrefix(url, static.Prefix))
	for _, accept := range []string{"", "identity", "br", "gzip;q=0", "gzip; q=0.0", "x-gzip"} {
		if got := get(asset, accept).Header().Get("Content-Encoding"); got != "" {
			t.Errorf("Accept-Encoding %q gets Content-Encoding %q", accept, got)
		}
	}
	for _, accept := range []string{"gzip", "GZIP", "deflate, gzip;q=0.5", "gzip;q=1.0, br"} {
		if got := get(asset, accept).Header().Get("Content-Encoding"); got != "gzip" {
			t.Errorf("Accept-Encoding %q gets Content-Encoding %q", accept, got)
		}
	}
}

func TestUnknownNamesAreNotServed(t *testing.T) {
	assets, err := static.New()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "app.css", "static.go", "../static.go", "css/tokens.css"} {
		if _, ok := assets.Find(name); ok {
			t.Errorf("%q is served", name)
		}
	}
	if _, err := assets.URL("nothing.js"); err == nil {
		t.Error("an unknown asset has a URL")
	}
}

func get(asset static.Asset, acceptEncoding string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	if acceptEncoding != "" {
		request.Header.Set("Accept-Encoding", acceptEncoding)
	}
	recorder := httptest.NewRecorder()
	asset.ServeHTTP(recorder, request)
	return recorder
}
