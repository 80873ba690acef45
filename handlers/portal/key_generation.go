package portal

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
	"portal/models/keys"
	"portal/models/value"
	"portal/templates"
)

// generate generates a key and shows it once.
func (p *keyPages) generate(c *gin.Context) error {
	// This read may fail, so it comes before the generation: a generated key must be shown.
	submitted, err := p.submittedKey(c)
	if err != nil {
		return err
	}
	form, n, unused := submitted.form, submitted.key, submitted.unused
	if addsAddress(c) {
		addAddress(c, &form.Restrictions)
		return p.refuse(c, http.StatusOK, form)
	}
	if trusted := p.trust.check(&form.Trust, n.Trust); !submitted.valid || !trusted {
		explainRestrictions(&form.Restrictions, &form.LabelProblem, keys.CheckLabel(form.Label))
		key := keys.Key{AccountID: sessionFrom(c).AccountID, Access: n.Access}
		if err := p.restrictions.explainUnread(c, &form.Restrictions, key, n.Restrictions); err != nil {
			return err
		}
		return p.refuse(c, http.StatusUnprocessableEntity, form)
	}
	formID, ok := parseID(c.PostForm("form_id"))
	if !ok {
		form.Problem = "The form was incomplete, so no key was generated. Try again."
		return p.refuse(c, http.StatusUnprocessableEntity, form)
	}
	n.FormID = formID
	key, secret, err := p.views.generate(c, n)
	if err != nil {
		return p.explainRefusal(c, form, err)
	}
	if key.IsWorkload() {
		return p.redirectWith(c, trustPath(key)+"?"+paramGenerated+"=yes", fmt.Sprintf("API key “%s” generated. It has no secret.", templates.Isolate(key.Label)))
	}
	agentID := ""
	if len(unused.Agents) > 0 {
		agentID = unused.Agents[0].ID.String()
	}
	generated := templates.APIKeyGenerated{FormID: uuid.New(), Reveal: p.views.reveal(key, secret, exampleAgentOf(key, agentID))}
	if submitted.used {
		generated.Form = &templates.APIKeyForm{FormID: generated.FormID, Trust: p.trust.form(previewPath), Restrictions: unused}
	}
	return p.reply(c, reply{fragment: generated, page: present(generated.Reveal), reveals: true, event: keysChanged})
}

// generate generates a key within the account's limit of generations, or returns a 429. A
// refused generation does not count.
func (v *keyViews) generate(c *gin.Context, n keys.NewKey) (keys.Key, string, error) {
	accountID := sessionFrom(c).AccountID
	if _, wait := v.generations.Take(accountID); wait > 0 {
		return keys.Key{}, "", problem.TooManyGenerations(wait)
	}
	key, secret, err := v.keys.Generate(c.Request.Context(), accountID, n, actorOf(c))
	if err != nil {
		v.generations.Return(accountID)
	}
	return key, secret, err
}

// reveal returns the view that shows a generated key once.
func (v *keyViews) reveal(key keys.Key, secret, agentID string) templates.APIKeyReveal {
	list := "/api/agents"
	if key.OnlyReports() {
		agentID, list = "", "/api/activity"
	}
	return templates.APIKeyReveal{
		ID: key.ID, Label: key.Label, Key: secret, AgentID: agentID,
		TokenURL: v.url("/api/widget/token"), ListURL: v.url(list), Back: fmt.Sprintf("%s#api-key-%s", homePath, key.ID),
		Expires: templates.NewKeyExpires(key.ExpiresAt, v.Now()), Restrictions: key.Restrictions(),
		OnlyReports: key.OnlyReports(), LeaksReported: v.GitHubKeysURL != "",
	}
}

// explainRefusal shows the form again with the reason why no key was generated.
func (p *keyPages) explainRefusal(c *gin.Context, form templates.APIKeyForm, err error) error {
	if explainRestrictions(&form.Restrictions, &form.LabelProblem, err) {
		return p.refuse(c, http.StatusUnprocessableEntity, form)
	}
	if repeated, ok := errors.AsType[*keys.RepeatedFormError](err); ok {
		form.Repeated = &repeated.Key
		return p.refuse(c, http.StatusConflict, form)
	}
	if errors.Is(err, value.ErrKeyLimit) {
		form.Problem, form.Full = problem.From(err).Message, true
		return p.refuse(c, http.StatusUnprocessableEntity, form)
	}
	return err
}

func (p *keyPages) refuse(c *gin.Context, status int, form templates.APIKeyForm) error {
	form.FormID = uuid.New()
	return p.reply(c, reply{status: status, fragment: form, page: func() (templates.Page, error) {
		return p.page(c, form)
	}})
}

// exampleAgent returns the id of an agent for the examples, empty if the account has none.
func (v *keyViews) exampleAgent(c *gin.Context) (string, error) {
	first, err := v.agents.List(c.Request.Context(), sessionFrom(c).AccountID, value.Page{Limit: 1})
	if err != nil || len(first.Items) == 0 {
		return "", err
	}
	return first.Items[0].ID.String(), nil
}

// exampleAgentOf returns the id of an agent that the key reaches: one of its list or, if it has
// none, first, which may be empty.
func exampleAgentOf(key keys.Key, first string) string {
	switch {
	case key.Agents == nil:
		return first
	case len(key.Agents) == 0:
		return ""
	}
	return key.Agents[0].String()
}

// showFirstUse says that a key has received its first request, was revoked or has expired.
func (p *keyPages) showFirstUse(c *gin.Context) error {
	key, err := p.views.find(c)
	if err != nil {
		return err
	}
	r := reply{
		fragment: templates.FirstUse{
			ID: key.ID, Used: key.LastUsedAt != nil, Revoked: key.RevokedAt != nil, Expired: key.Expired(p.Now()),
		},
		location: homePath + "#revoke-" + key.ID.String(),
	}
	if key.LastUsedAt == nil && !p.views.ended(key) {
		r.status = http.StatusNoContent
	}
	return p.reply(c, r)
}
