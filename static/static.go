// Package static holds what browsers load beside the pages: our style sheet, our
// scripts, the icon, and HTMX. Each is served under a name that carries a hash
// of its content, so that a browser may keep it for as long as it likes.
//
// It never serves anything that is not listed here, and nothing in it is secret.
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
	"strconv"
	"strings"
)

// Prefix is where assets are served.
const Prefix = "/static/"

//go:embed css/*.css js/*.js favicon.svg
var own embed.FS

// HTMX arrives by npm and is never committed. Where the compiler finds no file
// for this pattern, run "make assets".
//
//go:embed vendor/htmx.min.js
var htmx []byte

// bundles are the assets that are made of several of our files, in this order.
var bundles = map[string][]string{
	"app.css": {
		"css/tokens.css", "css/base.css", "css/controls.css", "css/layout.css",
		"css/table.css", "css/usage.css", "css/lists.css", "css/account.css", "css/integration.css", "css/dialog.css", "css/rotation.css", "css/preferences.css",
		"css/motion.css", "css/print.css",
	},
	"app.js": {
		"js/page.js", "js/requests.js", "js/copy.js", "js/reveal.js", "js/confirmations.js",
		"js/times.js", "js/list.js", "js/outcome.js",
	},
	"favicon.svg": {"favicon.svg"},
}

// contentTypes are those of the kinds of file that are served here.
var contentTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// Assets are all assets, ready to be sent.
type Assets struct {
	urls   map[string]string // by the name that templates use
	served map[string]Asset  // by the name that browsers use
}

// Asset is one file, ready to be sent.
type Asset struct {
	contentType string
	plain       []byte
	gzipped     []byte
}

// New bundles, hashes and compresses the assets. It errs when one of our own
// files is missing.
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

// URL returns the address of the asset that templates call name, such as
// "app.css". It errs when there is none.
func (a *Assets) URL(name string) (string, error) {
	url, ok := a.urls[name]
	if !ok {
		return "", fmt.Errorf("there is no asset %q", name)
	}
	return url, nil
}

// Find returns the asset that is served under name, which is what follows
// [Prefix] in its URL.
func (a *Assets) Find(name string) (Asset, bool) {
	asset, ok := a.served[name]
	return asset, ok
}

// ServeHTTP sends the asset, compressed for those who take it so. It may be kept
// for a year, because another content has another name.
func (a Asset) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header, body := w.Header(), a.plain
	header.Set("Cache-Control", "public, max-age=31536000, immutable")
	header.Set("Content-Type", a.contentType)
	header.Set("Vary", "Accept-Encoding")
	if AcceptsGzip(r) {
		header.Set("Content-Encoding", "gzip")
		body = a.gzipped
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body) // the browser has left; there is no one to tell
}

func (a *Assets) add(name string, content []byte) error {
	extension := path.Ext(name)
	asset := Asset{contentType: contentTypes[extension], plain: content}
	if asset.contentType == "" {
		return fmt.Errorf("asset %s: no content type is known for %q", name, extension)
	}
	var compressed bytes.Buffer
	writer, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	if err != nil {
		return fmt.Errorf("compress %s: %w", name, err)
	}
	if _, err := writer.Write(content); err != nil {
		return fmt.Errorf("compress %s: %w", name, err)
	}
	if err := writer.Close(); err != nil {
		return fmt.Errorf("compress %s: %w", name, err)
	}
	asset.gzipped = compressed.Bytes()

	sum := sha256.Sum256(content)
	hashed := strings.TrimSuffix(name, extension) + "." + hex.EncodeToString(sum[:8]) + extension
	a.urls[name] = Prefix + hashed
	a.served[hashed] = asset
	return nil
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
	return all.Bytes(), nil
}

// AcceptsGzip reports whether whoever asks takes gzip. It reads Accept-Encoding
// (RFC 9110, section 12.5.3) as far as browsers and caches use it: "gzip;q=0" is a refusal.
func AcceptsGzip(r *http.Request) bool {
	for coding := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
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
