package portal_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/gorilla/securecookie"
	"golang.org/x/net/html"

	"portal/models"
)

const fuzzedSecret = "the secret of the fuzzed portal, long enough"

// target is a portal without a network and a signed-in customer.
type target struct {
	*site
	cookie *http.Cookie
}

func newTarget(f *testing.F) target {
	f.Helper()
	t := target{site: sqliteSite(f, httpBase).with(f, httpBase, fuzzedSecret, "", nil)}
	if _, err := t.store.CreateAccount(f.Context(), models.NewAccount{Name: "Example Ltd", Email: "ada@example.com", Password: password}); err != nil {
		f.Fatal(err)
	}
	response := t.post("/login", url.Values{"email": {"ada@example.com"}, "password": {password}}).Result()
	if len(response.Cookies()) != 1 {
		f.Fatalf("signing in answered %d", response.StatusCode)
	}
	t.cookie = response.Cookies()[0]
	return t
}

func (t target) get(path string, cookies ...*http.Cookie) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
	for _, cookie := range cookies {
		r.AddCookie(cookie)
	}
	return t.send(r)
}

func (t target) fragment(path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
	r.Header.Set("Hx-Request", "true")
	return t.send(r)
}

func (t target) post(path string, form url.Values) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return t.send(r)
}

func (t target) send(r *http.Request) *httptest.ResponseRecorder {
	if t.cookie != nil {
		r.AddCookie(t.cookie)
	}
	answer := httptest.NewRecorder()
	t.handler.ServeHTTP(answer, r)
	return answer
}

// shown is a page or a fragment that contains the label.
type shown struct {
	name string
	body string
}

var rowOf = regexp.MustCompile(`action="(/api-keys/[0-9a-f-]{36})/revocation"`)

// life generates a key with the label and revokes it. It returns every page on the way; if the
// label is refused, that is the form alone.
func (t target) life(tb testing.TB, label string) (pages []shown, made bool) {
	tb.Helper()
	see := func(name string, answer *httptest.ResponseRecorder, status int) string {
		if answer.Code != status {
			tb.Fatalf("%s: status %d, want %d:\n%s", name, answer.Code, status, answer.Body)
		}
		pages = append(pages, shown{name, answer.Body.String()})
		return answer.Body.String()
	}
	answer := t.post("/api-keys", url.Values{"label": {label}, "form_id": {uuid.NewString()}})
	if answer.Code == http.StatusUnprocessableEntity {
		see("refused", answer, http.StatusUnprocessableEntity)
		return pages, false
	}
	see("reveal", answer, http.StatusOK)
	row := rowOf.FindStringSubmatch(see("list", t.get("/api-keys"), http.StatusOK))
	if row == nil {
		tb.Fatal("the list has no row")
	}
	see("row", t.fragment(row[1]), http.StatusOK)
	see("confirmation", t.get(row[1]+"/revocation"), http.StatusOK)
	revoked := t.post(row[1]+"/revocation", nil)
	if revoked.Code != http.StatusSeeOther {
		tb.Fatalf("revoking answers %d", revoked.Code)
	}
	see("notice", t.get("/api-keys", revoked.Result().Cookies()...), http.StatusOK)
	see("activity", t.get("/activity"), http.StatusOK)
	return pages, true
}

// A label never changes the markup around it, and every page shows it unchanged.
func FuzzLabelOnPages(f *testing.F) {
	t := newTarget(f)
	// Fill the page of activity, so that it has the same structure for every label.
	var harmless []shown
	for range 30 {
		harmless, _ = t.life(f, "harmless")
	}
	refused, made := t.life(f, "")
	if made {
		f.Fatal("a key without a label")
	}
	want := map[string][]string{}
	for _, page := range slices.Concat(harmless, refused) {
		want[page.name] = skeleton(f, page.body)
	}
	for _, seed := range []string{
		"production", " trimmed ", "", "<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, `' autofocus onfocus='alert(1)`, "{{.Key}}",
		"</td></tr></table>", "<!--", "]]>", "&lt;b&gt;", "&amp;amp;", "&#0;", "&", "javascript:alert(1)", "\u202egnp.exe", "a\u2028b", "a\u00a0b", "\ufeffa",
		"a\x00b", "a\r\nb", "a\tb", "\xff\xfe", "\xed\xa0\x80", strings.Repeat("é", 100), strings.Repeat("😀", 101), "</textarea></title><plaintext>",
		"<hx-partial hx-target=\"#status\">", "%3Cb%3E", "+", "nas_000000000000000000000000000000000000", "</strong>", "<template>", "`${1}`", "=1+1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(tt *testing.T, label string) {
		pages, made := t.life(tt, label)
		for _, page := range pages {
			if got := skeleton(tt, page.body); !slices.Equal(got, want[page.name]) {
				tt.Errorf("%s: the label %q changes the page:\n%s", page.name, label, firstDifference(got, want[page.name]))
			}
			switch {
			case !made:
				// HTML normalizes line ends and replaces NUL (HTML standard, 13.2.3.5 and 13.2.5).
				input := strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "\ufffd").Replace(label)
				if got := parse(tt, page.body).one("textbox", "Label").attr("value"); !sameText(got, input) {
					tt.Errorf("the field holds %q, want the input %q", got, label)
				}
			case !slices.ContainsFunc(texts(tt, page.body), func(text string) bool { return strings.Contains(text, strings.TrimSpace(label)) }):
				tt.Errorf("%s: the label %q is nowhere", page.name, label)
			}
		}
	})
}

// Any cookie that names no session yields a visitor and no error, even with a valid signature.
func FuzzSessionCookie(f *testing.F) {
	t := newTarget(f)
	live := t.cookie.Value
	t.cookie = nil
	keyring, err := models.NewKeyring(fuzzedSecret, "")
	if err != nil {
		f.Fatal(err)
	}
	codec := securecookie.New(keyring.CookieKeys()[0], nil)
	const raw, signedText, signedBytes = 0, 1, 2
	for _, seed := range []string{
		"", "x", "=", "; session=", "session=session", `"quoted"`, "a b", "\x00", "\r\nX: y", "\xff", "MTc2MzY1|", "fHx8", strings.Repeat("A", 4096), strings.Repeat("A", 15<<10),
		"x; session=y; session=z", "$LIVE", "x$LIVE", "$LIVEx", "' OR 1=1; --", "%00", strings.Repeat("=", 99),
	} {
		for kind := range byte(3) {
			f.Add(seed, kind)
		}
	}
	f.Fuzz(func(tt *testing.T, value string, kind byte) {
		value = strings.ReplaceAll(value, "$LIVE", live)
		sent, err := value, error(nil)
		switch kind % 3 {
		case signedText:
			sent, err = codec.Encode("session", value)
		case signedBytes:
			sent, err = codec.Encode("session", []byte(value))
		}
		if err != nil {
			return // too long for a cookie
		}
		header := "session=" + sent
		isLive := kind%3 == raw && slices.ContainsFunc(cookiesIn(header), func(c *http.Cookie) bool { return c.Value == live })
		for path, status := range map[string]int{"/api-keys": http.StatusSeeOther, "/login": http.StatusOK} {
			r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
			r.Header["Cookie"] = []string{header}
			answer := t.send(r)
			if isLive && answer.Code < http.StatusInternalServerError {
				continue
			}
			if answer.Code != status || strings.Contains(answer.Body.String(), "ada@example.com") {
				tt.Fatalf("with the cookie %q %s is answered %d", sent, path, answer.Code)
			}
		}
	})
}

func cookiesIn(header string) []*http.Cookie {
	r := http.Request{Header: http.Header{"Cookie": {header}}}
	return r.CookiesNamed("session")
}

// skeleton returns the elements and attribute names of a page, without texts and values.
func skeleton(tb testing.TB, body string) (parts []string) {
	tb.Helper()
	for node := range parse(tb, body).node.Descendants() {
		switch node.Type {
		case html.ElementNode, html.CommentNode, html.DoctypeNode:
			var names []string
			for _, attribute := range node.Attr {
				names = append(names, attribute.Key)
			}
			parts = append(parts, fmt.Sprint(node.Type, " ", nameOf(node), " ", names))
		default:
		}
	}
	return parts
}

func nameOf(node *html.Node) string {
	if node.Type == html.CommentNode {
		return ""
	}
	return node.Data
}

// texts returns the text nodes of a page.
func texts(tb testing.TB, body string) (texts []string) {
	tb.Helper()
	for node := range parse(tb, body).node.Descendants() {
		if node.Type == html.TextNode {
			texts = append(texts, node.Data)
		}
	}
	return texts
}

// sameText compares texts and ignores bytes that are not UTF-8.
func sameText(a, b string) bool {
	only := func(s string) string {
		return strings.ReplaceAll(strings.ToValidUTF8(s, ""), string(utf8.RuneError), "")
	}
	return a == b || only(a) == only(b)
}

func firstDifference(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("part %d is %s and not %s", i, got[i], want[i])
		}
	}
	return fmt.Sprintf("%d parts and not %d", len(got), len(want))
}
