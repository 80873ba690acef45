package people_test

import (
	"errors"
	"testing"
	"time"

	"portal/models"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

// mailedToken claims the next mail, which must be an invitation, and returns it and its token.
func (f *fixture) mailedToken(t *testing.T) (record.Mail, string) {
	t.Helper()
	mail, token, err := f.Outbox.Claim(t.Context())
	must(t, err)
	if mail.Kind != record.ActionInvitationCreated || token == "" {
		t.Fatalf("%+v", mail)
	}
	return mail, token
}

func TestInvitationIsMailedWithALinkOfItsOwn(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		f.Store = f.Open(t, models.Options{Mail: true})
		for _, usesMail := range []bool{false, true} {
			email := modelstest.NewEmail()
			invitation, shown := f.Invite(t, c, email, people.RoleOwner)
			mail, mailed := f.mailedToken(t)
			modelstest.Facts(t, mail, map[string]bool{
				"the invitation is mailed": invitation.Mailed,
				"recipient":                mail.Recipient == email,
				"account":                  mail.AccountName == c.Name,
				"actor":                    mail.ActorName == c.User.Email,
				"role":                     mail.Role == string(people.RoleOwner),
				"expiry":                   mail.ExpiresAt.Equal(invitation.ExpiresAt),
			})
			// A retry replaces the link of the mail, and leaves the other one.
			must(t, errOf(f.Outbox.Failed(t.Context(), mail, false)))
			f.Clock.Advance(30 * time.Second)
			mail, again := f.mailedToken(t)
			must(t, f.Outbox.Sent(t.Context(), mail))
			checkError(t, "link of the first attempt", errOf(f.Invitations.Find(t.Context(), mailed)), value.ErrInvitationInvalid)
			tokens := []string{shown, again}
			for _, token := range tokens {
				if found, err := f.Invitations.Find(t.Context(), token); err != nil || found.ID != invitation.ID {
					t.Errorf("%+v, %v", found, err)
				}
			}
			first, second := shown, again
			if usesMail {
				first, second = again, shown
			}
			must(t, modelstest.Accept(t.Context(), f.Store, first, password))
			for _, used := range []string{first, second} {
				checkError(t, "used", modelstest.Accept(t.Context(), f.Store, used, password), value.ErrInvitationInvalid)
			}
			f.Exec(t, "DELETE FROM outbox") // other mails of the new owner
		}
	})
}

func TestCancelledInvitationIsNotMailed(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		f.Store = f.Open(t, models.Options{Mail: true})
		sent, shown := f.Invite(t, c, modelstest.NewEmail(), people.RoleMember)
		mail, mailed := f.mailedToken(t)
		must(t, f.Outbox.Sent(t.Context(), mail))
		must(t, errOf(f.Invitations.Cancel(t.Context(), c.ID, sent.ID, c.Actor)))
		for _, token := range []string{shown, mailed} {
			checkError(t, "cancelled", modelstest.Accept(t.Context(), f.Store, token, password), value.ErrInvitationInvalid)
		}
		waiting, _ := f.Invite(t, c, modelstest.NewEmail(), people.RoleMember)
		must(t, errOf(f.Invitations.Cancel(t.Context(), c.ID, waiting.ID, c.Actor)))
		if mail, _, err := f.Outbox.Claim(t.Context()); !errors.Is(err, value.ErrNoMail) {
			t.Errorf("%+v, %v", mail, err)
		}
		f.CheckCount(t, 0, "SELECT count(*) FROM outbox")
	})
}

func TestMailsWithInvitationsAreLimited(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, other := f.Customer(t), f.Customer(t)
		f.Store = f.Open(t, models.Options{Mail: true})
		mails := func(c customer, email string, sent bool) bool {
			t.Helper()
			invitation, _ := f.Invite(t, c, email, people.RoleMember)
			if sent && invitation.Mailed {
				mail, _ := f.mailedToken(t)
				must(t, f.Outbox.Sent(t.Context(), mail))
			}
			must(t, errOf(f.Invitations.Cancel(t.Context(), c.ID, invitation.ID, c.Actor)))
			return invitation.Mailed
		}
		email := modelstest.NewEmail()
		for i := range 51 {
			if !mails(c, email, false) {
				t.Fatalf("%d invitations that were cancelled before they were sent count", i)
			}
		}
		f.CheckCount(t, 0, "SELECT count(*) FROM outbox")
		for i := range 5 {
			if mailed := mails(c, email, true); mailed != (i < 3) {
				t.Errorf("invitation %d of one account to one email: mailed %v", i+1, mailed)
			}
		}
		if !mails(other, email, true) {
			t.Error("one account stops the mails of another to an email")
		}
		for range 2 {
			for c := f.Customer(t); mails(c, email, true); {
			}
		}
		if mails(f.Customer(t), email, true) {
			t.Error("mailed to an email that got nine in an hour")
		}
		// The first account has sent three.
		recent := make([]record.RecentMail, 45)
		for i := range recent {
			recent[i] = record.RecentMail{
				ID: newID(), Kind: record.ActionInvitationCreated, AccountID: &c.ID,
				EmailHash: value.HashEmail(modelstest.NewEmail()), At: f.Clock.Now(),
			}
		}
		must(t, errOf(f.DB.NewInsert().Model(&recent).Exec(t.Context())))
		for i := range 3 {
			if mailed := mails(c, modelstest.NewEmail(), true); mailed != (i < 2) {
				t.Errorf("mail %d of one account: mailed %v", 49+i, mailed)
			}
		}
		if !mails(other, modelstest.NewEmail(), true) {
			t.Error("one account stops the mails of another")
		}
		f.Clock.Advance(time.Hour)
		if !mails(c, email, true) {
			t.Error("an hour later: not mailed")
		}
		f.Clock.Advance(time.Hour + time.Second)
		must(t, f.Erasures.Purge(t.Context()))
		f.CheckCount(t, 0, "SELECT count(*) FROM recent_mails")
	})
}
