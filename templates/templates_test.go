package templates_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"portal/models"
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
	key      = templates.APIKeyRow{ID: uuid.New(), Label: "Staging", Masked: "nas_...abcd"}
	agent    = templates.AgentItem{Agent: models.Agent{ID: uuid.New(), Name: "Front desk"}}
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
		`hx-target="#api-key-list-heading"`:    templates.APIKeyRevoked{},
		`id="agent-form"`:                      templates.AgentForm{},
		`id="agent-list"`:                      templates.AgentList{},
		`id="agent-` + agent.ID.String() + `"`: agent,
		`hx-target="#agent-list"`:              templates.AgentCreated{},
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

func TestChangeOfSignInHasAMail(t *testing.T) {
	mails, err := templates.NewMails()
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]string{
		"authenticator.disabled": "Two-step verification was turned off for ada@example.com.",
		"second_factor.reset":    "Two-step verification and all passkeys were removed for ada@example.com.",
	} {
		mail, err := mails.Render(templates.Mail{Kind: kind, Recipient: "ada@example.com"})
		if err != nil || !strings.Contains(mail.Text, want) || !strings.Contains(mail.HTML, want) {
			t.Errorf("%v:\n%s", err, mail.Text)
		}
	}
}
