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
)

// visitKeeping opens a tab in a browser of its own that keeps its profile in folder, as people's browsers do; the
// profiles of other tests live in memory.
func visitKeeping(t *testing.T, site, folder string) *visitor {
	t.Helper()
	found, err := theRun.getTools()
	if err != nil {
		t.Fatal(err)
	}
	context, err := theRun.browser(t).driver.Chromium.LaunchPersistentContext(folder, playwright.BrowserTypeLaunchPersistentContextOptions{
		ExecutablePath: playwright.String(found.chromium), Args: chromiumFlags(), IgnoreDefaultArgs: withBackForwardCache,
	})
	if err != nil {
		t.Fatalf("start Chromium with a profile: %v", err)
	}
	t.Cleanup(func() { _ = context.Close() })
	context.SetDefaultTimeout(patience)
	v := &visitor{watcher: watch(context), context: context}
	v.Tab = v.newTab(t, site, true)
	return v
}

// searchProfile looks through all that a browser has written to its disk. The cookies are where the session's cookie
// belongs; the cache may hold what is the same for everybody and nothing else.
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
	if err != nil {
		t.Fatal(err)
	}
	c.searchFor(t, "the browser's profile", all.String(), c.portal.URL+"/static/")
	cached := regexp.MustCompile(`_dk_[^\x00]*? ` + regexp.QuoteMeta(c.portal.URL) + `(/[!-~]*)`)
	for _, entry := range cached.FindAllStringSubmatch(all.String(), -1) {
		if !strings.HasPrefix(entry[1], "/static/") {
			t.Errorf("the browser's cache holds %s", entry[1])
		}
	}
	if !cached.MatchString(all.String()) {
		t.Error("the browser has no cache, and proves nothing")
	}
}

// forms are the ways in which a secret can be written.
func forms(secret string) map[string]string {
	raw := []byte(secret)
	written := map[string]string{
		"as it is": secret, "hex": hex.EncodeToString(raw), "HEX": strings.ToUpper(hex.EncodeToString(raw)),
		"URL-encoded": url.QueryEscape(secret), "UTF-16": strings.Join(strings.Split(secret, ""), "\x00"),
	}
	// Inside something longer, base64 can begin at each of three places.
	for shift, name := range []string{"base64", "base64 shifted by one", "base64 shifted by two"} {
		text := base64.RawStdEncoding.EncodeToString(append(make([]byte, shift), raw...))
		if shift > 0 {
			text = text[shift+1:]
		}
		if (shift+len(raw))%3 != 0 {
			text = text[:len(text)-1]
		}
		written[name] = text
		written[name+" for URLs"] = strings.NewReplacer("+", "-", "/", "_").Replace(text)
	}
	return written
}

var referenceForm = regexp.MustCompile(`[0-9A-Za-z_-]{43}`)

// referenceIn is the reference to a session in a signed cookie, which anybody who holds the cookie can read.
func referenceIn(cookie string) string {
	signed, err := base64.URLEncoding.DecodeString(cookie)
	if err != nil {
		return ""
	}
	parts := bytes.SplitN(signed, []byte("|"), 3)
	if len(parts) < 2 {
		return ""
	}
	value, err := base64.URLEncoding.DecodeString(string(parts[1]))
	if err != nil {
		return ""
	}
	return string(referenceForm.Find(value))
}
