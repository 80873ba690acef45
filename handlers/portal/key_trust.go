package portal

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"portal/models/keys"
	"portal/models/value"
	"portal/models/workload"
	"portal/templates"
)

// trustPages are the trust rule of a key, whose controls the form of a new key has too.
type trustPages struct {
	*site

	views    keyViews
	keys     *keys.Keys
	workload *keys.Workload
}

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
		page.Key, page.Version, page.Current = key, key.TrustVersion.String(), new(p.formOf("", *key.Trust))
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

// The prefix of the names of the fields of claims.
const claimField = "claim."

// form returns the controls of a new rule. The address preview shows the form anew.
func (p *trustPages) form(preview string) templates.TrustForm {
	form := templates.TrustForm{Offered: !p.workload.Issuers().Off, Platforms: workload.Platforms(), Preview: preview}
	form.Audience.Value = p.baseURL.String()
	return form
}

// formOf returns the controls with a rule.
func (p *trustPages) formOf(preview string, rule workload.Rule) templates.TrustForm {
	form := p.form(preview)
	form.Workload, form.Provider = true, rule.Provider
	form.Issuer.Value, form.Audience.Value, form.JWKS.Value = rule.Issuer, rule.Audience, string(rule.JWKS)
	form.Sentence = rule.String()
	addTrustFields(&form, rule.Claims)
	return form
}

// addTrustFields adds the fields of the provider, with the values of claims, and of claims that the
// provider has no field for.
func addTrustFields(form *templates.TrustForm, claims map[string][]string) {
	platform, known := form.Provider.Platform()
	if !known {
		return
	}
	form.Issuer = templates.TrustField{ID: "issuer", Name: "issuer", Title: "Issuer", Value: form.Issuer.Value, Example: platform.Example, Problem: form.Issuer.Problem, Needed: platform.Issuer == ""}
	form.Audience = templates.TrustField{ID: "audience", Name: "audience", Title: "Audience", Value: form.Audience.Value, Problem: form.Audience.Problem}
	form.JWKS = templates.TrustField{
		ID: "jwks", Name: "jwks", Title: "Public keys (JWKS)", Value: form.JWKS.Value, Example: `{"keys": [...]}`, Problem: form.JWKS.Problem,
	}
	form.OwnIssuers = slices.Contains([]workload.Provider{workload.GitHub, workload.GitLab, workload.Kubernetes, workload.Other}, form.Provider)
	if form.AnyClaims() {
		form.Claims = templates.TrustField{ID: "claims", Name: "claims", Title: "Claims", Value: form.Claims.Value, Example: "name=value", Problem: form.Claims.Problem, Needed: true}
		if form.Claims.Value == "" {
			form.Claims.Value = claimLines(claims)
		}
		return
	}
	add := func(claim workload.Claim, needed bool) {
		form.Fields = append(form.Fields, templates.TrustField{
			ID: "claim-" + claim.Name, Name: claimField + claim.Name, Title: claim.Title, Value: strings.Join(claims[claim.Name], "\n"),
			Example: claim.Example, Needed: needed,
		})
	}
	for i, claim := range platform.Claims {
		// Where several claims identify a workload, one of them is enough.
		add(claim, claim.Identifying && i == 0 && !slices.ContainsFunc(platform.Claims[1:], func(other workload.Claim) bool { return other.Identifying }))
	}
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		if !slices.ContainsFunc(platform.Claims, func(claim workload.Claim) bool { return claim.Name == name }) {
			add(workload.Claim{Name: name, Title: name}, false)
		}
	}
}

func claimLines(claims map[string][]string) string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		for _, value := range claims[name] {
			lines = append(lines, name+"="+value)
		}
	}
	return strings.Join(lines, "\n")
}

// submitted sets the controls to the values of a submitted form, and returns the rule.
func (p *trustPages) submitted(c *gin.Context, form *templates.TrustForm) workload.Rule {
	rule := workload.Rule{
		Provider: workload.Provider(c.PostForm("provider")), Issuer: strings.TrimSpace(c.PostForm("issuer")),
		Audience: strings.TrimSpace(c.PostForm("audience")), Claims: map[string][]string{},
	}
	form.Provider, form.Fields = rule.Provider, nil
	if _, sent := c.GetPostForm("audience"); !sent {
		rule.Audience = p.baseURL.String()
	}
	platform, _ := rule.Provider.Platform()
	if rule.Issuer == "" || issuerOfOther(rule.Issuer, platform) {
		rule.Issuer = platform.Issuer
	}
	for name, values := range c.Request.PostForm {
		if claim, ok := strings.CutPrefix(name, claimField); ok && rule.Provider != workload.Other {
			if lines := textLines(values[0]); len(lines) > 0 {
				rule.Claims[claim] = lines
			}
		}
	}
	form.Claims.Value, form.JWKS.Value = c.PostForm("claims"), strings.TrimSpace(c.PostForm("jwks"))
	if rule.Provider == workload.Other {
		for _, line := range textLines(form.Claims.Value) {
			name, value, found := strings.Cut(line, "=")
			if !found {
				form.Claims.Problem = "Write each claim as name=value, on a line of its own."
			}
			name = strings.TrimSpace(name)
			rule.Claims[name] = append(rule.Claims[name], strings.TrimSpace(value))
		}
	}
	if form.JWKS.Value != "" {
		rule.JWKS = []byte(form.JWKS.Value)
	}
	form.Issuer.Value, form.Audience.Value = rule.Issuer, rule.Audience
	addTrustFields(form, rule.Claims)
	form.Sentence = ""
	if _, err := p.keys.CheckTrust(rule); err == nil {
		form.Sentence = rule.String()
	}
	return rule
}

// issuerOfOther reports whether an issuer is the one of another provider, which the form filled in.
func issuerOfOther(issuer string, platform workload.Platform) bool {
	return slices.ContainsFunc(workload.Platforms(), func(other workload.Platform) bool {
		return other.Provider != platform.Provider && other.Issuer == issuer
	})
}

// textLines returns the lines of a text that are not empty, without spaces around them.
func textLines(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// explainTrust gives each control its error, of those that err joins. It reports false if none is
// about a trust rule.
func explainTrust(form *templates.TrustForm, err error) (explained bool) {
	for _, one := range inputErrors(err) {
		if field, ok := strings.CutPrefix(one.Field, "trust."); ok {
			explainTrustField(form, field, one.Message)
			explained = true
		}
	}
	return explained
}

func explainTrustField(form *templates.TrustForm, field, message string) {
	form.Sentence = ""
	for i := range form.Fields {
		if name := strings.TrimPrefix(form.Fields[i].Name, claimField); field == "claims."+name || field == "claims" && i == 0 {
			form.Fields[i].Problem = message
			return
		}
	}
	switch field {
	case "provider":
		form.ProviderProblem = message
	case "issuer":
		form.Issuer.Problem = message
	case "audience":
		form.Audience.Problem = message
	case "jwks":
		if form.OwnIssuers {
			form.JWKS.Problem = message
		} else {
			form.Issuer.Problem = "Enter an issuer of this provider. For any other, choose the provider Other."
		}
	default:
		form.Claims.Problem = cmp.Or(form.Claims.Problem, message)
	}
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
