package models_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"portal/models"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

// emailToken asks for a new email in the session and returns the token of the mailed link.
func (f *fixture) emailToken(t *testing.T, session people.Session, c customer, email string) string {
	t.Helper()
	must(t, f.Credentials.RequestEmailChange(t.Context(), session, password, email, c.actor))
	for {
		mail, token, err := f.Outbox.Claim(t.Context())
		must(t, err)
		must(t, f.Outbox.Sent(t.Context(), mail))
		if mail.Kind == record.MailEmailConfirmation && mail.Recipient == email {
			return token
		}
	}
}

// changeEmail asks for a new email and confirms it.
func (f *fixture) changeEmail(t *testing.T, session people.Session, c customer, email string) error {
	t.Helper()
	return errOf(f.Credentials.ConfirmEmail(t.Context(), f.emailToken(t, session, c, email), "203.0.113.9"))
}

func TestPendingEmailIsSentAgainAndCancelled(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.customer(t)
		session, email := f.signedIn(t, c), newEmail()
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
		old := f.emailToken(t, session, c, email)
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
		ctx, c := t.Context(), f.customer(t)
		session := f.signedIn(t, c)
		email := newEmail()
		confirm := func(token string) error { return errOf(f.Credentials.ConfirmEmail(ctx, token, "203.0.113.9")) }
		ended := f.emailToken(t, session, c, newEmail())
		late := f.emailToken(t, session, c, email)
		checkError(t, "an earlier request", confirm(ended), value.ErrMailLinkInvalid)
		f.clock.Advance(30 * time.Minute)
		checkError(t, "after 30 minutes", confirm(late), value.ErrMailLinkInvalid)
		token := f.emailToken(t, session, c, email)
		signIn(t, f.Store, email, password, address(1), value.ErrWrongCredentials)
		checkError(t, "as a link to set a password", errOf(f.Credentials.UsePasswordReset(ctx, token, newPassword, browser)), value.ErrMailLinkInvalid)
		if got, err := f.Credentials.NewEmail(ctx, token); err != nil || got != email {
			t.Errorf("%q, %v", got, err)
		}
		stores := []*models.Store{f.Store, f.open(t, models.Options{})}
		used, errs := atOnce(4, func(i int) error {
			return errOf(stores[i%2].Credentials.ConfirmEmail(ctx, token, "203.0.113.9"))
		})
		if used != 1 {
			t.Errorf("%d of 4 clients used the link, errors %v", used, errs)
		}
		signIn(t, f.Store, email, password, address(1), nil)
		signIn(t, f.Store, c.user.Email, password, address(1), value.ErrWrongCredentials)
		changed := f.recorded(t, c, record.ActionEmailChanged)
		if len(changed) != 1 || changed[0].ActorName != email || changed[0].Label != email || changed[0].FormerLabel != c.user.Email {
			t.Errorf("recorded %+v", changed)
		}
		if changed[0].NamedActor() != email {
			t.Errorf("the change was made by %q", changed[0].NamedActor())
		}
		then := email + " (then " + c.user.Email + ")"
		var names []string
		for _, signedIn := range f.recorded(t, c, record.ActionSignedIn) {
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
				return errOf(f.Credentials.ChangePassword(ctx, session, password, newPassword, c.actor))
			},
			"after a reset": func(c customer, _ people.Session, _ string) error {
				return f.Credentials.ResetPassword(ctx, c.user.Email, newPassword)
			},
			"after an operator's change": func(c customer, _ people.Session, _ string) error {
				return f.Credentials.ChangeEmail(ctx, c.user.Email, newEmail())
			},
			"after the user was disabled": func(c customer, _ people.Session, _ string) error {
				f.owner(t, c)
				return f.People.SetDisabled(ctx, c.user.Email, true)
			},
		} {
			c, email := f.customer(t), newEmail()
			session := f.signedIn(t, c)
			token := f.emailToken(t, session, c, email)
			must(t, end(c, session, email))
			checkError(t, name, errOf(f.Credentials.ConfirmEmail(ctx, token, "")), value.ErrMailLinkInvalid)
			// Nor is a link sent.
			c = f.customer(t)
			session = f.signedIn(t, c)
			must(t, f.Credentials.RequestEmailChange(ctx, session, password, email, c.actor))
			must(t, end(c, session, email))
			if mail, _, err := f.Outbox.Claim(ctx); !errors.Is(err, value.ErrNoMail) {
				t.Errorf("%s: a mail to %s, %v", name, mail.Recipient, err)
			}
		}
		f.clock.Advance(31 * time.Minute)
		must(t, f.Erasures.Purge(ctx))
		f.checkCount(t, 0, "SELECT count(*) FROM email_changes")
	})
}

// The link is created when its mail is sent, while a change of the email is not committed yet.
func TestResetLinkForAnOldEmailEndsWithAConcurrentChange(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.customer(t)
		must(t, f.Credentials.RequestPasswordReset(ctx, c.user.Email, browser))
		var sending sync.WaitGroup
		changing := f.WithQueryHook(&afterDelete{table: "password_reset_links", do: func() {
			sending.Go(func() {
				mail, token, err := f.Outbox.Claim(ctx)
				if !errors.Is(err, value.ErrNoMail) {
					t.Errorf("a mail to %q with the token %q is sent: %v", mail.Recipient, token, err)
				}
			})
			if f.postgres() {
				eventually(t, "the mail waits for the change", func() bool {
					return f.count(t, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") > 0
				})
			}
		}})
		must(t, changing.Credentials.ChangeEmail(ctx, c.user.Email, "new."+c.user.Email))
		sending.Wait()
		f.checkCount(t, 0, "SELECT count(*) FROM password_reset_links")
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
			c := f.customer(t)
			session := f.signedIn(t, c)
			tokens = append(tokens, f.emailToken(t, session, c, "wanted@example.com"))
		}
		done, errs := atOnce(2, func(i int) error {
			return errOf(f.Credentials.ConfirmEmail(t.Context(), tokens[i], ""))
		})
		if done != 1 || !errors.Is(errs[0], value.ErrEmailTaken) {
			t.Errorf("%d of 2 users got the email, errors %v", done, errs)
		}
	})
}

func TestStrangersLeaveMailsForTheOwnerOfAnEmail(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		f.Store = f.open(t, models.Options{Mail: true})
		stranger, owner := f.customer(t), f.customer(t)
		session, email := f.signedIn(t, stranger), newEmail()
		f.exec(t, "DELETE FROM outbox")
		request := func() {
			t.Helper()
			must(t, f.Credentials.RequestEmailChange(t.Context(), session, password, email, stranger.actor))
		}
		for range 12 {
			request()
		}
		f.checkCount(t, 1, "SELECT count(*) FROM outbox")
		f.checkCount(t, 1, "SELECT count(*) FROM recent_mails WHERE kind = ?", record.MailEmailConfirmation)
		for range 6 {
			mail, _, err := f.Outbox.Claim(t.Context())
			if err == nil {
				must(t, f.Outbox.Sent(t.Context(), mail))
			}
			request()
		}
		f.checkCount(t, 3, "SELECT count(*) FROM recent_mails WHERE kind = ?", record.MailEmailConfirmation)
		f.exec(t, "DELETE FROM outbox")
		must(t, f.changeEmail(t, f.signedIn(t, owner), owner, email))
	})
}
