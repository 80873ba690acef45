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

// paramOutcome says that the page comes from a revocation whose outcome is not
// known, and wants to know it.
const (
	paramOutcome   = "outcome"
	outcomeUnknown = "unknown"
)

// newRevocation asks whether to revoke a key, in its row. After a revocation of
// unknown outcome it tells what has become of it: that, and nothing else, is how
// one gets to know.
func (p *Portal) newRevocation(c *gin.Context) error {
	key, err := p.apiKey(c)
	if err != nil {
		return err
	}
	unknown := c.Query(paramOutcome) == outcomeUnknown
	if key.RevokedAt != nil {
		return p.revoked(c, key, !unknown)
	}
	row, err := p.apiKeyRowWithUsage(c, key)
	if err != nil {
		return err
	}
	confirmation, err := p.confirmation(c, key)
	if err != nil {
		return err
	}
	if unknown {
		checked := templates.NewMoment(p.now(), p.now())
		confirmation.Checked = &checked
	}
	row.Confirmation = &confirmation
	return p.reply(c, reply{fragment: row, page: p.apiKeysPageWith(c, row)})
}

// createRevocation revokes a key, and answers with told what has become of it. To
// revoke it once more changes nothing and ends in the same place.
func (p *Portal) createRevocation(told func(c *gin.Context, key models.APIKey, already bool) error) handler {
	return func(c *gin.Context) error {
		id, err := idOf(c)
		if err != nil {
			return err
		}
		key, err := p.store.RevokeAPIKey(c.Request.Context(), customer(c).AccountID, id, actorOf(c))
		already := errors.Is(err, models.ErrKeyAlreadyRevoked)
		if err != nil && !already {
			return p.revocationFailed(c, id, err)
		}
		return told(c, key, already)
	}
}

// revocationFailed says that the outcome is not known, if it is not: the database
// may have done what it could not confirm.
func (p *Portal) revocationFailed(c *gin.Context, id uuid.UUID, err error) error {
	told := problem.From(err)
	if told.Status != http.StatusServiceUnavailable {
		return err
	}
	_ = c.Error(err) // returns what it was given
	c.Header("Retry-After", told.RetryAfterSeconds())
	message := "The database did not answer, so it is not known whether the key was revoked. " +
		"As soon as it answers, the page tells you; you can also try again."
	return p.reply(c, reply{
		status:   told.Status,
		fragment: templates.Failure{Message: message},
		page: present(templates.ErrorPage{
			Status: told.Status, Title: "It is not known whether the key was revoked",
			Message: "The database did not answer. Check the key in a moment: then you are told, and can try again if it is still active.",
			Check:   fmt.Sprintf("%s/%s/revocation?%s=%s", homePath, id, paramOutcome, outcomeUnknown),
		}),
	})
}

// revoked answers for a key that is revoked now: its row goes, and the live
// region says so.
func (p *Portal) revoked(c *gin.Context, key models.APIKey, already bool) error {
	keys, err := p.store.APIKeys(c.Request.Context(), customer(c).AccountID)
	if err != nil {
		return err
	}
	list := p.apiKeyList(keys, nil, defaultKeyView())
	list.Header.Focused = true
	return p.reply(c, reply{
		notice:   revokedNotice(key, already),
		fragment: templates.APIKeyRevoked{ID: key.ID, List: list},
		location: homePath,
	})
}

// goToRevoked leads to the list of keys, which says that the key is revoked.
func (p *Portal) goToRevoked(c *gin.Context, key models.APIKey, already bool) error {
	return p.redirectWith(c, homePath, revokedNotice(key, already))
}

func revokedNotice(key models.APIKey, already bool) string {
	if already {
		return fmt.Sprintf("The API key “%s” (%s) was already revoked.", key.Label, key.Masked())
	}
	return fmt.Sprintf("The API key “%s” (%s) was revoked.", key.Label, key.Masked())
}
