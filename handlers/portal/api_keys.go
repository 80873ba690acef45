package portal

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
	"portal/models"
	"portal/templates"
)

// listAPIKeys shows the active keys and the form that generates one.
func (p *Portal) listAPIKeys(c *gin.Context) error {
	page, err := p.apiKeysPage(c, templates.APIKeyForm{FormID: uuid.New()})
	if err != nil {
		return err
	}
	return p.reply(c, reply{fragment: page.List, page: present(page)})
}

// The parameter by which the row of a key is told which of its buttons it was
// opened by, and so takes the focus again.
const (
	paramFocus  = "focus"
	focusRevoke = "revoke"
	focusRename = "rename"
)

// showAPIKey shows the row of a key: where Cancel leads.
func (p *Portal) showAPIKey(c *gin.Context) error {
	key, err := p.apiKey(c)
	if err != nil {
		return err
	}
	if key.RevokedAt != nil {
		return p.revoked(c, key, true)
	}
	row, err := p.apiKeyRowWithUsage(c, key)
	if err != nil {
		return err
	}
	focus := focusRevoke
	if c.Query(paramFocus) == focusRename {
		focus = focusRename
	}
	row.Focused, row.RenameFocused = focus == focusRevoke, focus == focusRename
	// A browser gives the focus to what the address points at.
	return p.reply(c, reply{fragment: row, location: fmt.Sprintf("%s#%s-%s", homePath, focus, key.ID)})
}

// generateAPIKey makes a key and shows it, this once.
func (p *Portal) generateAPIKey(c *gin.Context) error {
	session, label := customer(c), c.PostForm("label")
	formID, ok := parseID(c.PostForm("form_id"))
	if !ok {
		return p.refuseGeneration(c, http.StatusUnprocessableEntity, templates.APIKeyForm{
			Label: label, Problem: "The form was incomplete, so no key was generated. It has been renewed: try again.",
		})
	}
	// Whatever can fail comes before the key is made: afterwards it must be shown.
	agentID, err := p.exampleAgent(c)
	if err != nil {
		return err
	}
	key, secret, err := p.store.GenerateAPIKey(c.Request.Context(), session.AccountID,
		models.NewAPIKey{Label: label, FormID: formID}, actorOf(c))
	if err != nil {
		return p.explainRefusal(c, label, err)
	}
	row := p.apiKeyRow(key, nil)
	generated := templates.APIKeyGenerated{
		Form:   templates.APIKeyForm{FormID: uuid.New()},
		Row:    &row,
		Reveal: p.apiKeyReveal(key, secret, agentID),
	}
	if keys, err := p.store.APIKeys(c.Request.Context(), session.AccountID); err != nil {
		_ = c.Error(err) // the list can be read later, the key cannot
	} else {
		generated.Header = &templates.APIKeyListHeader{Count: len(keys), Limit: models.MaxActiveKeys}
		if len(keys) == 1 {
			generated.Row = nil
		}
	}
	return p.reply(c, reply{fragment: generated, page: present(generated.Reveal), reveals: true})
}

// explainRefusal shows the form again with why it made no key.
func (p *Portal) explainRefusal(c *gin.Context, label string, err error) error {
	form := templates.APIKeyForm{Label: label}
	if invalid, ok := errors.AsType[*models.InvalidError](err); ok {
		form.LabelProblem = invalid.Message
		return p.refuseGeneration(c, http.StatusUnprocessableEntity, form)
	}
	if repeated, ok := errors.AsType[*models.RepeatedFormError](err); ok {
		form.Repeated = &templates.RepeatedKey{
			ID: repeated.Key.ID, Label: repeated.Key.Label, Masked: repeated.Key.Masked(),
			Revoked: repeated.Key.RevokedAt != nil,
		}
		return p.refuseGeneration(c, http.StatusConflict, form)
	}
	if errors.Is(err, models.ErrKeyLimit) {
		form.Problem = problem.From(err).Message
		return p.refuseGeneration(c, http.StatusUnprocessableEntity, form)
	}
	return err
}

func (p *Portal) refuseGeneration(c *gin.Context, status int, form templates.APIKeyForm) error {
	form.FormID = uuid.New()
	return p.reply(c, reply{status: status, fragment: form, page: func() (templates.Page, error) {
		return p.apiKeysPage(c, form)
	}})
}

// apiKey returns the customer's key that the address names.
func (p *Portal) apiKey(c *gin.Context) (models.APIKey, error) {
	id, err := idOf(c)
	if err != nil {
		return models.APIKey{}, err
	}
	return p.store.APIKey(c.Request.Context(), customer(c).AccountID, id)
}

// exampleAgent returns the id of an agent to put into examples, empty when the
// account has none.
func (p *Portal) exampleAgent(c *gin.Context) (string, error) {
	agents, err := p.store.Agents(c.Request.Context(), customer(c).AccountID)
	if err != nil || len(agents) == 0 {
		return "", err
	}
	return agents[0].ID.String(), nil
}
