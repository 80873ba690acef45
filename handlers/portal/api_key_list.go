package portal

import (
	"fmt"
	"hash/fnv"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"portal/models"
	"portal/templates"
)

const (
	changesPath = homePath + "/changes"
	// keysChanged is the event after which an open list fetches its changes.
	keysChanged = "keys-changed"
	// filterFrom is the smallest number of keys for which the list has a filter.
	filterFrom = 11
	// versionStep is the precision of the times of last use in a list's version. With a higher
	// precision, one busy key would change the version on every request.
	versionStep = 15 * time.Second
)

// showChanges returns the list if it differs from the version that the client shows.
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

// apiKeysPage returns the page of keys in the order of the query string. Each row in replacements
// replaces the row of the same key.
func (p *Portal) apiKeysPage(c *gin.Context, form templates.APIKeyForm, replacements ...templates.APIKeyRow) (templates.APIKeysPage, error) {
	active, err := p.activeKeys(c)
	if err != nil {
		return templates.APIKeysPage{}, err
	}
	return templates.APIKeysPage{Form: form, List: p.apiKeyList(active, keyViewOf(c), replacements...)}, nil
}

func (p *Portal) apiKeyList(active activeKeys, view keyView, replacements ...templates.APIKeyRow) templates.APIKeyList {
	keys := active.keys
	list := templates.APIKeyList{
		Columns: view.columns(), Usage: view.column(usageColumn), Query: view.query(), Version: versionOf(keys),
		Keys: make([]templates.APIKeyRow, len(keys)), Limit: models.MaxActiveKeys, Filterable: len(keys) >= filterFrom,
	}
	view.sort(active)
	for i, key := range keys {
		row := p.apiKeyRow(key, active)
		for _, replacement := range replacements {
			if replacement.ID == key.ID {
				row = replacement
			}
		}
		list.Keys[i] = row
	}
	return list
}

// versionOf returns a hash of what the list shows.
func versionOf(keys []models.Key) string {
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
