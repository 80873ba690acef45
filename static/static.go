// Package static serves the assets of the pages: the style sheet, the scripts, the icon and HTMX.
// Because the name of an asset contains a hash of its content, browsers may cache it forever.
// Package api serves its public documents as assets too.
//
// [Assets] has only the files listed here. None of them is secret.
package static

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Prefix is the path of the assets.
const Prefix = "/static/"

//go:embed css/*.css css/docs/*.css js/*.js favicon.svg
var own embed.FS

// HTMX is installed by npm and never committed. If the compiler does not find the file, run
// "make assets".
//
//go:embed vendor/htmx.min.js
var htmx []byte

// bundles maps the name of each asset to its source files, in order.
var bundles = map[string][]string{
	"app.css": {
		"css/tokens.css", "css/base.css", "css/controls.css", "css/layout.css",
		"css/table.css", "css/rows.css", "css/chart.css", "css/lists.css", "css/account.css", "css/factors.css", "css/people.css",
		"css/integration.css", "css/code.css",
		"css/dialog.css", "css/rotation.css", "css/preferences.css", "css/motion.css", "css/print.css",
	},
	"app.js": {
		"js/page.js", "js/requests.js", "js/copy.js", "js/reveal.js", "js/menus.js", "js/confirmations.js",
		"js/times.js", "js/passwords.js", "js/labels.js", "js/list.js", "js/outcome.js",
	},
	"passkeys.js": {"js/passkeys.js"}, // a few pages need it
	"docs.css":    {"css/docs/layout.css", "css/docs/content.css"},
	"docs.js":     {"js/page.js", "js/copy.js", "js/contents.js"},
	"favicon.svg": {"favicon.svg"},
}

// contentTypes maps file extensions to content types.
var contentTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// Assets holds all assets in memory.
type Assets struct {
	urls   map[string]string // by logical name, such as "app.css"
	served map[string]Asset  // by file name with the hash
}

// Asset is one file, plain and compressed.
type Asset struct {
	contentType, cache, etag string // values of headers
	plain                    []byte
	gzipped                  func() []byte
}

// NewAsset returns a file with these values of Content-Type and Cache-Control.
func NewAsset(contentType, cache string, content []byte) Asset {
	sum := sha256.Sum256(content)
	return Asset{
		contentType: contentType, cache: cache, etag: `"` + hex.EncodeToString(sum[:8]) + `"`, plain: content,
		gzipped: sync.OnceValue(func() []byte { return compress(content) }),
	}
}

// NewHashed returns a file that browsers may cache forever, and its name, which differs for
// different content.
func NewHashed(name, extension, contentType string, content []byte) (string, Asset) {
	asset := NewAsset(contentType, "public, max-age=31536000, immutable", content)
	return name + "." + strings.Trim(asset.etag, `"`) + extension, asset
}

// New bundles and hashes the assets, and returns an error when a source file is missing.
func New() (*Assets, error) {
	assets := &Assets{urls: map[string]string{}, served: map[string]Asset{}}
	for name, files := range bundles {
		content, err := concatenate(files)
		if err != nil {
			return nil, fmt.Errorf("bundle %s: %w", name, err)
		}
		if err := assets.add(name, content); err != nil {
			return nil, err
		}
	}
	return assets, assets.add("htmx.js", htmx)
}

// URL returns the path of the asset with the logical name, such as "app.css", or an error when
// there is no such asset.
func (a *Assets) URL(name string) (string, error) {
	url, ok := a.urls[name]
	if !ok {
		return "", fmt.Errorf("no asset %q", name)
	}
	return url, nil
}

// Find returns the asset with the given file name, which is the part of its URL after [Prefix].
func (a *Assets) Find(name string) (Asset, bool) {
	asset, ok := a.served[name]
	return asset, ok
}

// ServeHTTP sends the asset, compressed if the client accepts gzip, or a 304 if the client has it.
func (a Asset) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header, body := w.Header(), a.plain
	header.Set("Cache-Control", a.cache)
	header.Set("Vary", "Accept-Encoding")
	header.Set("ETag", "W/"+a.etag) // weak, because the compressed file has it too
	if known := strings.Join(r.Header.Values("If-None-Match"), ","); known == "*" || strings.Contains(known, a.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header.Set("Content-Type", a.contentType)
	if AcceptsGzip(r) {
		header.Set("Content-Encoding", "gzip")
		body = a.gzipped()
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body) // fails only when the client has disconnected
}

func (a *Assets) add(name string, content []byte) error {
	extension := path.Ext(name)
	hashed, asset := NewHashed(strings.TrimSuffix(name, extension), extension, contentTypes[extension], content)
	if asset.contentType == "" {
		return fmt.Errorf("asset %s: no content type is known for %q", name, extension)
	}
	a.urls[name] = Prefix + hashed
	a.served[hashed] = asset
	return nil
}

// compress runs at the first request, because it would take a fifth of the program's start.
func compress(content []byte) []byte {
	var compressed bytes.Buffer
	writer, _ := gzip.NewWriterLevel(&compressed, gzip.BestCompression) // the level is valid
	_, _ = writer.Write(content)                                        // a buffer never fails
	_ = writer.Close()
	return compressed.Bytes()
}

func concatenate(files []string) ([]byte, error) {
	var all bytes.Buffer
	for _, file := range files {
		content, err := own.ReadFile(file)
		if err != nil {
			return nil, err
		}
		all.Write(content)
	}
	switch path.Ext(files[0]) {
	case ".css":
		return spaces.ReplaceAll(redundant.ReplaceAll(all.Bytes(), nil), []byte("$1$2$3")), nil
	case ".js":
		return redundant.ReplaceAll(all.Bytes(), nil), nil
	}
	return all.Bytes(), nil
}

// redundant matches comments and the space before lines, which take a quarter of a compressed
// bundle. A comment begins a line, because text may contain its marks.
var redundant = regexp.MustCompile(`(?m)^\s*(?:(?:/\*(?s:.*?)\*/|//.*$)\s*)+|^\s+`)

// spaces matches the space between the parts of a style sheet, and texts, which keep theirs. A
// space before a colon is kept: it separates two selectors.
var spaces = regexp.MustCompile(`("[^"\n]*")|\s*([{};])\s*|([:,])\s+`)

// AcceptsGzip reports whether the client accepts gzip. It supports the parts of Accept-Encoding
// (RFC 9110, section 12.5.3) that browsers and caches use: "gzip;q=0" is a refusal.
func AcceptsGzip(r *http.Request) bool {
	for coding := range strings.SplitSeq(strings.ToLower(strings.Join(r.Header.Values("Accept-Encoding"), ",")), ",") {
		name, parameter, _ := strings.Cut(strings.TrimSpace(coding), ";")
		if name != "gzip" {
			continue
		}
		weight, weighted := strings.CutPrefix(strings.TrimSpace(parameter), "q=")
		if !weighted {
			return true
		}
		q, err := strconv.ParseFloat(weight, 64)
		return err == nil && q > 0
	}
	return false
}
