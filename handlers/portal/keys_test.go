package portal_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
	"golang.org/x/net/html"

	"portal/models/keys"
	"portal/models/value"
)

var wholeKey = regexp.MustCompile(`nas_[0-9A-Za-z]{36}`)

func generation(label, formID string) url.Values {
	return url.Values{"label": {label}, "form_id": {formID}}
}

func TestPageOfKeysListsThemInExactlyFiveColumns(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		empty := c.get("/api-keys").is(http.StatusOK)
		empty.one("heading", "API Keys")
		empty.none("table", "Active API keys")
		older, newer, used := c.key("older"), c.key("newer"), c.used("used", 1)

		page := c.get("/api-keys").is(http.StatusOK)
		table := page.one("table", "Active API keys")
		headers := table.all("columnheader", "")
		if len(headers) != 5 {
			t.Fatalf("the table has %d columns, want 5", len(headers))
		}
		for i, name := range []string{"Label", "Key", "Created", "Last Used", "Actions"} {
			headers[i].exactly(name)
		}
		rows := table.all("row", "")[1:]
		for i, key := range []keys.Key{used, newer, older} {
			cells := rows[i].all("cell", "")
			if len(cells) != 5 {
				t.Fatalf("a row has %d cells, want 5", len(cells))
			}
			cells[0].exactly(key.Label)
			cells[1].exactly("nas_..." + key.LastFour)
			cells[2].one("time", "")
			if key.ID != used.ID {
				cells[3].exactly("Never")
			} else if moment := cells[3].one("time", "just now"); moment.attr("datetime") == "" || moment.attr("title") == "" {
				t.Error("the time of the last use has no machine-readable value or no title")
			}
			rows[i].one("button", "Revoke")
		}
	})
}

func TestGeneratingShowsTheKeyOnceAsAPage(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		agent := c.agent("Front desk")
		formID := c.get("/api-keys").formID()

		page := c.post("/api-keys", generation(" production ", formID)).is(http.StatusOK)
		page.one("heading", "API key generated")
		page.none("dialog", "")
		key := onceInTheField(t, page)
		page.says("$NAS_API_KEY", agent.ID.String(), s.base.String()+"/api/widget/token", "production")
		page.one("button", "Done").form().with("method", "get").with("action", "/api-keys#api-key-"+c.keys()[0].ID.String())
		c.use(key)
		neverAgain(t, c.visitor, key)
	})
}

func TestGeneratingShowsTheKeyOnceInADialog(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		c.key("another")
		formID := c.get("/api-keys").formID()

		fragment := c.fragments().post("/api-keys", generation("production", formID)).is(http.StatusOK)
		dialog := fragment.one("dialog", "API key generated")
		key := onceInTheField(t, fragment)
		for _, name := range []string{"Copy key", "Copy .env line", "Done", "Close without copying"} {
			dialog.one("button", name)
		}
		refreshed(t, c.visitor, fragment).one("cell", "production")
		if len(fragment.body) > 6<<10 {
			t.Errorf("the response has %d bytes", len(fragment.body))
		}
		if fragment.formID() == formID {
			t.Error("the form was not renewed")
		}
		fragment.none("textbox", "Label") // the form stays, and the script empties it
		neverAgain(t, c.visitor, key)
	})
}

// refreshed returns the list that the page fetches after the event of a fragment.
func refreshed(t *testing.T, v *visitor, fragment answer) answer {
	t.Helper()
	list := v.get("/api-keys")
	event := fragment.header.Get("HX-Trigger")
	poll := list.byID("api-key-seen")
	if event == "" || !strings.Contains(poll.attr("hx-trigger"), event+" from:document") {
		t.Fatalf("the list does not wait for the event %q", event)
	}
	return list
}

// onceInTheField returns the key of a response, which must contain it exactly once.
func onceInTheField(t *testing.T, a answer) string {
	t.Helper()
	keys := wholeKey.FindAllString(a.body, -1)
	field := a.one("textbox", "API key")
	if len(keys) != 1 || field.attr("value") != keys[0] {
		t.Fatalf("the response contains %d keys, want the one in the field", len(keys))
	}
	if !field.has("readonly") {
		t.Error("the field can be written to")
	}
	return keys[0]
}

// neverAgain checks that no page shows the key.
func neverAgain(t *testing.T, v *visitor, key string) {
	t.Helper()
	for _, path := range []string{"/api-keys", "/agents", "/activity", "/login"} {
		for _, asking := range []*visitor{v, v.fragments()} {
			if strings.Contains(asking.get(path).body, key[4:]) {
				t.Errorf("%s shows the key again", path)
			}
		}
	}
}

func TestGenerationIsRefusedWithTheInputKept(t *testing.T) {
	cases := map[string]struct {
		label, formID, alert string
		onField              bool
	}{
		"no label":             {"  ", uuid.NewString(), "label", true},
		"label too long":       {strings.Repeat("long ", 20) + "!", uuid.NewString(), "100", true},
		"control character":    {"a\x01b", uuid.NewString(), "control", true},
		"no form id":           {"kept", "", "Try again", false},
		"malformed form id":    {"kept", "123", "Try again", false},
		"form id as a URN":     {"kept", "urn:uuid:" + uuid.NewString(), "Try again", false},
		"form id of all zeros": {"kept", uuid.Nil.String(), "Try again", false},
	}
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		for name, test := range cases {
			t.Run(name, func(t *testing.T) {
				bothVoices(t, func(t *testing.T, as voice) {
					v := as.of(t, c.visitor)
					refused := v.post("/api-keys", generation(test.label, test.formID)).is(http.StatusUnprocessableEntity)
					field := refused.one("textbox", "Label")
					field.with("value", test.label)
					if got := field.attr("aria-invalid") == "true"; got != test.onField {
						t.Errorf("aria-invalid is %v", got)
					}
					alert := refused.one("alert", test.alert)
					alert.describes(field)
					if refused.formID() == test.formID {
						t.Error("the form was not renewed")
					}
				})
			})
		}
		c.get("/api-keys").says("No API keys yet")
	})
}

func TestRepeatedFormGeneratesNothingAndNamesItsKey(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		formID := c.get("/api-keys").formID()
		c.post("/api-keys", generation("first", formID)).is(http.StatusOK)
		keys := c.keys()
		if len(keys) != 1 {
			t.Fatalf("there are %d keys, want 1", len(keys))
		}
		made := keys[0]

		bothVoices(t, func(t *testing.T, as voice) {
			v := as.of(t, c.visitor)
			repeat := v.post("/api-keys", generation("second", formID)).is(http.StatusConflict)
			alert := repeat.one("alert", "already created")
			alert.says("first", made.Masked(), "cannot be shown again")
			alert.one("link", "Generate another key")
			way := alert.one("link", "Revoke this key").attr("href")
			v.get(way).is(http.StatusOK).one("button", "Confirm revoke")
			if wholeKey.MatchString(repeat.body) {
				t.Error("the response contains a key")
			}
			if repeat.formID() == formID {
				t.Error("the form was not renewed")
			}
			repeat.one("textbox", "Label").with("value", "second")
		})

		c.revoke(made)
		late := c.post("/api-keys", generation("second", formID)).is(http.StatusConflict)
		late.one("alert", "has since been revoked")
		late.none("link", "Revoke this key")
	})
}

func TestFullAccountIsRefused(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		var old keys.Key
		for i := range value.MaxActiveKeys {
			old = c.used("one of many", i%2)
		}
		page := c.get("/api-keys").is(http.StatusOK)
		page.says("100 of 100")
		elements := 0
		for node := range page.node.Descendants() {
			if node.Type == html.ElementNode {
				elements++
			}
		}
		if elements > 3000 {
			t.Errorf("the page with the most keys has %d elements, want at most 3,000", elements)
		}
		rotation := c.get(rotationOf(old)).is(http.StatusOK)
		rotation.says("reached the limit of", "100 active keys")
		rotation.none("button", "Create replacement key")
		bothVoices(t, func(t *testing.T, as voice) {
			v := as.of(t, c.visitor)
			full := v.post("/api-keys", generation("one too many", uuid.NewString())).is(http.StatusUnprocessableEntity)
			full.one("alert", "Revoke one")
			full.one("textbox", "Label").with("value", "one too many")
			v.post(rotationOf(old), url.Values{"form_id": {uuid.NewString()}}).
				is(http.StatusUnprocessableEntity).says("reached the limit of")
		})
	})
}

func TestFirstRequestOfAKeyIsShown(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		key, use := c.keyInUse("new", uuid.Nil)
		path := "/api-keys/" + key.ID.String() + "/first-use"
		if nothing := c.fragments().get(path).is(http.StatusNoContent); nothing.body != "" {
			t.Errorf("before it, the response is %q", nothing.body)
		}
		use()
		c.fragments().get(path).is(http.StatusOK).one("status", "First request received")
		c.get(path).redirects("/api-keys#revoke-" + key.ID.String())
		unused := c.key("unused")
		c.revoke(unused)
		c.fragments().get("/api-keys/"+unused.ID.String()+"/first-use").is(http.StatusOK).one("status", "revoked")
	})
}

func TestPageAfterAKeyClearsTheCache(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		old := c.key("production")
		for path, form := range map[string]url.Values{
			"/api-keys":     generation("new", uuid.NewString()),
			rotationOf(old): {"form_id": {uuid.NewString()}},
		} {
			page := c.post(path, form).is(http.StatusOK)
			onceInTheField(t, page)
			marks := page.header.Values("Set-Cookie")
			if len(marks) != 1 || !regexp.MustCompile(`^revealed=[\w=-]{20,}; Path=/; HttpOnly; SameSite=Lax$`).MatchString(marks[0]) {
				t.Errorf("the page with a key sets %q", marks)
			}
			next := c.get("/activity").is(http.StatusOK)
			next.headed("Clear-Site-Data", `"cache"`)
			last := c.get("/activity").is(http.StatusOK)
			if last.header.Get("Clear-Site-Data") != "" || last.header.Get("Set-Cookie") != "" {
				t.Error("the page after that clears it again")
			}
		}
		// The page itself clears a key in a dialog.
		if fragment := c.fragments().post("/api-keys", generation("new", uuid.NewString())); fragment.header.Get("Set-Cookie") != "" {
			t.Error("the response to a script sets a cookie")
		}
	})
}
