package portal_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/gorilla/securecookie"
	"golang.org/x/net/html"

	"portal/handlers/handlerstest"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/record"
)

// shown is a page or a fragment that contains the label.
type shown struct {
	name string
	answer
}

var rowOf = regexp.MustCompile(`action="(/api-keys/[0-9a-f-]{36})/revocation"`)

// life generates a key with the label and revokes it. It returns every page on the way. If the
// label is refused, this is only the form.
func (c customer) life(t testing.TB, label string) (pages []shown, made bool) {
	t.Helper()
	v := voice{}.of(t, c.visitor)
	see := func(name string, a answer, status int) { pages = append(pages, shown{name, a.is(status)}) }
	form := v.post("/api-keys", url.Values{"label": {label}, "form_id": {uuid.NewString()}})
	if form.status == http.StatusUnprocessableEntity {
		see("refused", form, http.StatusUnprocessableEntity)
		return pages, false
	}
	see("reveal", form, http.StatusOK)
	list := v.get("/api-keys")
	see("list", list, http.StatusOK)
	row := rowOf.FindStringSubmatch(list.body)
	if row == nil {
		t.Fatal("the list has no row")
	}
	see("row", v.fragments().get(row[1]), http.StatusOK)
	see("confirmation", v.get(row[1]+"/revocation"), http.StatusOK)
	v.post(row[1]+"/revocation", nil).is(http.StatusSeeOther)
	see("notice", v.get("/api-keys"), http.StatusOK)
	see("activity", v.get("/activity"), http.StatusOK)
	return pages, true
}

// A label never changes the markup around it, and every page shows it unchanged.
func FuzzLabelOnPages(f *testing.F) {
	c := sqliteSite(f, httpBase).customer(f)
	// Fill the page of activity and its list of revoked keys, so that the page has the same
	// structure for every label.
	actor := record.UserActor(modelstest.Value(c.store.People.FindByEmail(f.Context(), c.email))(f).ID, "192.0.2.1")
	for range 50 {
		key, _, err := c.store.Keys.Generate(f.Context(), c.account.ID, keys.NewKey{Label: "harmless", FormID: uuid.New()}, actor)
		modelstest.Must(f, err)
		modelstest.Value(c.store.Keys.Revoke(f.Context(), c.account.ID, key.ID, "", actor))(f)
	}
	harmless, _ := c.life(f, "harmless")
	refused, made := c.life(f, "")
	if made {
		f.Fatal("a key without a label")
	}
	want := map[string][]string{}
	for _, page := range slices.Concat(harmless, refused) {
		want[page.name] = page.skeleton()
	}
	for _, seed := range []string{
		"production", " trimmed ", "", "<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, `' autofocus onfocus='alert(1)`, "{{.Key}}",
		"</td></tr></table>", "<!--", "]]>", "&lt;b&gt;", "&amp;amp;", "&#0;", "&", "javascript:alert(1)", "\u202egnp.exe", "a\u2028b", "a\u00a0b", "\ufeffa",
		"a\x00b", "a\r\nb", "a\tb", "\xff\xfe", "\xed\xa0\x80", strings.Repeat("é", 100), strings.Repeat("😀", 101), "</textarea></title><plaintext>",
		"<hx-partial hx-target=\"#status\">", "%3Cb%3E", "+", "nas_000000000000000000000000000000000000", "</strong>", "<template>", "`${1}`", "=1+1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, label string) {
		pages, made := c.life(t, label)
		for _, page := range pages {
			if got := page.skeleton(); !slices.Equal(got, want[page.name]) {
				t.Errorf("%s: the label %q changes the page:\n%s", page.name, label, firstDifference(got, want[page.name]))
			}
			switch {
			case !made:
				// HTML normalizes line ends and replaces NUL (HTML standard,
				// 13.2.3.5 and 13.2.5).
				input := strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "\ufffd").Replace(label)
				if got := page.one("textbox", "Label").attr("value"); !sameText(got, input) {
					t.Errorf("the field holds %q, want the input %q", got, label)
				}
			case !slices.ContainsFunc(page.texts(), func(text string) bool { return strings.Contains(text, strings.TrimSpace(label)) }):
				t.Errorf("%s: the page does not show the label %q", page.name, label)
			}
		}
	})
}

// Any cookie that names no session yields a visitor and no error, even with a valid signature.
func FuzzSessionCookie(f *testing.F) {
	const secret = "the secret of the fuzzed portal, long enough"
	s := sqliteSite(f, httpBase).withSecrets(f, secret, "")
	c := s.customer(f)
	live := c.sessionCookie()
	codec := securecookie.New(handlerstest.Keyring(f, secret, "").CookieKeys()[0], nil)
	const raw, signedText, signedBytes = 0, 1, 2
	for _, seed := range []string{
		"", "x", "=", "; session=", "session=session", `"quoted"`, "a b", "\x00", "\r\nX: y", "\xff", "MTc2MzY1|", "fHx8", strings.Repeat("A", 4096), strings.Repeat("A", 15<<10),
		"x; session=y; session=z", "$LIVE", "x$LIVE", "$LIVEx", "' OR 1=1; --", "%00", strings.Repeat("=", 99),
	} {
		for kind := range byte(3) {
			f.Add(seed, kind)
		}
	}
	f.Fuzz(func(t *testing.T, value string, kind byte) {
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
			got := s.visitor(t).send(http.MethodGet, path, "", "Cookie: "+header)
			if isLive && got.status < http.StatusInternalServerError {
				continue
			}
			if got.status != status || strings.Contains(got.body, c.email) {
				t.Fatalf("with the cookie %q %s gets status %d", sent, path, got.status)
			}
		}
	})
}

func cookiesIn(header string) []*http.Cookie {
	r := http.Request{Header: http.Header{"Cookie": {header}}}
	return r.CookiesNamed("session")
}

// skeleton returns the elements and attribute names of a page, without texts and values.
func (e element) skeleton() (parts []string) {
	for node := range e.node.Descendants() {
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
func (e element) texts() (texts []string) {
	for node := range e.node.Descendants() {
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
