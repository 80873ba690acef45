package portal

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"portal/models"
	"portal/templates"
)

// editAPIKeyName shows the form for a new label in the row of a key.
func (p *Portal) editAPIKeyName(c *gin.Context) error {
	key, err := p.apiKey(c)
	if err != nil {
		return err
	}
	return p.askAPIKeyName(c, key, http.StatusOK, templates.APIKeyRename{Label: key.Label})
}

// updateAPIKeyName changes the label of a key.
func (p *Portal) updateAPIKeyName(c *gin.Context) error {
	id, err := idOf(c)
	if err != nil {
		return err
	}
	label := c.PostForm("name")
	key, err := p.store.Keys.Rename(c.Request.Context(), sessionFrom(c).AccountID, id, label, actorOf(c))
	if invalid, ok := errors.AsType[*models.InvalidError](err); ok {
		if key, err = p.apiKey(c); err != nil {
			return err
		}
		return p.askAPIKeyName(c, key, http.StatusUnprocessableEntity, templates.APIKeyRename{Label: label, Problem: invalid.Message})
	}
	if errors.Is(err, models.ErrKeyAlreadyRevoked) {
		return p.showRevoked(c, key, true)
	}
	if err != nil {
		return err
	}
	row, err := p.readAPIKeyRow(c, key)
	if err != nil {
		return err
	}
	row.MenuFocused = true
	return p.reply(c, reply{
		notice: fmt.Sprintf("API key %s renamed to “%s”.", key.Masked(), key.Label), fragment: row,
		location: fmt.Sprintf("%s#%s-%s", homePath, focusMenu, key.ID),
	})
}

func (p *Portal) askAPIKeyName(c *gin.Context, key models.Key, status int, rename templates.APIKeyRename) error {
	if key.RevokedAt != nil {
		return p.showRevoked(c, key, true)
	}
	row, err := p.readAPIKeyRow(c, key)
	if err != nil {
		return err
	}
	row.Rename = &rename
	return p.reply(c, reply{status: status, fragment: row, page: p.apiKeysPageWith(c, row)})
}
