package portal

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"portal/models/keys"
	"portal/models/value"
	"portal/models/workload"
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

// previewKey shows the form of a new key with the fields of its provider, and generates nothing.
func (p *keyPages) previewKey(c *gin.Context) error {
	submitted, err := p.submittedKey(c)
	if err != nil {
		return err
	}
	clearProblems(&submitted.form.Restrictions)
	submitted.form.Trust.Claims.Problem = ""
	return p.refuse(c, http.StatusOK, submitted.form)
}

// submittedKey is a submitted form of a new key.
type submittedKey struct {
	form   templates.APIKeyForm // with the submitted values
	unused templates.KeyRestrictions
	used   bool        // the form has more than a label
	key    keys.NewKey // without the id of the form
	valid  bool        // the restrictions
}

func (p *keyPages) submittedKey(c *gin.Context) (s submittedKey, err error) {
	if s.unused, err = p.restrictions.formOf(c, keys.Key{}); err != nil {
		return s, err
	}
	s.key = keys.NewKey{Label: c.PostForm("label"), Access: keys.Access(c.PostForm("access"))}
	s.form = templates.APIKeyForm{
		Label: s.key.Label, OnlyReports: s.key.Access == keys.AccessReports, Restrictions: s.unused, Trust: p.trust.form(previewPath),
	}
	s.form.Restrictions.Agents = slices.Clone(s.unused.Agents)
	s.key.Restrictions, s.valid = p.restrictions.submitted(c, &s.form.Restrictions, keys.Key{Access: s.key.Access})
	s.used = s.form.OnlyReports || c.PostForm("provider") != "" || !reflect.DeepEqual(s.form.Restrictions, s.unused)
	if s.form.Trust.Workload = s.form.Trust.Offered && c.PostForm("credential") == string(keys.CredentialWorkload); s.form.Trust.Workload {
		rule := p.trust.submitted(c, &s.form.Trust)
		s.key.Trust = &rule
	}
	return s, nil
}

// check explains the mistakes of a rule, and reports whether there are none. A nil rule has
// none.
func (p *trustPages) check(form *templates.TrustForm, rule *workload.Rule) bool {
	if rule == nil {
		return true
	}
	_, err := p.keys.CheckTrust(*rule)
	return !explainTrust(form, err) && form.Claims.Problem == ""
}
