package people_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"portal/models"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

func TestPendingEmailIsSentAgainAndCancelled(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		session, email := f.SignedIn(t, c), modelstest.NewEmail()
		pending := func(want string) {
			t.Helper()
			if got, err := f.Credentials.PendingEmail(ctx, session); err != nil || got != want {
				t.Errorf("pending: %q, %v, want %q", got, err, want)
			}
		}
		resend := func() error {
			_, _, err := f.Credentials.ResendEmailChange(ctx, session)
			return err
		}
		pending("")
		checkError(t, "nothing pending", resend(), value.ErrNoEmailChange)
		old := f.EmailToken(t, session, c, email)
		pending(email)
		must(t, resend())
		checkError(t, "the old link", errOf(f.Credentials.ConfirmEmail(ctx, old, "203.0.113.9")), value.ErrMailLinkInvalid)
		pending(email)
		must(t, f.Credentials.CancelEmailChange(ctx, session))
		pending("")
		checkError(t, "cancelled", resend(), value.ErrNoEmailChange)
	})
}

func TestNewEmailIsUsedOnceItIsConfirmed(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		session := f.SignedIn(t, c)
		email := modelstest.NewEmail()
		confirm := func(token string) error { return errOf(f.Credentials.ConfirmEmail(ctx, token, "203.0.113.9")) }
		ended := f.EmailToken(t, session, c, modelstest.NewEmail())
		late := f.EmailToken(t, session, c, email)
		checkError(t, "an earlier request", confirm(ended), value.ErrMailLinkInvalid)
		f.Clock.Advance(30 * time.Minute)
		checkError(t, "after 30 minutes", confirm(late), value.ErrMailLinkInvalid)
		token := f.EmailToken(t, session, c, email)
		modelstest.SignIn(t, f.Store, email, password, modelstest.Address(1), value.ErrWrongCredentials)
		checkError(t, "as a link to set a password", errOf(f.Credentials.UsePasswordReset(ctx, token, newPassword, modelstest.Browser)), value.ErrMailLinkInvalid)
		if got, err := f.Credentials.NewEmail(ctx, token); err != nil || got != email {
			t.Errorf("%q, %v", got, err)
		}
		stores := []*models.Store{f.Store, f.Open(t, models.Options{})}
		used, errs := modelstest.AtOnce(4, func(i int) error {
			return errOf(stores[i%2].Credentials.ConfirmEmail(ctx, token, "203.0.113.9"))
		})
		if used != 1 {
			t.Errorf("%d of 4 clients used the link, errors %v", used, errs)
		}
		modelstest.SignIn(t, f.Store, email, password, modelstest.Address(1), nil)
		modelstest.SignIn(t, f.Store, c.User.Email, password, modelstest.Address(1), value.ErrWrongCredentials)
		changed := f.Recorded(t, c, record.ActionEmailChanged)
		if len(changed) != 1 || changed[0].ActorName != email || changed[0].Label != email || changed[0].FormerLabel != c.User.Email {
			t.Errorf("recorded %+v", changed)
		}
		if changed[0].NamedActor() != email {
			t.Errorf("the change was made by %q", changed[0].NamedActor())
		}
		then := email + " (then " + c.User.Email + ")"
		var names []string
		for _, signedIn := range f.Recorded(t, c, record.ActionSignedIn) {
			names = append(names, signedIn.NamedActor())
		}
		if !slices.Equal(names, []string{then}) {
			t.Errorf("%q signed in, want %q", names, then)
		}
	})
}

func TestRequestForANewEmailEnds(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		for name, end := range map[string]func(c customer, session people.Session, email string) error{
			"after a change of password": func(c customer, session people.Session, _ string) error {
				return errOf(f.Credentials.ChangePassword(ctx, session, password, newPassword, c.Actor))
			},
			"after a reset": func(c customer, _ people.Session, _ string) error {
				return f.Credentials.ResetPassword(ctx, c.User.Email, newPassword)
			},
			"after an operator's change": func(c customer, _ people.Session, _ string) error {
				return f.Credentials.ChangeEmail(ctx, c.User.Email, modelstest.NewEmail())
			},
			"after the user was disabled": func(c customer, _ people.Session, _ string) error {
				f.Owner(t, c)
				return f.People.SetDisabled(ctx, c.User.Email, true)
			},
		} {
			c, email := f.Customer(t), modelstest.NewEmail()
			session := f.SignedIn(t, c)
			token := f.EmailToken(t, session, c, email)
			must(t, end(c, session, email))
			checkError(t, name, errOf(f.Credentials.ConfirmEmail(ctx, token, "")), value.ErrMailLinkInvalid)
			// Nor is a link sent.
			c = f.Customer(t)
			session = f.SignedIn(t, c)
			must(t, f.Credentials.RequestEmailChange(ctx, session, password, email, c.Actor))
			must(t, end(c, session, email))
			if mail, _, err := f.Outbox.Claim(ctx); !errors.Is(err, value.ErrNoMail) {
				t.Errorf("%s: a mail to %s, %v", name, mail.Recipient, err)
			}
		}
		f.Clock.Advance(31 * time.Minute)
		must(t, f.Erasures.Purge(ctx))
		f.CheckCount(t, 0, "SELECT count(*) FROM email_changes")
	})
}

// The link is created when its mail is sent, while a change of the email is not committed yet.
func TestResetLinkForAnOldEmailEndsWithAConcurrentChange(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		must(t, f.Credentials.RequestPasswordReset(ctx, c.User.Email, modelstest.Browser))
		var sending sync.WaitGroup
		changing := f.WithQueryHook(&afterDelete{table: "password_reset_links", do: func() {
			sending.Go(func() {
				mail, token, err := f.Outbox.Claim(ctx)
				if !errors.Is(err, value.ErrNoMail) {
					t.Errorf("a mail to %q with the token %q is sent: %v", mail.Recipient, token, err)
				}
			})
			if f.Postgres() {
				eventually(t, "the mail waits for the change", func() bool {
					return f.Count(t, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") > 0
				})
			}
		}})
		must(t, changing.Credentials.ChangeEmail(ctx, c.User.Email, "new."+c.User.Email))
		sending.Wait()
		f.CheckCount(t, 0, "SELECT count(*) FROM password_reset_links")
	})
}

// afterDelete is a query hook that calls do once, after rows of the table were deleted and before
// the transaction ends.
type afterDelete struct {
	table string
	do    func()
	once  sync.Once
}

func (*afterDelete) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context {
	return context.WithoutCancel(ctx)
}

func (d *afterDelete) AfterQuery(_ context.Context, event *bun.QueryEvent) {
	if event.IQuery != nil && event.IQuery.GetTableName() == d.table && event.Operation() == "DELETE" {
		d.once.Do(d.do)
	}
}

func TestOneOfTwoUsersGetsTheEmail(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		var tokens []string
		for range 2 {
			c := f.Customer(t)
			session := f.SignedIn(t, c)
			tokens = append(tokens, f.EmailToken(t, session, c, "wanted@example.com"))
		}
		done, errs := modelstest.AtOnce(2, func(i int) error {
			return errOf(f.Credentials.ConfirmEmail(t.Context(), tokens[i], ""))
		})
		if done != 1 || !errors.Is(errs[0], value.ErrEmailTaken) {
			t.Errorf("%d of 2 users got the email, errors %v", done, errs)
		}
	})
}

func TestStrangersLeaveMailsForTheOwnerOfAnEmail(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		f.Store = f.Open(t, models.Options{Mail: true})
		stranger, owner := f.Customer(t), f.Customer(t)
		session, email := f.SignedIn(t, stranger), modelstest.NewEmail()
		f.Exec(t, "DELETE FROM outbox")
		request := func() {
			t.Helper()
			must(t, f.Credentials.RequestEmailChange(t.Context(), session, password, email, stranger.Actor))
		}
		for range 12 {
			request()
		}
		f.CheckCount(t, 1, "SELECT count(*) FROM outbox")
		f.CheckCount(t, 1, "SELECT count(*) FROM recent_mails WHERE kind = ?", record.MailEmailConfirmation)
		for range 6 {
			mail, _, err := f.Outbox.Claim(t.Context())
			if err == nil {
				must(t, f.Outbox.Sent(t.Context(), mail))
			}
			request()
		}
		f.CheckCount(t, 3, "SELECT count(*) FROM recent_mails WHERE kind = ?", record.MailEmailConfirmation)
		f.Exec(t, "DELETE FROM outbox")
		must(t, f.ChangeEmail(t, f.SignedIn(t, owner), owner, email))
	})
}
