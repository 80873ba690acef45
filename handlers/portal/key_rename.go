package portal

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"portal/models"
	"portal/templates"
)

// editName shows the form for a new label in the row of a key.
func (p *keyPages) editName(c *gin.Context) error {
	key, err := p.find(c)
	if err != nil {
		return err
	}
	return p.askName(c, key, http.StatusOK, templates.Rename{Name: key.Label})
}

func (p *keyPages) rename(c *gin.Context) error {
	label := c.PostForm("name")
	key, err := p.keys.Rename(c.Request.Context(), sessionFrom(c).AccountID, idOf(c), label, actorOf(c))
	if invalid, ok := errors.AsType[*models.InvalidError](err); ok {
		if key, err = p.find(c); err != nil {
			return err
		}
		return p.askName(c, key, http.StatusUnprocessableEntity, templates.Rename{Name: label, Problem: invalid.Message})
	}
	if errors.Is(err, models.ErrKeyAlreadyRevoked) {
		return p.showRevoked(c, key, true)
	}
	if err != nil {
		return err
	}
	row, err := p.readRow(c, key)
	if err != nil {
		return err
	}
	row.MenuFocused = true
	return p.reply(c, reply{
		notice: fmt.Sprintf("API key %s renamed to “%s”.", key.Masked(), key.Label), fragment: row,
		location: fmt.Sprintf("%s#%s-%s", homePath, focusMenu, key.ID),
	})
}

func (p *keyPages) askName(c *gin.Context, key models.Key, status int, rename templates.Rename) error {
	if p.ended(key) {
		return p.showRevoked(c, key, true)
	}
	row, err := p.readRow(c, key)
	if err != nil {
		return err
	}
	row.Rename = &rename
	return p.replyWith(c, status, row)
}
