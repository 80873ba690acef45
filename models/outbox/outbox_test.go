package outbox_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

func TestRequestsForAPasswordResetAreLimited(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		f.Store = f.Open(t, models.Options{Mail: true, SignInLimit: 4})
		c := f.Customer(t)
		request := func(email string, client people.Client) error {
			return f.Credentials.RequestPasswordReset(t.Context(), email, client)
		}
		for range 4 {
			must(t, request(c.User.Email, modelstest.Strangers(1)))
		}
		err := request("nobody@example.com", modelstest.Strangers(1))
		if _, limited := errors.AsType[*value.SignInLimitError](err); !limited {
			t.Errorf("the address is not limited: %v", err)
		}
		// From elsewhere the request for the email succeeds, but no further mail is queued.
		must(t, request(c.User.Email, modelstest.Strangers(2)))
		f.CheckCount(t, 4, "SELECT count(*) FROM outbox")
		// A user has at most three links.
		for {
			mail, _, err := f.Outbox.Claim(t.Context())
			if errors.Is(err, value.ErrNoMail) {
				break
			}
			must(t, err)
			must(t, f.Outbox.Sent(t.Context(), mail))
		}
		f.CheckCount(t, 3, "SELECT count(*) FROM password_reset_links")
		// The limits are not those of sign-in.
		modelstest.SignIn(t, f.Store, c.User.Email, password, modelstest.Address(1), nil)
	})
}

func TestMailIsQueuedWithItsChangeOrNotAtAll(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		f.Member(t, c, people.RoleMember)
		f.Key(t, c) // queues nothing, because no mail can be sent
		f.Store = f.Open(t, models.Options{Mail: true})
		f.Key(t, c)
		repeated := form("again")
		for _, succeeds := range []bool{true, false} {
			if _, _, err := f.Keys.Generate(t.Context(), c.ID, repeated, c.Actor); (err == nil) != succeeds {
				t.Fatal(err)
			}
		}
		// Only the owner gets mails about the two keys.
		if n := f.Count(t, "SELECT count(*) FROM outbox WHERE recipient = ?", c.User.Email); n != 2 || f.Count(t, "SELECT count(*) FROM outbox") != 2 {
			t.Errorf("%d mails", n)
		}
	})
}

func TestOutboxIsBounded(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		f.Store = f.Open(t, models.Options{Mail: true, SignInLimit: 10_000})
		insert := "INSERT INTO outbox (id, kind, account_id, recipient, created_at, due_at) VALUES (?, 'session.created', ?, 'a@example.com', ?, ?)"
		now := f.Clock.Now()
		for range 199 {
			f.Exec(t, insert, newID(), c.ID, now, now)
		}
		f.Key(t, c)
		f.Key(t, c) // succeeds, although its mail is dropped
		f.CheckCount(t, 200, "SELECT count(*) FROM outbox")
		if n := f.Stats().MailsDropped; n != 1 {
			t.Errorf("%d mails are counted as dropped", n)
		}
		f.Key(t, f.Customer(t))
		f.CheckCount(t, 201, "SELECT count(*) FROM outbox")
		f.Clock.Advance(74 * time.Hour)
		must(t, f.Erasures.Purge(t.Context()))
		f.CheckCount(t, 0, "SELECT count(*) FROM outbox")
	})
}

// Mails that the server refuses slowly are repeated again and again, and do not hold up the others.
func TestRepeatedMailsAreClaimedLast(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		refused, other := f.Customer(t), f.Customer(t)
		f.Store = f.Open(t, models.Options{Mail: true})
		claim := func(from customer, attempt int) record.Mail {
			t.Helper()
			mail, _, err := f.Outbox.Claim(t.Context())
			if err != nil || *mail.AccountID != from.ID || mail.Attempts != attempt {
				t.Fatalf("attempt %d for %s: %v", mail.Attempts, mail.Recipient, err)
			}
			must(t, errOf(f.Outbox.Failed(t.Context(), mail, false)))
			return mail
		}
		f.Key(t, refused)
		for attempt := range 3 {
			claim(refused, attempt+1)
			f.Clock.Advance(15 * time.Minute)
		}
		f.Key(t, other)
		claim(other, 1)
		f.Clock.Advance(15 * time.Minute)
		claim(other, 2)
		claim(refused, 4)
	})
}

func TestTwoInstancesClaimDifferentMails(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		f.Store = f.Open(t, models.Options{Mail: true})
		const mails = 10
		for range mails {
			f.Key(t, c)
		}
		stores := []*models.Store{f.Store, f.Open(t, models.Options{Mail: true})}
		claimed := make([]uuid.UUID, mails)
		succeeded, errs := modelstest.AtOnce(mails, func(i int) error {
			mail, _, err := stores[i%2].Outbox.Claim(t.Context())
			claimed[i] = mail.ID
			return err
		})
		seen := map[uuid.UUID]bool{}
		for _, id := range claimed {
			seen[id] = true
		}
		if succeeded != mails || len(seen) != mails {
			t.Errorf("%d claims of %d different mails, errors %v", succeeded, len(seen), errs)
		}
		if _, _, err := f.Outbox.Claim(t.Context()); !errors.Is(err, value.ErrNoMail) {
			t.Errorf("another mail: %v", err)
		}
	})
}

func TestPasswordResetLinkEnds(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		use := func(token string) error {
			return errOf(f.Credentials.UsePasswordReset(t.Context(), token, "four words of another kind", people.Client{}))
		}
		c := f.Customer(t)
		late := f.ResetToken(t, c.User.Email)
		f.Clock.Advance(30*time.Minute - time.Second)
		must(t, errOf(f.Credentials.PasswordResetUser(t.Context(), late)))
		f.Clock.Advance(time.Second)
		checkError(t, "after 30 minutes", use(late), value.ErrMailLinkInvalid)

		for name, end := range map[string]func(customer, people.Session) error{
			"after a change of password": func(c customer, session people.Session) error {
				return errOf(f.Credentials.ChangePassword(t.Context(), session, password, "five words of another kind", c.Actor))
			},
			"after a change of email": func(c customer, session people.Session) error {
				return f.ChangeEmail(t, session, c, modelstest.NewEmail())
			},
			"after the account was disabled": func(c customer, _ people.Session) error {
				return f.Accounts.SetDisabled(t.Context(), c.ID, true, record.Operator())
			},
		} {
			c := f.Customer(t)
			session := f.SignedIn(t, c)
			token := f.ResetToken(t, c.User.Email)
			must(t, end(c, session))
			checkError(t, name, use(token), value.ErrMailLinkInvalid)
		}
		f.Clock.Advance(31 * time.Minute)
		must(t, f.Erasures.Purge(t.Context()))
		f.CheckCount(t, 0, "SELECT count(*) FROM password_reset_links")
	})
}

func TestPasswordResetLinkWorksOnce(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		token := f.ResetToken(t, c.User.Email)
		stores := []*models.Store{f.Store, f.Open(t, models.Options{})}
		used, errs := modelstest.AtOnce(4, func(i int) error {
			return errOf(stores[i%2].Credentials.UsePasswordReset(t.Context(), token, "four words of another kind", modelstest.Browser))
		})
		if used != 1 {
			t.Errorf("%d of 4 clients used the link, errors %v", used, errs)
		}
	})
}

func TestChangeOfAFactorIsReportedToItsUser(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		f.Store = f.Open(t, models.Options{Mail: true})
		session := people.Session{AccountID: c.ID, UserID: c.User.ID}
		passkey := people.Passkey{CredentialID: c.User.ID[:], Credential: "{}", Name: "Phone"}
		must(t, f.Credentials.AddPasskey(t.Context(), session, passkey, uuid.NewString(), c.Actor))
		mail, _, err := f.Outbox.Claim(t.Context())
		if err != nil || mail.Kind != record.ActionPasskeyAdded || mail.Recipient != c.User.Email {
			t.Errorf("%+v, %v", mail, err)
		}
	})
}

func TestMailsToOneAddressAreLimited(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		f.Store = f.Open(t, models.Options{Mail: true})
		mails := func(want int, of string) {
			t.Helper()
			if n := f.Count(t, "SELECT count(*) FROM outbox"); n != want {
				t.Errorf("%d mails %s, want %d", n, of, want)
			}
			f.Exec(t, "DELETE FROM outbox")
		}
		for range 12 {
			f.Key(t, c)
		}
		mails(10, "of one kind")
		signIn := func(address, agent string) {
			t.Helper()
			must(t, errOf(f.SignIn.Start(t.Context(), c.User, people.Client{Address: address, UserAgent: agent})))
		}
		for range 3 {
			signIn("203.0.113.1", "Firefox")
		}
		mails(1, "about repeated sign-ins")
		signIn("203.0.113.2", "Firefox")
		signIn("203.0.113.1", "Chrome")
		mails(2, "about sign-ins from elsewhere")
		known := people.Client{Address: "203.0.113.3", UserAgent: "Firefox", Device: people.NewDevice(c.User)}
		must(t, errOf(f.SignIn.Start(t.Context(), c.User, known)))
		mails(0, "about a sign-in in a known browser")
		for i := range 12 {
			signIn(modelstest.Address(100+i), "Firefox")
		}
		mails(7, "about more sign-ins")
		f.Clock.Advance(time.Hour + time.Second)
		f.Key(t, c)
		signIn("203.0.113.1", "Firefox")
		mails(2, "an hour later")
	})
}
