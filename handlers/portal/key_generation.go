package portal

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"

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

// showFirstUse says that a key has received its first request, was revoked or has expired.
func (p *keyPages) showFirstUse(c *gin.Context) error {
	key, err := p.views.find(c)
	if err != nil {
		return err
	}
	r := reply{
		fragment: templates.FirstUse{
			ID: key.ID, Used: key.LastUsedAt != nil, Revoked: key.RevokedAt != nil, Expired: key.Expired(p.now()),
		},
		location: homePath + "#revoke-" + key.ID.String(),
	}
	if key.LastUsedAt == nil && !p.views.ended(key) {
		r.status = http.StatusNoContent
	}
	return p.reply(c, r)
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
		s.key.Trust = new(p.trust.submitted(c, &s.form.Trust))
	}
	return s, nil
}
