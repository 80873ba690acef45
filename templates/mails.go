package templates

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	html "html/template"
	"path"
	"strings"
	text "text/template"

	"portal/models/record"
)

//go:embed mails/*.txt mails/*.html
var mailFiles embed.FS

// Mail is the data of an email. Each kind has one file, which defines the subject, the body and the
// link. A body is paragraphs of plain text; the HTML has the same text.
type Mail struct {
	Kind      record.Action // or one of the other kinds of package record
	Product   string        // name of the product
	BaseURL   string        // of the portal, without a slash at the end
	Recipient string        // email address
	Account   string        // name of the account
	Actor     string        // an email, or "Operator"
	Label     string        // of the key; for a changed email, the new one
	Key       string        // masked key
	Reason    string        // of the revocation; may be empty
	Detail    string        // of the activity; may be empty
	Device    string        // such as "Firefox on Linux"; may be empty
	Address   string        // IP address of the actor; may be empty
	At        Moment        // of the change
	Token     string        // of the link; may be empty
	Owner     bool          // an invited person joins as an owner
	Expires   Moment        // of an invitation

	EmailFreed bool // see [record.Mail.EmailFreed]

	SupportURL string // leads users to help; may be empty

	HomeURL string     // of the platform; may be empty
	Logo    bool       // the email has a picture with the id "logo.png"
	Colors  MailColors // of the button; zero: the portal's own

	Keys     []MailKey // that expire, are unused or leaked; nil unless the mail is about them
	MoreKeys bool      // more keys leaked than Keys lists
}

// MailColors are the colors of a button and its text, for the light and the dark scheme.
type MailColors struct{ Button, OnButton, DarkButton, DarkOnButton string }

// mailColors are the portal's own.
var mailColors = MailColors{Button: "#0b6b4e", OnButton: "#ffffff", DarkButton: "#6fd0ab", DarkOnButton: "#06241a"}

// MailKey is a key in an email about keys that expire, are unused or leaked.
type MailKey struct {
	Label  string
	Key    string // masked
	Leaked string // who reported it and where it was found; empty for a key that expires
	At     Moment // when it expires, is revoked or was revoked
}

// Change returns the text for a change of how the recipient signs in.
func (m Mail) Change() string { return textOf(m.Kind).Changed }

// Title returns the subject of the email about such a change.
func (m Mail) Title() string { return textOf(m.Kind).Subject }

// Support returns where the recipient gets help, as people write it, or "".
func (m Mail) Support() string {
	address, isAddress := strings.CutPrefix(m.SupportURL, "mailto:")
	if isAddress {
		address, _, _ = strings.Cut(address, "?")
	}
	return address
}

// CodesLeft says how many recovery codes are left after one was used, otherwise "".
func (m Mail) CodesLeft() string {
	left, ok := strings.CutSuffix(m.Detail, " left")
	switch {
	case m.Kind != record.ActionRecoveryCodeUsed || !ok:
		return ""
	case left == "0":
		return "No recovery codes are left. Generate new ones on the Account page."
	case left == "1":
		return "1 recovery code is left. Generate new ones on the Account page."
	}
	return left + " recovery codes are left."
}

// MailContent is a rendered email.
type MailContent struct{ Subject, Text, HTML string }

// Mails holds the parsed emails. It is safe for concurrent use.
type Mails struct {
	kinds  map[string]*text.Template // by the name of the file without its extension
	layout *html.Template
}

type mailLayout struct {
	Product, BaseURL, Subject, Link, Action, HomeURL string

	Logo bool
	MailColors

	Paragraphs [][]string // lines of each paragraph
	Footnote   [][]string // after the link
}

// NewMails parses the emails.
func NewMails() (*Mails, error) {
	layout, err := html.ParseFS(mailFiles, "mails/layout.html")
	if err != nil {
		return nil, err
	}
	shared, err := text.New("layout.txt").Funcs(text.FuncMap{"name": Isolate}).ParseFS(mailFiles, "mails/layout.txt")
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
	file := strings.ReplaceAll(string(mail.Kind), ".", "_")
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
		HomeURL: mail.HomeURL, MailColors: cmp.Or(mail.Colors, mailColors),
		Logo: mail.Logo,
	})
	if err != nil {
		return MailContent{}, fmt.Errorf("render %s: %w", mail.Kind, err)
	}
	blocks := []string{parts["body"], parts["action"] + ":\n" + parts["link"]}
	if parts["footnote"] != "" {
		blocks = append(blocks, parts["footnote"])
	}
	blocks = append(blocks, "-- \nThis is an automated message from "+mail.Product+", "+mail.BaseURL)
	if mail.HomeURL != "" {
		blocks = append(blocks, "Back to "+mail.Product+": "+mail.HomeURL)
	}
	return MailContent{Subject: parts["subject"], Text: strings.Join(blocks, "\n\n") + "\n", HTML: page.String()}, nil
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
