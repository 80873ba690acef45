package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"io/fs"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/playwright-community/playwright-go"

	"portal/models/modelstest"
)

// visitWithProfileOnDisk opens a tab in a separate browser that stores its profile in folder. The
// profiles of other tests are in memory.
func visitWithProfileOnDisk(t *testing.T, site, folder string) *visitor {
	t.Helper()
	found := modelstest.Value(sharedTools())(t)
	context := modelstest.Value(modelstest.Value(sharedDriver())(t).Chromium.LaunchPersistentContext(folder, playwright.BrowserTypeLaunchPersistentContextOptions{
		ExecutablePath: playwright.String(found.chromium), Args: chromiumFlags(), IgnoreDefaultArgs: withBackForwardCache,
	}))(t)
	t.Cleanup(func() { _ = context.Close() })
	context.SetDefaultTimeout(expectTimeout)
	context.SetDefaultNavigationTimeout(navigationTimeout)
	v := &visitor{watcher: watch(context), context: context}
	v.Tab = v.newTab(t, site, true)
	return v
}

// searchProfile searches every file of a browser profile for secrets, except the cookie store. It
// also checks that the cache holds only static files.
func (c *canary) searchProfile(t *testing.T, folder string) {
	t.Helper()
	var all bytes.Buffer
	err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || strings.HasPrefix(entry.Name(), "Cookies") {
			return err
		}
		all.WriteString(readFile(t, name))
		all.WriteByte('\n')
		return nil
	})
	modelstest.Must(t, err)
	c.searchFor(t, "the browser's profile", all.String(), c.portal.URL+"/static/")
	cached := regexp.MustCompile(`_dk_[^\x00]*? ` + regexp.QuoteMeta(c.portal.URL) + `(/[!-~]*)`)
	for _, entry := range cached.FindAllStringSubmatch(all.String(), -1) {
		if !strings.HasPrefix(entry[1], "/static/") {
			t.Errorf("the browser's cache holds %s", entry[1])
		}
	}
	if !cached.MatchString(all.String()) {
		t.Error("the profile holds no cache entries, so the search proves nothing")
	}
}

// encodings returns a secret in its common encodings, by name.
func encodings(secret string) map[string]string {
	raw := []byte(secret)
	encoded := map[string]string{
		"as it is": secret, "hex": hex.EncodeToString(raw), "HEX": strings.ToUpper(hex.EncodeToString(raw)),
		"URL-encoded": url.QueryEscape(secret), "UTF-16": strings.Join(strings.Split(secret, ""), "\x00"),
	}
	// Within longer data, the base64 of a secret depends on its offset modulo three.
	for shift, name := range []string{"base64", "base64 shifted by one", "base64 shifted by two"} {
		text := base64.RawStdEncoding.EncodeToString(append(make([]byte, shift), raw...))
		if shift > 0 {
			text = text[shift+1:]
		}
		if (shift+len(raw))%3 != 0 {
			text = text[:len(text)-1]
		}
		encoded[name] = text
		encoded[name+" for URLs"] = strings.NewReplacer("+", "-", "/", "_").Replace(text)
	}
	return encoded
}

// sessionTokenIn returns the session token in a signed cookie. The cookie is signed and not
// encrypted: base64 of the time, the base64 of the value and the signature.
func sessionTokenIn(cookie string) string {
	signed, _ := base64.URLEncoding.DecodeString(cookie)
	_, signed, _ = bytes.Cut(signed, []byte("|"))
	encoded, _, _ := bytes.Cut(signed, []byte("|"))
	value, _ := base64.URLEncoding.DecodeString(string(encoded))
	return regexp.MustCompile(`[0-9A-Za-z_-]{43}`).FindString(string(value))
}
