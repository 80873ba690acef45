package portal

import (
	"fmt"
	"hash/fnv"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/models"
	"portal/templates"
)

const (
	changesPath = homePath + "/changes"
	// usageDays is how many days of requests are drawn.
	usageDays = 30
	// filterFrom is the number of keys that are too many to look through.
	filterFrom = 11
	// versionStep is how finely a list tells apart when a key was last used: a
	// busy key alone would make it another list each time.
	versionStep = 15 * time.Second
)

// showChanges shows the list to a page that shows an older one, and nothing to a
// page that does not.
func (p *Portal) showChanges(c *gin.Context) error {
	page, err := p.apiKeysPage(c, templates.APIKeyForm{})
	if err != nil {
		return err
	}
	r := reply{fragment: page.List, location: homePath}
	if c.Query("seen") == page.List.Version {
		r.status = http.StatusNoContent
	}
	return p.reply(c, r)
}

// apiKeysPage is the page of keys, in the order that the address asks for. Rows
// that are given stand in place of those of the same key.
func (p *Portal) apiKeysPage(c *gin.Context, form templates.APIKeyForm, instead ...templates.APIKeyRow) (templates.APIKeysPage, error) {
	accountID := customer(c).AccountID
	keys, err := p.store.APIKeys(c.Request.Context(), accountID)
	if err != nil {
		return templates.APIKeysPage{}, err
	}
	daily, err := p.store.DailyRequests(c.Request.Context(), accountID, usageDays)
	if err != nil {
		return templates.APIKeysPage{}, err
	}
	return templates.APIKeysPage{Form: form, List: p.apiKeyList(keys, daily, keyViewOf(c), instead...)}, nil
}

func (p *Portal) apiKeyList(keys []models.APIKey, daily map[uuid.UUID][]int64, view keyView, instead ...templates.APIKeyRow) templates.APIKeyList {
	list := templates.APIKeyList{
		Header:  templates.APIKeyListHeader{Count: len(keys), Limit: models.MaxActiveKeys},
		Columns: view.columns(), Address: view.address(), Version: versionOf(keys),
		Keys: make([]templates.APIKeyRow, len(keys)),
	}
	view.sort(keys)
	shown := 0
	for i, key := range keys {
		row := p.apiKeyRow(key, daily[key.ID])
		for _, other := range instead {
			if other.ID == key.ID {
				row = other
			}
		}
		row.Filtered = !view.shows(key) && !row.Open() && row.Details == nil
		if !row.Filtered {
			shown++
		}
		list.Keys[i] = row
	}
	if len(keys) >= filterFrom || view.filter != "" && len(keys) > 0 {
		filter := view.form(shown, len(keys))
		list.Filter = &filter
	}
	return list
}

// apiKeyRow is a key in the list; days are its requests by the day, nil if it was
// not used.
func (p *Portal) apiKeyRow(key models.APIKey, days []int64) templates.APIKeyRow {
	now := p.now()
	return templates.APIKeyRow{
		ID: key.ID, Label: key.Label, Masked: key.Masked(), Created: templates.NewMoment(key.CreatedAt, now),
		LastUsed: momentOf(key.LastUsedAt, now), Sparkline: templates.Sparkline(days),
	}
}

// apiKeyRowWithUsage is [Portal.apiKeyRow] for one key alone.
func (p *Portal) apiKeyRowWithUsage(c *gin.Context, key models.APIKey) (templates.APIKeyRow, error) {
	daily, err := p.store.DailyRequests(c.Request.Context(), key.AccountID, usageDays)
	return p.apiKeyRow(key, daily[key.ID]), err
}

// momentOf is a time as people read it, or nil for none.
func momentOf(at *time.Time, now time.Time) *templates.Moment {
	if at == nil {
		return nil
	}
	moment := templates.NewMoment(*at, now)
	return &moment
}

// versionOf is the same for two lists that show the same.
func versionOf(keys []models.APIKey) string {
	hash := fnv.New64a()
	for _, key := range keys {
		used := int64(-1)
		if key.LastUsedAt != nil {
			used = key.LastUsedAt.Truncate(versionStep).Unix()
		}
		_, _ = fmt.Fprintf(hash, "%s %q %d\n", key.ID, key.Label, used) // never fails
	}
	return fmt.Sprintf("%x", hash.Sum64())
}
