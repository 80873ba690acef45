package portal

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/models/keys"
	"portal/models/value"
	"portal/templates"
)

// page returns the page of the restrictions of the key in the path.
func (p *restrictionsPages) page(c *gin.Context) (page templates.KeyRestrictionsPage, err error) {
	if page.Key, err = p.views.find(c); err != nil {
		return page, err
	}
	page.Note, page.Back = page.Key.Note, back(c, page.Key, focusMenu)
	page.FromKey = wantsBack(c)
	page.Version = cmp.Or(c.PostForm("made_from"), page.Key.RestrictionsVersion())
	page.Restrictions, err = p.formOf(c, page.Key)
	return page, err
}

// edit shows the restrictions and the note of a key.
func (p *restrictionsPages) edit(c *gin.Context) error {
	page, err := p.page(c)
	if err != nil {
		return err
	}
	return p.show(c, http.StatusOK, page)
}

// preview shows what a form would change, and saves nothing.
func (p *restrictionsPages) preview(c *gin.Context) error {
	page, err := p.page(c)
	if err != nil {
		return err
	}
	page.Note = c.PostForm("note")
	p.submitted(c, &page.Restrictions, page.Key)
	clearProblems(&page.Restrictions)
	return p.show(c, http.StatusOK, page)
}

// save saves the restrictions and the note of a key.
func (p *restrictionsPages) save(c *gin.Context) error {
	page, err := p.page(c)
	if err != nil {
		return err
	}
	if note, ok := c.GetPostForm("note"); ok {
		page.Note = note
	}
	key := page.Key
	restrictions, valid := p.submitted(c, &page.Restrictions, key)
	if addsAddress(c) {
		addAddress(c, &page.Restrictions)
		return p.show(c, http.StatusOK, page)
	}
	if !valid {
		explainRestrictions(&page.Restrictions, &page.NoteProblem, keys.CheckNote(page.Note))
		if err := p.explainUnread(c, &page.Restrictions, key, restrictions); err != nil {
			return err
		}
	} else {
		key, err = p.keys.Restrict(c.Request.Context(), key.AccountID, key.ID, page.Version, restrictions, page.Note, actorOf(c))
		valid = !explainRestrictions(&page.Restrictions, &page.NoteProblem, err)
	}
	switch {
	case !valid:
		return p.show(c, http.StatusUnprocessableEntity, page)
	case errors.Is(err, value.ErrKeyAlreadyRevoked):
		return p.views.redirectRevoked(c, key, true)
	case errors.Is(err, value.ErrKeyRestricted):
		return p.showNewer(c, page, key)
	case err != nil:
		return err
	}
	return p.redirectWith(c, back(c, key, focusMenu),
		fmt.Sprintf("Restrictions of “%s” saved.", templates.Isolate(key.Label)))
}

// showNewer shows a form that was made from an older state of the key, beside the
// current one. Sent again, it replaces the current state.
func (p *restrictionsPages) showNewer(c *gin.Context, page templates.KeyRestrictionsPage, current keys.Key) error {
	restrictions, err := p.formOf(c, current)
	if err != nil {
		return err
	}
	page.Key, page.Version = current, current.RestrictionsVersion()
	page.Current = &templates.CurrentRestrictions{KeyRestrictions: restrictions, Note: current.Note}
	return p.show(c, http.StatusConflict, page)
}

func (p *restrictionsPages) show(c *gin.Context, status int, page templates.KeyRestrictionsPage) error {
	if p.views.ended(page.Key) {
		return p.views.redirectRevoked(c, page.Key, true)
	}
	sources, err := p.keyUsage.Sources(c.Request.Context(), page.Key.AccountID, page.Key.ID)
	if err != nil {
		return err
	}
	page.Sources = judged(templates.NewKeySources(sources, p.now()), sources, page.Restrictions.Networks)
	for _, source := range page.Sources {
		if source.Refused {
			page.RefusedSources++
		}
	}
	used, err := p.agents.UsedBy(c.Request.Context(), page.Key.AccountID, page.Key.ID)
	if err != nil {
		return err
	}
	page.AgentsUsed = p.agentsUsed(used, page.Restrictions)
	for _, agent := range page.AgentsUsed {
		if agent.Refused {
			page.RefusedAgents++
		}
	}
	listed := min(len(page.AgentsUsed), maxAgentsUsed)
	page.AgentsUsed, page.MoreAgents = page.AgentsUsed[:listed], len(page.AgentsUsed)-listed
	page.LastUsed = optionalMoment(page.Key.LastUsedAt, p.now())
	return p.reply(c, reply{status: status, fragment: page, page: present(page)})
}

// judged marks the sources that the networks of a form refuse or may refuse, and moves them to the
// start. If a network is wrong, none is marked.
func judged(rows []templates.KeySource, sources []keys.KeySource, text string) []templates.KeySource {
	networks, err := networksIn(text)
	if err != nil {
		return rows
	}
	for i, one := range sources {
		all, some := one.In(networks)
		rows[i].Refused, rows[i].Perhaps = one.Address != "" && !all, some
	}
	slices.SortStableFunc(rows, func(a, b templates.KeySource) int { return refusedFirst(a.Refused, b.Refused) })
	return rows
}

// maxAgentsUsed is how many used agents the page of restrictions lists.
const maxAgentsUsed = 20

// agentsUsed returns the agents that a key used, those that a form leaves out first and then the
// latest.
func (p *restrictionsPages) agentsUsed(used map[uuid.UUID]time.Time, form templates.KeyRestrictions) (uses []templates.KeyAgentUse) {
	for _, agent := range form.Agents {
		if at, ok := used[agent.ID]; ok {
			refused := form.OnlyThese && !agent.Chosen
			uses = append(uses, templates.KeyAgentUse{Name: agent.Name, At: templates.NewMoment(at, p.now()), Refused: refused})
		}
	}
	slices.SortStableFunc(uses, func(a, b templates.KeyAgentUse) int {
		return cmp.Or(refusedFirst(a.Refused, b.Refused), cmp.Compare(b.At.Machine, a.At.Machine))
	})
	return uses
}

func refusedFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
