package portal

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/models/keys"
	"portal/models/value"
	"portal/templates"
)

const (
	changesPath = homePath + "/changes"
	// filterFrom is the smallest number of keys for which the list has a filter.
	filterFrom = 11
)

// list shows the active keys and the form that generates one.
func (p *keyPages) list(c *gin.Context) error {
	page, err := p.newPage(c)
	if err != nil {
		return err
	}
	return p.reply(c, reply{fragment: templates.APIKeyChanges{APIKeyList: page.List}, page: present(page)})
}

// newPage returns the page of keys with a new form.
func (p *keyPages) newPage(c *gin.Context) (templates.APIKeysPage, error) {
	lost, err := p.replacing(c)
	if err != nil {
		return templates.APIKeysPage{}, err
	}
	restrictions, err := p.restrictions.formOf(c, lost)
	if err != nil {
		return templates.APIKeysPage{}, err
	}
	form := templates.APIKeyForm{FormID: uuid.New(), Label: lost.Label, Trust: p.trust.form(previewPath), OnlyReports: restrictions.OnlyReports, Restrictions: restrictions}
	return p.page(c, form)
}

// showChanges returns the list if it differs from the version that the client shows.
func (p *keyPages) showChanges(c *gin.Context) error {
	read, err := p.read(c)
	if err != nil {
		return err
	}
	list, err := p.listOf(c, read, func() (bool, error) {
		agent, err := exampleAgent(c.Request.Context(), p.agents, sessionFrom(c).AccountID)
		return agent != "", err
	})
	if err != nil {
		return err
	}
	r := reply{fragment: templates.APIKeyChanges{APIKeyList: list}, location: homePath}
	if c.Query("seen") == list.Version {
		r.status = http.StatusNoContent
	}
	return p.reply(c, r)
}

// page returns the page of keys in the order of the query string.
func (p *keyPages) page(c *gin.Context, form templates.APIKeyForm) (templates.APIKeysPage, error) {
	read, err := p.read(c)
	if err != nil {
		return templates.APIKeysPage{}, err
	}
	form.Full = len(read.Active) >= value.MaxActiveKeys
	worth, err := p.worthALook(c, read.Active)
	if err != nil {
		return templates.APIKeysPage{}, err
	}
	hasAgent := func() (bool, error) { return len(form.Restrictions.Agents) > 0, nil }
	list, err := p.listOf(c, read, hasAgent)
	return templates.APIKeysPage{Form: form, WorthALook: worth, List: list}, err
}

// listOf returns the list of an account's keys. It calls hasAgent if it shows the first steps of an
// account.
func (p *keyPages) listOf(c *gin.Context, read keys.KeyList, hasAgent func() (bool, error)) (templates.APIKeyList, error) {
	order, show, active := keyOrderOf(c), keyShowOf(c), read.Active
	keys := show.among(active, p.now())
	list := templates.APIKeyList{
		Query: listQuery(order, show), Keys: make([]templates.APIKeyRow, len(keys)), Active: len(active),
		Limit: value.MaxActiveKeys, Filterable: len(keys) >= filterFrom,
	}
	if show != nil {
		list.Show, list.Shown = show.id, fmt.Sprintf("%d %s.", len(keys), show.text(len(keys)))
	}
	for _, choice := range keyOrders {
		list.Orders = append(list.Orders, templates.APIKeyOrder{ID: choice.id, Name: choice.name, Current: choice.id == order.id})
	}
	found, rows := rotations(active, p.now()), make([]*templates.APIKeyRow, len(keys))
	sortByRank(keys, order.rank, order.descending)
	for i, key := range keys {
		list.Keys[i] = p.views.row(key, found[key.ID])
		rows[i] = &list.Keys[i]
	}
	if err := p.views.addCallLimits(c, sessionFrom(c).AccountID, rows...); err != nil {
		return list, err
	}
	var err error
	list.Leaked = templates.LeakedKeys{Keys: read.Leaked[:min(len(read.Leaked), noticedLeaks)], More: len(read.Leaked) > noticedLeaks}
	if list.Steps, err = p.firstSteps(active, read.Ended, hasAgent); err != nil {
		return list, err
	}
	list.Version = versionOf([]any{list.Keys, list.Steps})
	chosen, all := selected(c.QueryArray(paramSelected)), c.Query(paramAll) != ""
	for i, row := range list.Keys {
		list.Keys[i].Selected = all || slices.Contains(chosen, row.ID)
	}
	return list, nil
}

func (p *keyPages) read(c *gin.Context) (keys.KeyList, error) {
	return p.keyUsage.OfList(c.Request.Context(), sessionFrom(c).AccountID, chartDays, p.leakedSince(c), noticedLeaks+1)
}

// rotations returns, by the id of a key, its rotation with another one of these keys: the one that
// it replaces or that replaces it. The keys are sorted, the newest first.
func rotations(ofAccount []keys.KeyUsage, now time.Time) map[uuid.UUID]*templates.KeyRotation {
	byID, found := map[uuid.UUID]keys.Key{}, map[uuid.UUID]*templates.KeyRotation{}
	for _, key := range ofAccount {
		byID[key.ID] = key.Key
	}
	for _, key := range ofAccount {
		if key.ReplacesID == nil {
			continue
		}
		old, ok := byID[*key.ReplacesID]
		if !ok {
			continue
		}
		found[key.ID] = rotationWith(old, old.ID, now)
		if found[old.ID] == nil { // a rotation continues with the newest replacement
			found[old.ID] = rotationWith(key.Key, old.ID, now)
		}
	}
	return found
}

// paramSelected is a selected key in a query string or a form, and paramAll selects all keys of the
// list.
const (
	paramSelected = "selected"
	paramAll      = "all"
)

// selected returns the ids, without duplicates, and at most as many as an account has active keys.
func selected(texts []string) (ids []uuid.UUID) {
	seen := map[uuid.UUID]bool{}
	for _, text := range texts {
		if id, ok := parseID(text); ok && !seen[id] && len(ids) < value.MaxActiveKeys {
			seen[id], ids = true, append(ids, id)
		}
	}
	return ids
}

// keyOrder is an order of the list: by the rank of each key, as text.
type keyOrder struct {
	id, name   string
	rank       func(keys.KeyUsage) string
	descending bool
}

// keyOrders are the choices, the default first.
var keyOrders = []keyOrder{
	{"newest", "Newest", created, true},
	{"oldest", "Oldest", created, false},
	{"last-used", "Last used", lastUsed, true},
	{"unused", "Longest unused", lastUsed, false},
	{"requests", "Most requests", requested, true},
	{"label", "Label", labelRank, false},
}

func created(key keys.KeyUsage) string { return numberRank(key.CreatedAt.UnixNano()) }

func lastUsed(key keys.KeyUsage) string {
	if key.LastUsedAt == nil {
		return "" // before all times
	}
	return numberRank(key.LastUsedAt.UnixNano())
}

func requested(key keys.KeyUsage) string {
	requests, _ := key.Total()
	return numberRank(requests)
}

// keyOrderOf returns the order of the query string. An unknown value is ignored.
func keyOrderOf(c *gin.Context) keyOrder {
	for _, order := range keyOrders {
		if order.id == c.Query(paramSort) {
			return order
		}
	}
	return keyOrders[0]
}

// listQuery returns the query string of an order and a filter with its question mark, or "" for the
// defaults.
func listQuery(order keyOrder, show *keyShow) string {
	query := url.Values{}
	if order.id != keyOrders[0].id {
		query.Set(paramSort, order.id)
	}
	if show != nil {
		query.Set(paramShow, show.id)
	}
	if len(query) == 0 {
		return ""
	}
	return "?" + query.Encode()
}

// editName shows the form for a new label in the row of a key.
func (p *keyPages) editName(c *gin.Context) error {
	key, err := p.views.find(c)
	if err != nil {
		return err
	}
	return p.askName(c, key, http.StatusOK, templates.Rename{Name: key.Label})
}

func (p *keyPages) rename(c *gin.Context) error {
	label := c.PostForm("name")
	key, err := p.keys.Rename(c.Request.Context(), sessionFrom(c).AccountID, idOf(c), label, actorOf(c))
	if invalid, ok := errors.AsType[*value.InvalidError](err); ok {
		if key, err = p.views.find(c); err != nil {
			return err
		}
		return p.askName(c, key, http.StatusUnprocessableEntity, templates.Rename{Name: label, Problem: invalid.Message})
	}
	if errors.Is(err, value.ErrKeyAlreadyRevoked) {
		return p.views.showRevoked(c, key, true)
	}
	if err != nil {
		return err
	}
	usage, err := p.keyUsage.OfKey(c.Request.Context(), key.AccountID, chartDays, key.ID)
	if err != nil {
		return err
	}
	row, err := p.views.readRow(c, usage)
	if err != nil {
		return err
	}
	row.MenuFocused = true
	return p.reply(c, reply{
		notice: fmt.Sprintf("API key %s renamed to “%s”.", key.Masked(), templates.Isolate(key.Label)), fragment: row,
		location: back(c, key, focusMenu),
	})
}

func (p *keyPages) askName(c *gin.Context, key keys.Key, status int, rename templates.Rename) error {
	if p.views.ended(key) {
		return p.views.showRevoked(c, key, true)
	}
	return p.views.ask(c, status, templates.APIKeyRow{Key: key, Rename: &rename})
}
