package portal

import (
	"errors"
	"fmt"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
	"portal/models"
	"portal/templates"
)

// newRevocation asks whether to revoke a key, in its row.
func (p *Portal) newRevocation(c *gin.Context) error {
	key, err := p.apiKey(c)
	if err != nil {
		return err
	}
	if key.RevokedAt != nil {
		return p.revoked(c, key, true)
	}
	row := p.apiKeyRow(key)
	row.Confirming = true
	return p.reply(c, reply{fragment: row, page: func() (templates.Page, error) {
		return p.apiKeysPage(c, templates.APIKeyForm{FormID: uuid.New()}, key.ID)
	}})
}

// createRevocation revokes a key. To revoke it once more changes nothing and
// ends in the same place.
func (p *Portal) createRevocation(c *gin.Context) error {
	id, err := idOf(c)
	if err != nil {
		return err
	}
	key, err := p.store.RevokeAPIKey(c.Request.Context(), customer(c).AccountID, id, actorOf(c))
	already := errors.Is(err, models.ErrKeyAlreadyRevoked)
	if err != nil && !already {
		return err
	}
	return p.revoked(c, key, already)
}

// The parameters by which the page of keys is told what has become of a key.
const (
	paramRevoked        = "revoked"
	paramAlreadyRevoked = "already-revoked"
)

// revoked answers for a key that is revoked now: its row goes, and the live
// region says so.
func (p *Portal) revoked(c *gin.Context, key models.APIKey, already bool) error {
	keys, err := p.store.APIKeys(c.Request.Context(), customer(c).AccountID)
	if err != nil {
		return err
	}
	list := p.apiKeyList(keys, uuid.Nil)
	list.Focused = true
	param := paramRevoked
	if already {
		param = paramAlreadyRevoked
	}
	return p.reply(c, reply{
		notice:   toldRevoked(key, already),
		fragment: templates.APIKeyRevoked{List: list},
		location: fmt.Sprintf("%s?%s=%s", homePath, param, key.ID),
	})
}

// revocationNotice is what the page of keys says of the key that was revoked on
// the way to it, if one was.
func (p *Portal) revocationNotice(c *gin.Context) (string, error) {
	text, already := c.Query(paramRevoked), false
	if text == "" {
		text, already = c.Query(paramAlreadyRevoked), true
	}
	if text == "" {
		return "", nil
	}
	id, ok := parseID(text)
	if !ok {
		return "", problem.NotFound()
	}
	key, err := p.store.APIKey(c.Request.Context(), customer(c).AccountID, id)
	if err != nil || key.RevokedAt == nil {
		return "", err
	}
	return toldRevoked(key, already), nil
}

func toldRevoked(key models.APIKey, already bool) string {
	if already {
		return fmt.Sprintf("The API key “%s” (%s) was already revoked.", key.Label, key.Masked())
	}
	return fmt.Sprintf("The API key “%s” (%s) was revoked.", key.Label, key.Masked())
}
