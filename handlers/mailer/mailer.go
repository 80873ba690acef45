// Package mailer sends the mails of package outbox by SMTP. Each instance of the portal runs one
// [Mailer], and the outbox leases each mail to one of them at a time.
package mailer

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/mail"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	gomail "github.com/wneessen/go-mail"

	"portal/handlers/brand"
	"portal/models"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
	"portal/templates"
)

const (
	pollInterval = time.Second
	// unreachablePause is the time to the next attempt after the server did not accept a
	// connection. All mails wait meanwhile.
	unreachablePause = 10 * time.Second
	// deliveryTimeout is how long after a claim the mailer may begin to send the mail. Together
	// with stepTimeout it is shorter than the lease.
	deliveryTimeout = time.Minute
	// maxRefused is how many mailboxes in a row a server can refuse before it is not believed.
	maxRefused = 2
	// stopTimeout is how long the mail that is being sent may take after a stop.
	stopTimeout = 3 * time.Second
)

// Config configures a [Mailer].
type Config struct {
	Store   *models.Store
	Server  Server
	From    *mail.Address // without a name, the product's name is used
	Product string        // name of the product
	Brand   brand.Brand
	BaseURL string // of the portal
	Logger  *slog.Logger

	SupportURL string // leads users to help; may be empty
}

// Mailer sends mails.
type Mailer struct {
	Config

	mails       *templates.Mails
	clientName  string        // by which the mailer introduces itself to the server
	poll, pause time.Duration // pollInterval and unreachablePause

	// refused are the first recipients whose mailboxes the server has refused since it
	// accepted a mail, at most maxRefused. Only Run uses it.
	refused []string

	sent, failed, dropped atomic.Uint64
}

// Stats count mails since the start of the process.
type Stats struct {
	Sent    uint64
	Failed  uint64 // attempts that will be repeated
	Dropped uint64 // refused by the server or too old
}

// New returns a mailer, or an error if a template is invalid.
func New(c Config) (*Mailer, error) {
	mails, err := templates.NewMails()
	if err != nil {
		return nil, err
	}
	if c.From.Name == "" {
		c.From = &mail.Address{Name: c.Product, Address: c.From.Address}
	}
	c.BaseURL = strings.TrimSuffix(c.BaseURL, "/")
	return &Mailer{
		Config: c, mails: mails, clientName: clientName(c.BaseURL, c.From), poll: pollInterval, pause: unreachablePause,
	}, nil
}

// Stats returns the counts.
func (m *Mailer) Stats() Stats {
	return Stats{Sent: m.sent.Load(), Failed: m.failed.Load(), Dropped: m.dropped.Load()}
}

// Run sends mails until ctx ends. After that, the mail that is being sent has three seconds. If it
// takes longer, another instance sends it again after its lease.
func (m *Mailer) Run(ctx context.Context) {
	abandon := make(chan struct{})
	context.AfterFunc(ctx, func() { time.AfterFunc(stopTimeout, func() { close(abandon) }) })
	for {
		wait := m.sendDue(ctx, abandon)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// sendDue sends the mails that are due, and returns the time to wait for the next call.
func (m *Mailer) sendDue(ctx context.Context, abandon <-chan struct{}) time.Duration {
	for ctx.Err() == nil {
		err := m.sendNext(ctx, abandon)
		failed, undelivered := errors.AsType[*deliveryError](err)
		switch {
		case undelivered && failed.stage == "connect":
			return m.pause
		case errors.Is(err, value.ErrNoMail):
			return m.poll
		case err != nil && !undelivered && ctx.Err() == nil:
			m.Logger.ErrorContext(ctx, "cannot use the outbox", slog.Any("cause", err))
			return m.poll
		}
	}
	return m.poll
}

// sendNext claims a mail and sends it. When abandon is closed, it returns even if the server has
// not responded. The error may be [value.ErrNoMail], a *deliveryError or an error of the store.
func (m *Mailer) sendNext(ctx context.Context, abandon <-chan struct{}) error {
	claiming, cancel := context.WithTimeout(ctx, m.Store.Timeout())
	defer cancel()
	queued, token, err := m.Store.Outbox.Claim(claiming)
	if err != nil {
		return err
	}
	message, err := m.message(queued, token)
	if err != nil {
		// A template or an address is wrong, which a retry does not change.
		return errors.Join(m.failedMail(ctx, queued, err, true), err)
	}
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), deliveryTimeout)
	defer cancel()
	outcome := make(chan error, 1)
	go func() { outcome <- m.Server.deliver(sending, m.clientName, message) }()
	select {
	case err = <-outcome:
	case <-abandon:
		return ctx.Err() // the outcome is unknown, so the lease stays
	}
	if err != nil {
		failed, _ := errors.AsType[*deliveryError](err)
		permanent := failed != nil && failed.permanent && m.believes(queued.Recipient)
		return errors.Join(err, m.failedMail(ctx, queued, err, permanent))
	}
	m.sent.Add(1)
	m.refused = nil
	finishing, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.Store.Timeout())
	defer cancel()
	return m.Store.Outbox.Sent(finishing, queued)
}

// believes reports whether the server, which has refused a recipient's mailbox, is right about it.
// A server that refuses several in a row is probably wrong about all.
func (m *Mailer) believes(recipient string) bool {
	if !slices.Contains(m.refused, recipient) {
		if len(m.refused) == maxRefused {
			return false
		}
		m.refused = append(m.refused, recipient)
	}
	return true
}

// failedMail logs a failed attempt and schedules the next one.
func (m *Mailer) failedMail(ctx context.Context, queued record.Mail, cause error, permanent bool) error {
	finishing, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.Store.Timeout())
	defer cancel()
	dropped, err := m.Store.Outbox.Failed(finishing, queued, permanent)
	logger := m.Logger.With(slog.String("mail", queued.ID.String()), slog.String("kind", string(queued.Kind)),
		slog.Int("attempt", queued.Attempts), slog.Any("cause", cause))
	// Who sees the count finds the line in the log.
	if dropped {
		logger.ErrorContext(ctx, "a mail was dropped")
		m.dropped.Add(1)
	} else {
		logger.WarnContext(ctx, "a mail was not sent and will be tried again")
		m.failed.Add(1)
	}
	return err
}

func (m *Mailer) message(queued record.Mail, token string) (*gomail.Msg, error) {
	device := ""
	if queued.UserAgent != "" {
		device = templates.Device(queued.UserAgent)
	}
	var keys []templates.MailKey
	for _, key := range queued.Keys[:min(len(queued.Keys), record.MaxLeakedKeys)] {
		keys = append(keys, templates.MailKey{Label: key.Label, Key: key.Masked, Leaked: key.Leak.String(), At: templates.NewMoment(key.At, queued.At)})
	}
	logo, colors := m.brand()
	content, err := m.mails.Render(templates.Mail{
		HomeURL: m.Brand.HomeURL, Logo: logo, Colors: colors,
		Kind: queued.Kind, Product: m.Product, BaseURL: m.BaseURL, SupportURL: m.SupportURL, Recipient: queued.Recipient,
		Account: queued.AccountName, Actor: queued.ActorName, Label: queued.Label, Key: queued.MaskedKey(),
		Reason: queued.Reason, Detail: queued.Detail, Device: device, Address: queued.Address,
		At: templates.NewMoment(queued.At, queued.At), Token: token, EmailFreed: queued.EmailFreed(),
		Owner: queued.Role == string(people.RoleOwner), Expires: templates.NewMoment(queued.ExpiresAt, queued.At), Keys: keys,
		MoreKeys: len(queued.Keys) > len(keys),
	})
	if err != nil {
		return nil, err
	}
	message := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	message.SetAddrHeaderFromMailAddress(gomail.HeaderFrom, m.From)
	if err := message.To((&mail.Address{Address: value.MailAddress(queued.Recipient)}).String()); err != nil {
		return nil, errors.New("the address of the recipient is invalid")
	}
	_, domain, _ := strings.Cut(m.From.Address, "@")
	message.SetMessageIDWithValue(messageID(queued) + "@" + domain)
	message.SetDateWithValue(queued.At)
	message.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834
	message.SetGenHeader("X-Auto-Response-Suppress", "All")  // the same for Exchange
	message.SetGenHeaderPreformatted(gomail.HeaderSubject, foldedSubject(content.Subject+" – "+m.Product))
	message.SetBodyString(gomail.TypeTextPlain, content.Text)
	message.AddAlternativeString(gomail.TypeTextHTML, content.HTML)
	if logo {
		err := message.EmbedReader(logoName, bytes.NewReader(m.Brand.Logo.Content), gomail.WithFileContentID(logoName),
			gomail.WithFileContentType(gomail.ContentType(m.Brand.Logo.ContentType)))
		if err != nil {
			return nil, err
		}
	}
	return message, nil
}

const logoName = "logo.png"

// brand reports whether mails have the logo as a part, and returns the colors. An
// SVG is left out: few email programs show one, and filters take it for an attack.
func (m *Mailer) brand() (logo bool, colors templates.MailColors) {
	logo = m.Brand.Logo != nil && !m.Brand.Logo.IsSVG()
	if a := m.Brand.Accent; a != nil {
		colors = templates.MailColors{
			Button: a.Light.Accent.String(), OnButton: a.Light.On.String(), DarkButton: a.Dark.Accent.String(), DarkOnButton: a.Dark.On.String(),
		}
	}
	return logo, colors
}

// foldedSubject returns a subject as encoded words (RFC 2047) of at most 60 characters, one on each
// line. The first line must have one, because programs show an empty subject otherwise, and
// package mime makes words that are too long for the line of the header's name.
func foldedSubject(text string) string {
	const wordBytes = 36
	var words []string
	for text != "" {
		end := 0
		for end < len(text) {
			_, size := utf8.DecodeRuneInString(text[end:])
			if end+size > wordBytes {
				break
			}
			end += size
		}
		words = append(words, "=?UTF-8?b?"+base64.StdEncoding.EncodeToString([]byte(text[:end]))+"?=")
		text = text[end:]
	}
	return strings.Join(words, "\r\n ")
}

// messageID returns the part of the Message-ID before the domain. A repeated mail has the same one,
// so that mail servers and programs can discard it. If only the link of the last attempt works,
// each attempt has another one.
func messageID(queued record.Mail) string {
	replaced := queued.Kind == record.ActionInvitationCreated || queued.Kind == record.MailEmailConfirmation
	if replaced && queued.Attempts > 1 {
		return fmt.Sprintf("%s.%d", queued.ID, queued.Attempts)
	}
	return queued.ID.String()
}
