package e2e

import (
	"net/http"
	"strings"
	"testing"

	"portal/e2e/pages"
)

func TestAPersonIsInvitedJoinsAndIsRemoved(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode profile) {
		c, v, _ := startSignedIn(t, sharedPortal(t), mode)
		v.allowStatus(http.StatusConflict, http.StatusUnprocessableEntity)
		people := pages.OpenPeople(v.Tab)
		people.ExpectCurrent("People")
		people.ExpectRow(c.email, "Owner")
		email := "colleague-of-" + c.email
		invitation := people.Invite(email, "Member")
		link := invitation.Link()
		people = invitation.Done()
		people.ExpectRow(email, "Invited")
		v.ExpectNowhere(link)
		people.Submit(email, "Owner")
		people.ExpectAlertSaying(`already been invited`)
		if people.Email() != email {
			t.Errorf("the field holds %q, want the input", people.Email())
		}

		guest := visit(t, c.at.URL, mode)
		guest.allowStatus(http.StatusGone, http.StatusUnprocessableEntity, http.StatusForbidden)
		join := pages.OpenJoin(guest.Tab, link, c.account)
		join.Submit("short")
		join.ExpectAlertSaying(`12`)
		join.Submit(c.password)
		keys := pages.ExpectKeys(guest.Tab)
		keys.Add("of the colleague")
		pages.OpenPeople(guest.Tab).ExpectNoButtons()

		people = pages.OpenPeople(v.Tab)
		people.Press("Make owner", email)
		people.ExpectStatusSaying(`is now an owner`)
		people.ExpectFocus("Make member", email)
		people.Press("Make member", email)
		people.ExpectRow(email, "Member")
		people.Press("Remove", email)
		people.ExpectFocus("Cancel", email)
		people.Press("Cancel", email)
		people.ExpectFocus("Remove", email)
		people.Remove(email)
		people.ExpectStatusSaying(`was removed`)
		people.ExpectNoRow(email)
		people.ExpectTextSaying(`of the colleague nas_\.\.\.`)

		guest.Open("/people")
		pages.ExpectLogin(guest.Tab)
		guest.Open(strings.TrimPrefix(link, c.at.URL))
		guest.ExpectAlertSaying(`already been used`)

		people = pages.OpenPeople(v.Tab)
		people.Press("Make member", c.email)
		people.ExpectAlertSaying(`must have an owner`)
		people.Remove(c.email)
		people.ExpectAlertSaying(`must have an owner`)
		people.ExpectRow(c.email, "Owner")
	})
}

func TestAnInvitationIsCancelled(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode profile) {
		c, v, _ := startSignedIn(t, sharedPortal(t), mode)
		email := "colleague-of-" + c.email
		invitation := pages.OpenPeople(v.Tab).Invite(email, "Owner")
		link := invitation.Link()
		people := invitation.Done()
		people.Press("Cancel invitation", email)
		people.ExpectStatusSaying(`was cancelled`)
		people.ExpectNoRow(email)
		guest := visit(t, c.at.URL, mode)
		guest.allowStatus(http.StatusGone)
		guest.Open(strings.TrimPrefix(link, c.at.URL))
		guest.ExpectAlertSaying(`cancelled`)
	})
}

func TestAnInvitationLinkIsCopiedAndGoneAfterwards(t *testing.T) {
	t.Parallel()
	c, v, _ := startSignedIn(t, sharedPortal(t), withClipboard)
	invitation := pages.OpenPeople(v.Tab).Invite("colleague-of-"+c.email, "Member")
	link := invitation.Link()
	holdClipboard(t)
	invitation.Copy()
	invitation.ExpectTextSaying(`Copied the link\.`)
	if got := v.Clipboard(); got != link {
		t.Errorf("the clipboard holds %q, not the link", got)
	}
	invitation.Done()
	pages.OpenAgents(v.Tab)
	v.Back()
	v.ExpectNowhere(link)
}

func TestPeopleAndInvitationsAreAccessibleAndFit(t *testing.T) {
	t.Parallel()
	c, v, _ := startSignedIn(t, sharedPortal(t), withoutMotion)
	v.allowStatus(http.StatusConflict, http.StatusUnprocessableEntity)
	i := inspect(t, v.Tab)
	people := pages.OpenPeople(v.Tab)
	i.check(t, "one person")
	people.Submit("no email", "Member")
	people.ExpectAlert()
	i.check(t, "an email refused")
	email := strings.Repeat("w", 60) + "-" + c.email
	invitation := people.Invite(email, "Member")
	link := invitation.Link()
	i.check(t, "an invitation")
	invitation.Done()
	i.check(t, "a list with an invitation")

	guest := visit(t, c.at.URL, withoutMotion)
	guest.allowStatus(http.StatusGone, http.StatusUnprocessableEntity)
	as := inspect(t, guest.Tab)
	join := pages.OpenJoin(guest.Tab, link, c.account)
	join.Submit("short")
	join.ExpectAlert()
	as.check(t, "a password refused")
	join.Submit(c.password)
	pages.ExpectKeys(guest.Tab).Add(strings.Repeat("W", 100))
	pages.OpenPeople(guest.Tab)
	as.check(t, "people as a member")

	people = pages.OpenPeople(v.Tab)
	people.Press("Remove", email)
	people.ExpectFocus("Cancel", email)
	i.check(t, "a removal to confirm")
	people.Press("Confirm removal", email)
	people.ExpectStatusSaying(`was removed`)
	i.check(t, "keys of a removed person")
	people.Press("Make member", c.email)
	people.ExpectAlert()
	i.check(t, "the last owner")
	guest.Open(strings.TrimPrefix(link, c.at.URL))
	as.check(t, "a used invitation")
}
