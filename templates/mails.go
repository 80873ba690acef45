package templates

import (
	"bytes"
	"embed"
	"fmt"
	html "html/template"
	"path"
	"strings"
	text "text/template"
)

//go:embed mails/*.txt mails/*.html
var mailFiles embed.FS

// Mail is the data of an email. Each kind has one file, which defines the subject, the body and the
// link. A body is paragraphs of plain text; the HTML has the same text.
type Mail struct {
	Kind      string // such as "api_key.generated"
	Product   string // name of the product
	BaseURL   string // of the portal, without a slash at the end
	Recipient string // email address
	Account   string // name of the account
	Actor     string // an email, or "Operator"
	Label     string // of the key; for a changed email, the new one
	Key       string // masked key
	Leaked    string // where the key was found; empty unless it was reported as leaked
	Reason    string // of the revocation; may be empty
	Device    string // such as "Firefox on Linux"; may be empty
	Address   string // IP address of the actor; may be empty
	At        Moment // of the change
	Token     string // of the link; may be empty
	Owner     bool   // an invited person joins as an owner
	Expires   Moment // of an invitation

	Keys []ExpiringKey // nil unless the mail is about them
}

// ExpiringKey is a key in an email about its expiry.
type ExpiringKey struct {
	Label   string
	Key     string // masked
	Expires Moment
}

// signInChanges are the kinds of emails that share the file sign_in_changed.txt, and their text.
var signInChanges = map[string]string{ //nolint:gosec // no credentials
	"authenticator.enabled":  "Two-step verification was turned on",
	"authenticator.disabled": "Two-step verification was turned off",
	"recovery_codes.renewed": "The recovery codes were replaced",
	"passkey.added":          "A passkey was added",
	"passkey.removed":        "A passkey was removed",
	"identity.connected":     "Sign-in with another provider was connected",
	"identity.disconnected":  "Sign-in with another provider was disconnected",
	"second_factor.reset":    "Two-step verification and all passkeys were removed",
}

// Change returns the text for a change of how the recipient signs in.
func (m Mail) Change() string { return signInChanges[m.Kind] }

// MailContent is a rendered email.
type MailContent struct{ Subject, Text, HTML string }

// Mails holds the parsed emails. It is safe for concurrent use.
type Mails struct {
	kinds  map[string]*text.Template // by the name of the file without its extension
	layout *html.Template
}

// mailLayout is the data of the layout.
type mailLayout struct {
	Product, BaseURL, Subject, Link, Action string

	Paragraphs [][]string // lines of each paragraph
	Footnote   [][]string // after the link
}

// NewMails parses the emails.
func NewMails() (*Mails, error) {
	layout, err := html.ParseFS(mailFiles, "mails/layout.html")
	if err != nil {
		return nil, err
	}
	shared, err := text.ParseFS(mailFiles, "mails/layout.txt")
	if err != nil {
		return nil, err
	}
	m := &Mails{kinds: map[string]*text.Template{}, layout: layout}
	entries, err := mailFiles.ReadDir("mails")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		kind, isKind := strings.CutSuffix(entry.Name(), ".txt")
		if !isKind || kind == "layout" {
			continue
		}
		set, err := shared.Clone()
		if err == nil {
			set, err = set.ParseFS(mailFiles, path.Join("mails", entry.Name()))
		}
		if err != nil {
			return nil, err
		}
		m.kinds[kind] = set
	}
	return m, nil
}

// Render returns the content of an email, or an error if the kind has no file.
func (m *Mails) Render(mail Mail) (MailContent, error) {
	file := strings.ReplaceAll(mail.Kind, ".", "_")
	if mail.Change() != "" {
		file = "sign_in_changed"
	}
	set, ok := m.kinds[file]
	if !ok {
		return MailContent{}, fmt.Errorf("no email of the kind %q", mail.Kind)
	}
	parts := map[string]string{}
	for _, name := range []string{"subject", "body", "link", "action", "footnote"} {
		var part strings.Builder
		if err := set.ExecuteTemplate(&part, name, mail); err != nil {
			return MailContent{}, fmt.Errorf("render %s: %w", mail.Kind, err)
		}
		parts[name] = strings.TrimSpace(part.String())
	}
	var page bytes.Buffer
	err := m.layout.Execute(&page, mailLayout{
		Product: mail.Product, BaseURL: mail.BaseURL, Subject: parts["subject"], Link: parts["link"], Action: parts["action"],
		Paragraphs: paragraphs(parts["body"]), Footnote: paragraphs(parts["footnote"]),
	})
	if err != nil {
		return MailContent{}, fmt.Errorf("render %s: %w", mail.Kind, err)
	}
	blocks := []string{parts["body"], parts["action"] + ":\n" + parts["link"]}
	if parts["footnote"] != "" {
		blocks = append(blocks, parts["footnote"])
	}
	blocks = append(blocks, "-- \nAn automatic message from "+mail.Product+", "+mail.BaseURL)
	return MailContent{parts["subject"], strings.Join(blocks, "\n\n") + "\n", page.String()}, nil
}

// paragraphs returns the lines of each paragraph. An empty line separates paragraphs.
func paragraphs(body string) (all [][]string) {
	for paragraph := range strings.SplitSeq(body, "\n\n") {
		if paragraph = strings.TrimSpace(paragraph); paragraph != "" {
			all = append(all, strings.Split(paragraph, "\n"))
		}
	}
	return all
}
