package portal

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/gin-gonic/gin"

	"portal/models"
	"portal/templates"
)

// paramRemoved is the person who has just been removed.
const paramRemoved = "removed"

// newPersonRemoval shows in the table the confirmation that a person is to be removed.
func (p *Portal) newPersonRemoval(c *gin.Context) error {
	return p.showRow(c, "", func(row *templates.PersonRow) error {
		keys, err := p.store.Keys.GeneratedBy(c.Request.Context(), sessionFrom(c).AccountID, row.ID)
		row.Confirming, row.Keys = true, len(keys)
		return err
	})
}

// createPersonRemoval removes a person from the account. Owners who remove themselves are signed
// out.
func (p *Portal) createPersonRemoval(c *gin.Context) error {
	id, err := idOf(c)
	if err != nil {
		return err
	}
	session, ctx := sessionFrom(c), c.Request.Context()
	user, err := p.store.People.Find(ctx, session.AccountID, id)
	if err != nil {
		return err
	}
	if err := p.store.People.Remove(ctx, session.AccountID, id, actorOf(c)); err != nil {
		return p.explainPeople(c, err)
	}
	if id == session.UserID {
		c.Set(sessionContextKey, models.Session{}) // the notice is for a visitor
		return p.redirectWith(c, signInPath, fmt.Sprintf("You have left %s.", session.AccountName))
	}
	page, err := p.peoplePage(c)
	if err != nil {
		return err
	}
	if page.List.Left, err = p.keysOf(c, user); err != nil {
		return err
	}
	page.List.Focused = true
	return p.reply(c, reply{
		notice:   fmt.Sprintf("%s was removed and signed out.", user.Email),
		fragment: page.List,
		location: peoplePath + "?" + url.Values{paramRemoved: {id.String()}}.Encode(),
	})
}

// leftKeys returns the active keys of the removed person in the query string. It returns nil if
// there is none.
func (p *Portal) leftKeys(c *gin.Context) (*templates.LeftKeys, error) {
	id, ok := parseID(c.Query(paramRemoved))
	if !ok || !may(sessionFrom(c), managePeople) {
		return nil, nil
	}
	user, err := p.store.People.Find(c.Request.Context(), sessionFrom(c).AccountID, id)
	if errors.Is(err, models.ErrUserNotFound) || err == nil && user.RemovedAt == nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return p.keysOf(c, user)
}

// keysOf returns the active keys that a person has generated, or nil if there are none.
func (p *Portal) keysOf(c *gin.Context, user models.User) (*templates.LeftKeys, error) {
	keys, err := p.store.Keys.GeneratedBy(c.Request.Context(), sessionFrom(c).AccountID, user.ID)
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	left := &templates.LeftKeys{Email: user.Email}
	for _, key := range keys {
		left.Keys = append(left.Keys, templates.LeftKey{ID: key.ID, Label: key.Label, Masked: key.Masked()})
	}
	return left, nil
}
