package mailer_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/handlers/brand"
	"portal/handlers/mailer"
	"portal/handlers/mailer/mailertest"
	"portal/models"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

const password = "correct horse battery staple"

var eventually = modelstest.Eventually

// system is a store that queues mails, on a real database.
type system struct {
	*models.Store
	url   string
	clock *modelstest.Clock
	log   *modelstest.LogBuffer
}

func eachDatabase(t *testing.T, run func(t *testing.T, s *system)) {
	t.Helper()
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) { run(t, newSystem(t, url)) })
}

func newSystem(t *testing.T, url string) *system {
	t.Helper()
	clock := modelstest.NewClock(time.Date(2026, time.March, 14, 15, 9, 26, 0, time.UTC))
	s := &system{url: url, clock: clock, log: &modelstest.LogBuffer{}}
	s.Store = s.open(t)
	return s
}

func (s *system) open(t *testing.T) *models.Store {
	t.Helper()
	return modelstest.Open(t, s.url, models.Options{Mail: true, Now: s.clock.Now, Logger: s.log.Logger()})
}

// account creates an account with an owner who has this email.
func (s *system) account(t *testing.T, email string) (people.Account, people.User) {
	t.Helper()
	account := modelstest.Value(s.Accounts.Create(t.Context(), people.NewAccount{Name: "Acme <Ltd>", Email: email, Password: password}))(t)
	return account, modelstest.Value(s.SignIn.VerifyPassword(t.Context(), email, password, people.Client{Address: "203.0.113.7"}))(t)
}

// key generates a key and returns its value.
func (s *system) key(t *testing.T, account people.Account, actor record.Actor) (keys.Key, string) {
	t.Helper()
	key, secret, err := s.Keys.Generate(t.Context(), account.ID, keys.NewKey{Label: "prod <1>", FormID: uuid.New()}, actor)
	modelstest.Must(t, err)
	return key, secret
}

// queue queues a mail to the owner of a new account, who has this email.
func (s *system) queue(t *testing.T, email string) {
	t.Helper()
	account, user := s.account(t, email)
	s.key(t, account, record.UserActor(user.ID, "203.0.113.7"))
}

// waiting returns the number of mails in the outbox.
func (s *system) waiting(t *testing.T) int {
	t.Helper()
	return modelstest.Value(s.Outbox.Waiting(t.Context()))(t)
}

// run sends the store's mails to the server until the returned function is called or the test ends.
func (s *system) run(t *testing.T, store *models.Store, url string) (*mailer.Mailer, func()) {
	t.Helper()
	return s.runBranded(t, store, url, brand.Brand{})
}

func (s *system) runBranded(t *testing.T, store *models.Store, url string, look brand.Brand) (*mailer.Mailer, func()) {
	t.Helper()
	server := modelstest.Value(mailer.ParseServer(url))(t)
	from := modelstest.Value(mailer.ParseSender("portal@example.com"))(t)
	m, err := mailer.New(mailer.Config{
		Store: store, Server: server, From: from, Product: "Voice Portal", Brand: look,
		BaseURL: "https://portal.example.com", SupportURL: "mailto:help@example.com", Logger: s.log.Logger(),
	})
	modelstest.Must(t, err)
	m.Hurry()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.Run(ctx)
	}()
	stop := func() { cancel(); <-done }
	t.Cleanup(stop)
	return m, stop
}

func TestMailsReportChanges(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *system) {
		server := mailertest.Start(t)
		account, user := s.account(t, "ada@example.com")
		actor := record.UserActor(user.ID, "203.0.113.7")
		known := people.Client{Address: "203.0.113.7", UserAgent: "Firefox/140.0 Linux", Device: people.NewDevice(user)}
		unknown := people.Client{Address: "203.0.113.8", UserAgent: known.UserAgent, Device: people.Device{ID: uuid.New(), UserID: uuid.New()}}
		s.run(t, s.Store, server.URL())

		modelstest.Must(t, errOf(s.SignIn.Start(t.Context(), user, known)))
		token := modelstest.Value(s.SignIn.Start(t.Context(), user, unknown))(t).Token
		server.Await(1) // the mail about an ended session does not name the device
		key, secret := s.key(t, account, actor)
		for _, by := range []record.Actor{actor, record.Operator()} {
			other, _ := s.key(t, account, record.Operator())
			modelstest.Must(t, errOf(s.Keys.Revoke(t.Context(), account.ID, other.ID, "On a slide", by)))
		}
		session := modelstest.Value(s.Sessions.Find(t.Context(), token, unknown))(t)
		modelstest.Must(t, errOf(s.Credentials.ChangePassword(t.Context(), session, password, "four words of another kind", actor)))
		modelstest.Must(t, s.Credentials.ResetPassword(t.Context(), "ada@example.com", password))
		user = modelstest.Value(s.SignIn.VerifyPassword(t.Context(), user.Email, password, known))(t)
		known.Device = people.NewDevice(user)
		token = modelstest.Value(s.SignIn.Start(t.Context(), user, known))(t).Token
		session = modelstest.Value(s.Sessions.Find(t.Context(), token, known))(t)
		server.Await(7)
		modelstest.Must(t, s.Credentials.RequestEmailChange(t.Context(), session, password, "new@example.com", actor))
		confirmation := server.Await(8)[7]
		if confirmation.To[0] != "new@example.com" {
			t.Errorf("to %s", confirmation.To)
		}
		link := tokenIn(t, confirmation, "/email-changes/")
		modelstest.Must(t, errOf(s.Credentials.ConfirmEmail(t.Context(), link, actor.Address)))

		mails := slices.Delete(server.Await(9), 7, 8)
		want := []struct{ subject, text string }{
			{"New sign-in", "Device: Firefox on Linux\nTime: 14 Mar 2026, 15:09:26 UTC\nAddress: 203.0.113.8"},
			{"API key generated", "Label: prod <1>\nKey: " + key.Masked() + "\nBy: ada@example.com"},
			{"API key generated", "By: Operator"},
			{"API key generated", "By: Operator"},
			{"API key revoked", "Acme <Ltd>. Requests with it are refused.\n\nReason: On a slide\n\nLabel: "},
			{"Your password was changed", "Address: 203.0.113.7"},
			{"Your password was reset", "https://portal.example.com/login"},
			{"Your email was changed", "Right away, contact support: help@example.com"},
		}
		for i, want := range want {
			mail := mails[i]
			if mail.Subject != want.subject+" – Voice Portal" || !strings.Contains(mail.Text, want.text) {
				t.Errorf("mail %d: %q\n%s\nwant %q with %q", i, mail.Subject, mail.Text, want.subject, want.text)
			}
			if mail.From != "portal@example.com" || mail.To[0] != "ada@example.com" || mail.Hello != "portal.example.com" {
				t.Errorf("the envelope is %s to %s, from %s", mail.From, mail.To, mail.Hello)
			}
			if mail.Header.Get("From") != `"Voice Portal" <portal@example.com>` || mail.Header.Get("Auto-Submitted") != "auto-generated" ||
				mail.Header.Get("X-Auto-Response-Suppress") != "All" {
				t.Errorf("the header is %v", mail.Header)
			}
			if strings.Contains(mail.Raw, secret) || strings.Contains(mail.HTML, "<1>") || strings.Contains(mail.HTML, "<Ltd>") {
				t.Errorf("it has the key, or a name that is not escaped:\n%s", mail.Raw)
			}
			for line := range strings.SplitSeq(want.text, "\n") {
				if !strings.Contains(unescape(mail.HTML), line) {
					t.Errorf("the HTML lacks %q:\n%s", line, mail.HTML)
				}
			}
		}
		eventually(t, "the outbox is empty", func() bool { return s.waiting(t) == 0 })
		if n := len(server.Mails()); n != len(want)+1 {
			t.Errorf("%d mails", n)
		}
	})
}

func TestMailSaysThatAnEmailWasTakenFromAnUnprovenUser(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *system) {
		invite := func(owner string) string {
			account, user := s.account(t, owner)
			_, token, err := s.Invitations.Create(t.Context(), account.ID, "ada@example.com", people.RoleMember, record.UserActor(user.ID, ""))
			modelstest.Must(t, err)
			mail, mailed, err := s.Outbox.Claim(t.Context())
			modelstest.Must(t, err)
			modelstest.Must(t, s.Outbox.Sent(t.Context(), mail))
			if owner == "second@example.com" {
				token = mailed
			}
			return token
		}
		for _, owner := range []string{"first@example.com", "second@example.com"} {
			modelstest.Must(t, errOf(s.Invitations.Accept(t.Context(), invite(owner), password, people.Client{Address: "203.0.113.7"})))
		}
		server := mailertest.Start(t)
		s.run(t, s.Store, server.URL())
		mail := server.Await(1)[0]
		if mail.To[0] != "ada@example.com" || !strings.HasPrefix(mail.Subject, "This email was taken from another login") ||
			!strings.Contains(mail.Text, "@unproven.invalid. Sign in with it") || strings.Contains(mail.Text, "203.0.113.7") {
			t.Errorf("to %s: %s\n%s", mail.To, mail.Subject, mail.Text)
		}
	})
}

func TestMailListsLeakedKeys(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *system) {
		server := mailertest.Start(t)
		account, user := s.account(t, "ada@example.com")
		s.run(t, s.Store, server.URL())
		sent := 0
		leak := func(n int) mailertest.Mail {
			t.Helper()
			var texts []keys.LeakedText
			for range n {
				_, secret := s.key(t, account, record.UserActor(user.ID, ""))
				texts = append(texts, keys.NewLeakedText(secret, "https://git.example.com/site/.env"))
				sent++ // the mail about the new key
			}
			modelstest.Must(t, errOf(s.Leaks.Revoke(t.Context(), texts, record.LeakGitHub, "")))
			server.Await(sent)
			s.clock.Advance(6 * time.Minute)
			sent++
			return server.Await(sent)[sent-1]
		}
		entry := "Reported as leaked by GitHub: https://git.example.com/site/.env\nLabel: prod <1>\nKey: nas_"
		mail := leak(1)
		if mail.Subject != "API key revoked because it leaked – Voice Portal" || strings.Count(mail.Text, entry) != 1 {
			t.Errorf("%s\n%s", mail.Subject, mail.Text)
		}
		mail = leak(3)
		if mail.Subject != "3 API keys revoked because they leaked – Voice Portal" || strings.Count(mail.Text, entry) != 3 {
			t.Errorf("%s\n%s", mail.Subject, mail.Text)
		}
	})
}

func TestMailSaysWhenKeysExpire(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *system) {
		server := mailertest.Start(t)
		account, user := s.account(t, "ada@example.com")
		generate := func(expiresAt time.Time) string {
			n := keys.NewKey{Label: "prod <1>", FormID: uuid.New(), Restrictions: keys.Restrictions{ExpiresAt: &expiresAt}}
			key, _, err := s.Keys.Generate(t.Context(), account.ID, n, record.UserActor(user.ID, ""))
			modelstest.Must(t, err)
			return "Label: prod <1>\nKey: " + key.Masked() + "\nExpires: " + expiresAt.Format("2 Jan 2006, 15:04:05 UTC")
		}
		// PostgreSQL has a clock of its own.
		tomorrow := time.Now().UTC().Add(value.Day).Truncate(time.Second)
		s.clock.Advance(tomorrow.Sub(s.clock.Now()) - 2*value.Day)
		first, later := generate(tomorrow), tomorrow.Add(2*value.Day)
		both := []string{generate(later), generate(later.Add(time.Minute))}
		s.clock.Advance(value.Day)
		modelstest.Must(t, s.Outbox.WarnOfExpiry(t.Context()))
		s.run(t, s.Store, server.URL())
		mail := server.Await(4)[3]
		if mail.Subject != "API key expires on "+tomorrow.Format("2 Jan 2006")+" – Voice Portal" || !strings.Contains(mail.Text, first) ||
			!strings.Contains(unescape(mail.HTML), "An API key of the account Acme <Ltd> expires soon") {
			t.Errorf("%s\n%s", mail.Subject, mail.Text)
		}
		s.clock.Advance(2 * value.Day)
		modelstest.Must(t, s.Outbox.WarnOfExpiry(t.Context()))
		mail = server.Await(5)[4]
		if mail.Subject != "2 API keys expire soon – Voice Portal" || !strings.Contains(mail.Text, "\n\n"+both[0]+"\n\n"+both[1]+"\n\n") {
			t.Errorf("%s\n%s", mail.Subject, mail.Text)
		}
	})
}

// tokenIn returns the token of the link in both versions of a mail.
func tokenIn(t *testing.T, mail mailertest.Mail, path string) string {
	t.Helper()
	link := regexp.MustCompile(`https://portal\.example\.com` + path + `(\S+)`).FindStringSubmatch(mail.Text)
	if len(link) == 0 || !strings.Contains(mail.HTML, link[0]) {
		t.Fatalf("no link to %s in both versions:\n%s", path, mail.Raw)
	}
	return link[1]
}

func unescape(html string) string {
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&#43;", "+").Replace(html)
}

func TestMailsOfAnOutageArriveOnce(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *system) {
		account, user := s.account(t, "ada@example.com")
		probe := mailertest.Start(t)
		probe.Kill() // its port is free now
		first, _ := s.run(t, s.Store, probe.URL())
		s.run(t, s.open(t), probe.URL())
		const changes = 10
		for range changes {
			s.key(t, account, record.UserActor(user.ID, "203.0.113.7"))
		}
		eventually(t, "an attempt fails", func() bool { return first.Stats().Failed > 0 })
		server := mailertest.Start(t, "--port", probe.Port)
		s.clock.Advance(30 * time.Minute)
		mails := server.Await(changes)
		eventually(t, "the outbox is empty", func() bool { return s.waiting(t) == 0 })
		seen := map[string]bool{}
		for _, mail := range mails {
			seen[mail.ID()] = true
		}
		if n := len(server.Mails()); n != changes || len(seen) != changes {
			t.Errorf("%d mails with %d ids, want %d", n, len(seen), changes)
		}
		if line := s.log.LineWith("a mail was not sent and will be tried again"); !strings.Contains(line, "connect") || strings.Contains(s.log.String(), "ada@") {
			t.Errorf("the log has %s", line)
		}
	})
}

// The server has accepted the mail, but the instance does not learn it.
func TestRepeatedMailHasTheSameMessageID(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *system) {
		server := mailertest.Start(t)
		s.queue(t, "lost@example.com")
		m, stop := s.run(t, s.Store, server.URL())
		server.Await(1)
		eventually(t, "the attempt fails", func() bool { return m.Stats().Failed == 1 })
		stop()
		s.clock.Advance(30 * time.Second)
		other, _ := s.run(t, s.open(t), server.URL())
		mails := server.Await(2)
		if id := mails[0].ID(); id != mails[1].ID() || !strings.HasSuffix(id, "@example.com>") {
			t.Errorf("the ids are %s and %s", id, mails[1].ID())
		}
		eventually(t, "the attempt fails again", func() bool { return other.Stats().Failed == 1 })
	})
}

// An instance that stops between the claim and the acceptance keeps the lease for two minutes.
func TestMailOfACrashedInstanceIsSentAfterItsLease(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *system) {
		server := mailertest.Start(t)
		s.queue(t, "ada@example.com")
		claimed, _, err := s.open(t).Outbox.Claim(t.Context())
		modelstest.Must(t, err)
		s.clock.Advance(119 * time.Second)
		if _, _, err := s.Outbox.Claim(t.Context()); err == nil {
			t.Error("a second instance got the mail within the lease")
		}
		s.clock.Advance(time.Second)
		s.run(t, s.Store, server.URL())
		if mail := server.Await(1)[0]; !strings.Contains(mail.ID(), claimed.ID.String()) {
			t.Errorf("another mail: %s", mail.ID())
		}
		eventually(t, "the outbox is empty", func() bool { return s.waiting(t) == 0 })
		// The crashed instance continues too late.
		modelstest.Must(t, s.Outbox.Sent(t.Context(), claimed))
		modelstest.Must(t, errOf(s.Outbox.Failed(t.Context(), claimed, false)))
	})
}

func TestRefusedMailsAreDropped(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *system) {
		server := mailertest.Start(t)
		for _, email := range []string{"refused@example.com", "later@example.com"} {
			s.queue(t, email)
		}
		m, _ := s.run(t, s.Store, server.URL())
		eventually(t, "one is dropped", func() bool { return m.Stats() == mailer.Stats{Failed: 1, Dropped: 1} })
		line := s.log.LineWith("a mail was dropped")
		if !strings.Contains(line, "recipient: the SMTP server responded 550 5.1.1") {
			t.Errorf("the log has %s", line)
		}
		attempts := 1
		for s.waiting(t) > 0 {
			s.clock.Advance(6 * time.Hour)
			attempts++
			eventually(t, "the next attempt fails", func() bool {
				stats := m.Stats()
				return int(stats.Failed+stats.Dropped) >= attempts+1
			})
		}
		if m.Stats().Dropped != 2 || attempts < 11 || attempts > 13 {
			t.Errorf("%+v after %d attempts", m.Stats(), attempts)
		}
		if strings.Contains(s.log.String(), "@example.com") {
			t.Errorf("the log has an address:\n%s", s.log)
		}
	})
}

// Everything but a refusal of the recipient's mailbox can be mended on our side, so the mail waits.
func TestMailWaitsForACorrectionOnOurSide(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *system) {
		server := mailertest.Start(t)
		refusals := []string{"rcpt-504-5.5.2", "rcpt-554-5.7.1", "data-550-5.4.5", "data-554"}
		for _, refusal := range refusals {
			s.queue(t, refusal+"@example.com")
		}
		m, _ := s.run(t, s.Store, server.URL())
		eventually(t, "all attempts fail", func() bool { return m.Stats().Failed+m.Stats().Dropped >= 4 })
		if m.Stats().Dropped > 0 || s.waiting(t) != 4 {
			t.Errorf("%+v", m.Stats())
		}
		for _, response := range []string{
			"recipient: the SMTP server responded 504 5.5.2", "recipient: the SMTP server responded 554 5.7.1",
			"content: the SMTP server responded 550 5.4.5", "content: the SMTP server responded 554\"",
		} {
			if !strings.Contains(s.log.String(), response) {
				t.Errorf("the log lacks %q:\n%s", response, s.log)
			}
		}
	})
}

// A server that refuses the mailboxes of several mails in a row is wrong about them.
func TestRefusalOfSeveralMailboxesIsNotBelieved(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *system) {
		server := mailertest.Start(t)
		for _, domain := range []string{"a", "b", "c", "d"} {
			s.queue(t, "refused@"+domain+".example")
		}
		m, _ := s.run(t, s.Store, server.URL())
		eventually(t, "two are dropped", func() bool { return m.Stats() == mailer.Stats{Failed: 2, Dropped: 2} })
		s.queue(t, "ada@example.com")
		server.Await(1) // the server works again
		s.clock.Advance(time.Minute)
		eventually(t, "all are dropped", func() bool { return m.Stats().Dropped == 4 && s.waiting(t) == 0 })
	})
}

// A server that passes a mail on bounces it where SMTPUTF8 is asked for and the next one lacks it.
func TestOnlyAddressesThatNeedItAskForUTF8(t *testing.T) {
	t.Parallel()
	for _, arguments := range [][]string{nil, {"--small"}} {
		s := newSystem(t, modelstest.SQLiteURL(t))
		server := mailertest.Start(t, arguments...)
		want := map[string]bool{"ada@example.com": false, "bob@xn--bcher-kva.example": false, "jürgen@example.com": true}
		for _, email := range []string{"ada@example.com", "bob@bücher.example", "jürgen@example.com"} {
			s.queue(t, email)
		}
		s.run(t, s.Store, server.URL())
		for _, mail := range server.Await(3) {
			if asks, known := want[mail.To[0]]; !known || mail.UTF8 != asks {
				t.Errorf("%v, to %s: SMTPUTF8 %t", arguments, mail.To[0], mail.UTF8)
			}
		}
	}
}

// A server that does not respond to the end of the dialog has the mail all the same, so that no
// other instance sends it again.
func TestMailIsSentWithoutAResponseToTheEnd(t *testing.T) {
	t.Parallel()
	s := newSystem(t, modelstest.SQLiteURL(t))
	server := mailertest.Start(t, "--no-bye")
	s.queue(t, "ada@example.com")
	_, stop := s.run(t, s.Store, server.URL())
	server.Await(1)
	stop()
	if n := s.waiting(t); n != 0 {
		t.Errorf("%d mails wait", n)
	}
}

func TestPasswordResetIsSentToUsersOnly(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *system) {
		server := mailertest.Start(t)
		s.account(t, "Ada@Example.com")
		ask := func(email string) {
			modelstest.Must(t, s.Credentials.RequestPasswordReset(t.Context(), email, people.Client{Address: "203.0.113.7"}))
		}
		ask("nobody@example.com")
		ask("ada@example.com ")
		if n := s.waiting(t); n != 2 {
			t.Fatalf("%d requests wait, so the response may depend on the email", n)
		}
		s.run(t, s.Store, server.URL())
		mail := server.Await(1)[0]
		eventually(t, "the outbox is empty", func() bool { return s.waiting(t) == 0 })
		user := modelstest.Value(s.Credentials.PasswordResetUser(t.Context(), tokenIn(t, mail, "/password-resets/")))(t)
		if mail.To[0] != "Ada@example.com" || user.Email != "Ada@Example.com" {
			t.Errorf("to %s, for %+v", mail.To, user)
		}
		// Further requests send nothing while three links are unused.
		for range 5 {
			ask("ada@example.com")
		}
		eventually(t, "the outbox is empty again", func() bool { return s.waiting(t) == 0 })
		if n := len(server.Mails()); n != 3 {
			t.Errorf("%d mails", n)
		}
	})
}

func TestInvitationIsSent(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *system) {
		server := mailertest.Start(t)
		account, user := s.account(t, "ada@example.com")
		invitation, shown, err := s.Invitations.Create(t.Context(), account.ID, "bob@bücher.example", people.RoleMember, record.UserActor(user.ID, "203.0.113.7"))
		modelstest.Must(t, err)
		claimed, _, err := s.Outbox.Claim(t.Context())
		modelstest.Must(t, err)
		// That instance crashed, and may have sent the mail.
		s.clock.Advance(2 * time.Minute)
		s.run(t, s.Store, server.URL())
		mail := server.Await(1)[0]
		if mail.To[0] != "bob@xn--bcher-kva.example" || mail.Subject != "Invitation to join Acme <Ltd> – Voice Portal" || !strings.Contains(mail.Text,
			"ada@example.com invites you to join the account Acme <Ltd> as a member.\n\nThe link works once and expires on 21 Mar 2026 (UTC).") {
			t.Errorf("to %s: %s\n%s", mail.To, mail.Subject, mail.Text)
		}
		found := modelstest.Value(s.Invitations.Find(t.Context(), tokenIn(t, mail, "/invitations/")))(t)
		if found.ID != invitation.ID || strings.Contains(mail.HTML, "<Ltd>") || strings.Contains(mail.Raw, shown) {
			t.Errorf("for %+v:\n%s\n%s", found, mail.Text, mail.HTML)
		}
		// The link of an earlier mail does not work, so this mail must not count as a
		// repetition.
		if want := "<" + claimed.ID.String() + ".2@example.com>"; mail.ID() != want {
			t.Errorf("the id is %s, want %s", mail.ID(), want)
		}
	})
}

func errOf[T any](_ T, err error) error { return err }
