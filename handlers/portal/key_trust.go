package portal

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"portal/models/keys"
	"portal/models/value"
	"portal/templates"
)

// tokenPath is where workloads exchange their tokens.
const tokenPath = "/oauth/token" //nolint:gosec // no credentials

// paramGenerated means that the key of the page was just generated.
const paramGenerated = "generated"

func trustPath(key keys.Key) string { return fmt.Sprintf("%s/%s/trust", homePath, key.ID) }

// page returns the page of the trust rule of the key in the path. A key with a secret has
// none.
func (p *trustPages) page(c *gin.Context) (page templates.TrustPage, err error) {
	if page.Key, err = p.views.find(c); err != nil {
		return page, err
	}
	if !page.Key.IsWorkload() || p.workload.Issuers().Off {
		return page, value.ErrKeyNotFound
	}
	page.Version = cmp.Or(c.PostForm("made_from"), page.Key.TrustVersion.String())
	page.Trust = p.formOf(trustPath(page.Key)+"/preview", *page.Key.Trust)
	for name, value := range page.Key.TrustPins {
		page.Pins = append(page.Pins, templates.TrustPin{Name: name, Value: value})
	}
	slices.SortFunc(page.Pins, func(a, b templates.TrustPin) int { return strings.Compare(a.Name, b.Name) })
	page.Paste = templates.WorkloadSnippets(page.Key.Trust.Provider, page.Key.ID.String(), page.Key.Trust.Audience, p.url(tokenPath))
	exchanges, err := p.workload.Exchanges(c.Request.Context(), page.Key.AccountID, page.Key.ID)
	page.Exchanged = len(exchanges) > 0
	return page, err
}

// edit shows the trust rule of a key.
func (p *trustPages) edit(c *gin.Context) error {
	page, err := p.page(c)
	if err != nil {
		return err
	}
	page.Generated = c.Query(paramGenerated) != ""
	return p.show(c, http.StatusOK, page)
}

// preview shows the fields of another provider and who could use the key, and saves nothing.
func (p *trustPages) preview(c *gin.Context) error {
	page, err := p.page(c)
	if err != nil {
		return err
	}
	p.submitted(c, &page.Trust)
	page.Trust.Claims.Problem = ""
	return p.show(c, http.StatusOK, page)
}

// save saves the trust rule of a key.
func (p *trustPages) save(c *gin.Context) error {
	page, err := p.page(c)
	if err != nil {
		return err
	}
	rule := p.submitted(c, &page.Trust)
	if page.Trust.Claims.Problem != "" {
		return p.show(c, http.StatusUnprocessableEntity, page)
	}
	key, err := p.workload.SetTrust(c.Request.Context(), page.Key.AccountID, page.Key.ID, page.Version, rule, actorOf(c))
	switch {
	case explainTrust(&page.Trust, err):
		return p.show(c, http.StatusUnprocessableEntity, page)
	case errors.Is(err, value.ErrKeyAlreadyRevoked):
		return p.views.redirectRevoked(c, key, true)
	case errors.Is(err, value.ErrTrustChanged):
		current := p.formOf("", *key.Trust)
		page.Key, page.Version, page.Current = key, key.TrustVersion.String(), &current
		return p.show(c, http.StatusConflict, page)
	case err != nil:
		return err
	}
	return p.redirectWith(c, trustPath(key), fmt.Sprintf("Trust rule of “%s” saved.", templates.Isolate(key.Label)))
}

func (p *trustPages) show(c *gin.Context, status int, page templates.TrustPage) error {
	if p.views.ended(page.Key) {
		return p.views.redirectRevoked(c, page.Key, true)
	}
	return p.reply(c, reply{status: status, fragment: page, page: present(page)})
}
