package templates_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models/agents"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/record"
	"portal/templates"
)

func parsed(t *testing.T) *templates.Templates {
	t.Helper()
	set, err := templates.New(func(name string) (string, error) { return "/" + name, nil })
	if err != nil {
		t.Fatal(err)
	}
	return set
}

var (
	key      = templates.APIKeyRow{Key: keys.Key{ID: uuid.New(), Label: "Staging", LastFour: "abcd"}}
	agent    = templates.AgentItem{Agent: agents.Agent{ID: uuid.New(), Name: "Front desk"}}
	examples = templates.NewExamples("https://example.com", "")
)

func TestEveryPageRendersInItsLayout(t *testing.T) {
	set := parsed(t)
	for heading, page := range map[string]templates.Page{
		"Sign in</h1>":           templates.SignInPage{},
		"API Keys</h1>":          templates.APIKeysPage{List: templates.APIKeyList{Keys: []templates.APIKeyRow{key}}},
		"API key generated</h1>": templates.APIKeyReveal{},
		"Agents</h1>":            templates.AgentsPage{List: templates.AgentList{Agents: []templates.AgentItem{agent}}},
		"Activity</h1>":          templates.ActivityPage{Days: templates.ActivityDays([]templates.ActivityItem{{}})},
		"Account</h1>":           templates.AccountPage{Sessions: templates.SessionList{Sessions: []templates.SessionItem{{}}}},
		"Integrate</h1>":         templates.IntegrationPage{Examples: examples},
		"Gone</h1>":              templates.ErrorPage{Title: "Gone"},
	} {
		html, err := set.Page(templates.Frame{Account: "Example Ltd", Notice: "Done so."}, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{heading, "</html>", "Done so.", `id="failure"`} {
			if !strings.Contains(string(html), part) {
				t.Errorf("the page of %T lacks %q", page, part)
			}
		}
	}
}

func TestEveryFragmentRendersAlone(t *testing.T) {
	set := parsed(t)
	for id, fragment := range map[string]templates.Fragment{
		`id="sign-in"`:                         templates.SignInForm{},
		`id="session-list"`:                    templates.SessionList{},
		`id="password-form"`:                   templates.PasswordForm{},
		`id="current-password"`:                templates.PasswordChanged{},
		`id="snippet-go"`:                      templates.IntegrationPage{Examples: examples},
		`id="api-key-form"`:                    templates.APIKeyForm{},
		`id="api-key-list"`:                    templates.APIKeyList{},
		`id="api-key-` + key.ID.String() + `"`: key,
		`<dialog`:                              templates.APIKeyGenerated{},
		`hx-swap="delete"`:                     templates.APIKeyRevoked{},
		`id="agent-form"`:                      templates.AgentForm{},
		`id="agent-list"`:                      templates.AgentList{},
		`id="agent-` + agent.ID.String() + `"`: agent,
		`hx-target="#agent-list"`:              templates.AgentsPage{},
		`hx-target="#agent-list-header"`:       templates.AgentRemoved{List: templates.AgentList{Agents: []templates.AgentItem{agent}}},
		`id="activity"`:                        templates.ActivityPage{},
		`hx-target="#failure"`:                 templates.Failure{},
	} {
		html, err := set.Fragment(fragment, "")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(html), id) {
			t.Errorf("the fragment of %T lacks %s", fragment, id)
		}
		if strings.Contains(string(html), "<html") {
			t.Errorf("the fragment of %T is a page", fragment)
		}
		if html, err := set.Fragment(fragment, "Done so."); err != nil || !strings.Contains(string(html), "Done so.") {
			t.Errorf("the fragment of %T lacks its notice: %v", fragment, err)
		}
	}
}

// The error of a field is between the field and its hints, on every page.
func TestErrorsStandAboveHints(t *testing.T) {
	files, err := filepath.Glob("*/*.html")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range regexp.MustCompile(`<div class="field|<fieldset|<form|{{define`).Split(string(text), -1) {
			before, _, found := strings.Cut(field, "field-problem")
			if found && strings.Contains(before, `-hint" class="hint`) {
				t.Errorf("%s has an error below a hint in %q", file, field)
			}
		}
	}
}

func TestAMissingAssetFailsThePage(t *testing.T) {
	missing := errors.New("missing")
	set, err := templates.New(func(string) (string, error) { return "", missing })
	if err != nil {
		t.Fatal(err)
	}
	if html, err := set.Page(templates.Frame{}, templates.SignInPage{}); !errors.Is(err, missing) || html != nil {
		t.Errorf("got %d bytes and %v", len(html), err)
	}
}

func TestEveryActionHasOneText(t *testing.T) {
	set, err := templates.New(func(name string) (string, error) { return "/" + name, nil })
	if err != nil {
		t.Fatal(err)
	}
	var actions []record.Action
	for _, group := range templates.ActionGroups {
		for _, text := range group.Actions {
			actions = append(actions, text.Action)
			item := templates.ActivityItem{Activity: record.Activity{Action: text.Action}}
			html, err := set.Fragment(templates.ActivityPage{Days: templates.ActivityDays([]templates.ActivityItem{item})}, "")
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(html), `<svg class="icon"`) || len(text.Sentence) == 0 || text.Name == "" {
				t.Errorf("%s has no icon, sentence or name", text.Action)
			}
		}
	}
	slices.Sort(actions)
	if want := modelstest.Actions(t); !slices.Equal(actions, want) {
		t.Errorf("the table has %q, want %q", actions, want)
	}
}

func TestRepeatedActivityHasItsNumber(t *testing.T) {
	set, err := templates.New(func(name string) (string, error) { return "/" + name, nil })
	if err != nil {
		t.Fatal(err)
	}
	item := templates.ActivityItem{Activity: record.Activity{Action: record.ActionPasswordRefused, Count: 1, Repeats: 9}}
	html, err := set.Fragment(templates.ActivityPage{Days: templates.ActivityDays([]templates.ActivityItem{item})}, "")
	if err != nil || !strings.Contains(string(html), "entered an incorrect current password 10 times") {
		t.Errorf("%v:\n%s", err, html)
	}
}

func TestChangeOfSignInHasAMail(t *testing.T) {
	mails, err := templates.NewMails()
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[record.Action]string{
		record.ActionTOTPOff:           "Two-step verification was turned off for ada@example.com.",
		record.ActionCodesRefused:      "Otherwise change your password on the Account page.",
		record.ActionSecondFactorReset: "Two-step verification and all passkeys were removed for ada@example.com.",
	} {
		mail, err := mails.Render(templates.Mail{Kind: kind, Recipient: "ada@example.com"})
		if err != nil || !strings.Contains(mail.Text, want) || !strings.Contains(mail.HTML, want) {
			t.Errorf("%v:\n%s", err, mail.Text)
		}
	}
}

func TestDeviceIsNamedAfterItsBrowserAndSystem(t *testing.T) {
	const windows = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"
	for userAgent, want := range map[string]string{
		windows:                           "Chrome on Windows",
		windows + " Edg/140.0.0.0":        "Edge on Windows",
		"curl/8.5.0":                      "curl",
		"<script>alert(1)</script>":       "Unknown device",
		"Mozilla/5.0 (X11; Linux x86_64)": "Browser on Linux",
		"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0":                                                                  "Firefox on Linux",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1": "Safari on iPhone",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Safari/605.1.15":                   "Safari on Mac",
		"Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36":                            "Chrome on Android",
		"Mozilla/5.0 (iPad; CPU OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/140.0 Mobile/15E148 Safari/604.1":           "Chrome on iPad",
	} {
		if got := templates.Device(userAgent); got != want {
			t.Errorf("%s is %q, want %q", userAgent, got, want)
		}
	}
}

func TestCountHasThousandsSeparators(t *testing.T) {
	for n, want := range map[templates.Count]string{
		0: "0", 999: "999", 1204: "1,204", 100000: "100,000", 1234567: "1,234,567", -999: "-999", -1000: "-1,000",
	} {
		if got := n.String(); got != want {
			t.Errorf("Count(%d) = %q, want %q", int64(n), got, want)
		}
	}
}

func TestMomentHasRelativeWords(t *testing.T) {
	const day = 24 * time.Hour
	now := time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC)
	for elapsed, want := range map[time.Duration]string{
		-time.Hour:                      "just now",
		0:                               "just now",
		59 * time.Second:                "just now",
		time.Minute:                     "1 minute ago",
		119 * time.Second:               "1 minute ago",
		2 * time.Minute:                 "2 minutes ago",
		59*time.Minute + 59*time.Second: "59 minutes ago",
		time.Hour:                       "1 hour ago",
		23 * time.Hour:                  "23 hours ago",
		day:                             "1 day ago",
		29 * day:                        "29 days ago",
		30 * day:                        "1 month ago",
		364 * day:                       "12 months ago",
		365 * day:                       "1 year ago",
		800 * day:                       "2 years ago",
	} {
		if got := templates.NewMoment(now.Add(-elapsed), now).Words; got != want {
			t.Errorf("after %v: %q, want %q", elapsed, got, want)
		}
	}
}

func TestMomentIsExactInUTC(t *testing.T) {
	at := time.Date(2026, 3, 14, 1, 26, 53, 0, time.FixedZone("", -8*3600))
	got := templates.NewMoment(at, at)
	want := templates.Moment{
		Machine: "2026-03-14T09:26:53Z", Exact: "14 Mar 2026, 09:26:53 UTC", Date: "14 Mar 2026", Words: "just now",
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestHighlightedCodeKeepsItsText(t *testing.T) {
	for _, snippet := range templates.NewGuides("https://portal.example.com").Snippets() {
		var text strings.Builder
		colored := 0
		for _, token := range snippet.Tokens() {
			text.WriteString(token.Text)
			if token.Class != "" {
				colored++
			}
		}
		if text.String() != snippet.Code() {
			t.Errorf("%s: the tokens are not the code:\n%s", snippet.ID, text.String())
		}
		if colored == 0 {
			t.Errorf("%s has no color: run make assets", snippet.ID)
		}
		if strings.Contains(snippet.Code(), "BASE_URL") || strings.Contains(snippet.Code(), "TOKEN_URL") {
			t.Errorf("%s has a placeholder", snippet.ID)
		}
	}
}

func TestUnknownCodeHasNoColors(t *testing.T) {
	snippet := templates.NewSnippet("x", "X", "bash", "a WORD b\n", strings.NewReplacer("WORD", "word"))
	if tokens := snippet.Tokens(); len(tokens) != 1 || tokens[0] != (templates.Token{Text: "a word b"}) {
		t.Errorf("tokens %+v", tokens)
	}
}

func TestNamesDoNotChangeTheOrderOfASentence(t *testing.T) {
	const label = "לקוח 7"
	row := templates.APIKeyRow{Key: keys.Key{ID: uuid.New(), Label: "Staging", LastFour: "abcd"}}
	row.Rotation = &templates.KeyRotation{Label: label, Created: "27 Nov"}
	html, err := parsed(t).Page(templates.Frame{}, templates.APIKeysPage{List: templates.APIKeyList{Keys: []templates.APIKeyRow{row}}})
	if err != nil || !strings.Contains(string(html), `Replaced by <bdi translate="no">`+label+"</bdi>, 27 Nov") {
		t.Errorf("the label is not isolated: %v\n%s", err, html)
	}
	for name, want := range map[string]string{
		label: "\u2068" + label + "\u2069", "شركة 2": "\u2068شركة 2\u2069", "Zürich – Prüfung 7": "Zürich – Prüfung 7", "東京": "東京",
	} {
		if got := templates.Isolate(name); got != want {
			t.Errorf("%q in a text is %q, want %q", name, got, want)
		}
	}
	mails, err := templates.NewMails()
	if err != nil {
		t.Fatal(err)
	}
	invitation := templates.Mail{Kind: record.ActionInvitationCreated, Account: label}
	content, err := mails.Render(invitation)
	if err != nil || !strings.Contains(content.Text, "the account \u2068"+label+"\u2069 as a member") || content.Subject != "Invitation to join \u2068"+label+"\u2069" {
		t.Errorf("the name is not isolated: %v\n%q\n%q", err, content.Subject, content.Text)
	}
}

func TestMailAboutANewEmailNamesWhoHelps(t *testing.T) {
	mails, err := templates.NewMails()
	if err != nil {
		t.Fatal(err)
	}
	for support, want := range map[string]string{
		"": "contact the person who gave you access.\n", "mailto:help@example.com?subject=Portal": "contact support: help@example.com\n",
		"https://example.com/help": "contact support: https://example.com/help\n",
	} {
		content, err := mails.Render(templates.Mail{Kind: record.ActionEmailChanged, SupportURL: support})
		if err != nil || !strings.Contains(content.Text, want) {
			t.Errorf("%q: %v, the text is %s", support, err, content.Text)
		}
	}
}

// Apps split the label at the first colon, and compare the part before it with the issuer.
func TestTOTPURLHasOneColon(t *testing.T) {
	got := templates.TOTPURL("Acme: Voice", "ada@example.com", "ABC")
	if want := "otpauth://totp/Acme%20Voice:ada@example.com?issuer=Acme%20Voice&secret=ABC"; got != want {
		t.Errorf("the URL is %s, want %s", got, want)
	}
}
