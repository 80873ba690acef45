package portal

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/middleware"
	"portal/models/agents"
	"portal/models/calls"
	"portal/models/keys"
	"portal/models/value"
	"portal/templates"
)

// restrictionsPages are the restrictions of a key, whose controls the form of a new key has too.
type restrictionsPages struct {
	*site

	views    keyViews
	keys     *keys.Keys
	keyUsage *keys.Usage
	agents   *agents.Agents
	calls    *calls.Calls
}

// formOf returns the controls with the restrictions of a key. The zero key is a new one.
func (p *restrictionsPages) formOf(c *gin.Context, key keys.Key) (templates.KeyRestrictions, error) {
	form := templates.KeyRestrictions{New: key.ID == uuid.Nil}
	limit := p.keys.MaxLifetime()
	if limit == 0 || key.ID != uuid.Nil && key.ExpiresAt == nil {
		form.Expiries = append(form.Expiries, templates.KeyExpiry{Value: templates.ExpiresNever, Name: "Never"})
	}
	for _, option := range keyExpiries {
		if limit == 0 || time.Duration(option.days)*value.Day <= limit {
			form.Expiries = append(form.Expiries, templates.KeyExpiry{Value: strconv.Itoa(option.days), Name: option.name})
		}
	}
	if limit == 0 || limit >= value.Day || key.ExpiresAt != nil {
		form.Expiries = append(form.Expiries, templates.KeyExpiry{Value: templates.ExpiresOnDate, Name: "On a date"})
	}
	if limit > 0 && limit < value.Day {
		// The end of no day may be within the limit.
		form.Expiries = append(form.Expiries, templates.KeyExpiry{Value: templates.ExpiresLatest, Name: value.WholeDays(limit)})
	}
	form.Expires = form.Expiries[0].Value
	if limit > 0 {
		form.Maximum = value.WholeDays(limit)
		form.ExpiryDate = p.now().UTC().Add(limit - value.Day).Format(time.DateOnly)
	}
	if key.ExpiresAt != nil {
		form.Expires, form.ExpiryDate = templates.ExpiresOnDate, templates.LastDay(*key.ExpiresAt).Format(time.DateOnly)
	}
	form.OnlyReports, form.OnlyThese = key.OnlyReports(), key.Agents != nil
	agents, err := p.agents.List(c.Request.Context(), sessionFrom(c).AccountID, value.Page{Limit: value.MaxAgents})
	sortAgents(agents.Items)
	for _, agent := range agents.Items {
		form.Agents = append(form.Agents, templates.KeyAgent{ID: agent.ID, Name: agent.Name, Chosen: slices.Contains(key.Agents, agent.ID)})
	}
	if p.calls.Enabled() && (form.New || !form.OnlyReports) {
		form.Limits = limitFields(key.Limits)
	}
	for _, network := range key.Networks {
		form.Networks += networkText(network) + "\n"
	}
	return form, err
}

// keyExpiries are the numbers of days until a key expires, with their names.
var keyExpiries = []struct {
	days int
	name string
}{{30, "30 days"}, {90, "90 days"}, {365, "1 year"}}

// keyLimits are the fields of the limits of calls.
var keyLimits = []struct {
	field, id, title string
	of               func(*value.Limits) *int64
}{
	{"calls", "calls", "Calls at a time", func(l *value.Limits) *int64 { return &l.Calls }},
	{"minutesPerCall", "call", "Minutes a call", func(l *value.Limits) *int64 { return &l.MinutesPerCall }},
	{"minutesPerMonth", "month", "Minutes a month", func(l *value.Limits) *int64 { return &l.MinutesPerMonth }},
}

func limitFields(limits value.Limits) (fields []templates.KeyLimit) {
	for _, limit := range keyLimits {
		value := ""
		if n := *limit.of(&limits); n > 0 {
			value = strconv.FormatInt(n, 10)
		}
		fields = append(fields, templates.KeyLimit{ID: "limit-" + limit.id, Name: limit.field, Title: limit.title, Value: value})
	}
	return fields
}

// submittedLimits sets the fields to the values of a submitted form, and returns the limits.
// Without the fields, the limits of the key stay.
func submittedLimits(c *gin.Context, form *templates.KeyRestrictions, key keys.Key) (limits value.Limits, valid bool) {
	limits, valid = key.Limits, true
	for i := range form.Limits {
		field := &form.Limits[i]
		text, ok := c.GetPostForm(field.Name)
		if !ok {
			continue
		}
		field.Value = text
		limit := keyLimits[i].of(&limits)
		*limit = 0
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n == 0 {
			n = -1 // refused with the range
		}
		*limit = n
	}
	if err := value.CheckLimits(limits); err != nil {
		return limits, !explainRestrictions(form, nil, err)
	}
	return limits, valid
}

// networkText returns a network without the length if it is a single address.
func networkText(network netip.Prefix) string {
	if network.IsSingleIP() {
		return network.Addr().String()
	}
	return network.String()
}

// The values of the form's radio buttons for agents.
const allAgents, onlyAgents = "all", "only"

// submitted sets the controls to the values of a submitted form, and returns the
// restrictions. If a value is wrong, it reports false, and each wrong control has its error. A form
// without the controls changes nothing. The form of a new key for reports hides the agents and the
// limits, so what was entered there before is ignored.
func (p *restrictionsPages) submitted(c *gin.Context, form *templates.KeyRestrictions, key keys.Key) (keys.Restrictions, bool) {
	if value, ok := c.GetPostForm("expires"); ok {
		form.Expires, form.ExpiryDate = value, c.PostForm("expiry_date")
	}
	if value, ok := c.GetPostForm("agents"); ok {
		form.OnlyThese = value != allAgents // a wrong value must not widen the key
		chosen := c.PostFormArray("agent")
		for i, agent := range form.Agents {
			form.Agents[i].Chosen = slices.Contains(chosen, agent.ID.String())
		}
	}
	if value, ok := c.GetPostForm("networks"); ok {
		form.Networks = value
	}
	reports, valid := form.New && key.OnlyReports(), true
	var r keys.Restrictions
	var err error
	if !reports {
		r.Limits, valid = submittedLimits(c, form, key)
	}
	if r.ExpiresAt, err = p.expiryOf(*form, key); err != nil {
		valid = !explainRestrictions(form, nil, err) && valid
	}
	switch value, ok := c.GetPostForm("agents"); {
	case !ok:
		r.Agents = key.Agents
	case value != allAgents && value != onlyAgents:
		form.AgentsProblem = "Choose All agents or Only these."
		valid = false
	case form.OnlyThese && !reports:
		r.Agents = []uuid.UUID{}
		for _, text := range c.PostFormArray("agent") {
			// An id of zeros is not an agent, so the store refuses it.
			id, _ := parseID(text)
			r.Agents = append(r.Agents, id)
		}
	}
	if strings.TrimSpace(form.Networks) != "" {
		if r.Networks, err = networksIn(form.Networks); err != nil {
			valid = !explainRestrictions(form, nil, err) && valid
		}
	}
	return r, valid
}

// networksIn returns the networks in a text, one a line. Commas, semicolons and spaces separate
// them too, as in the lists of other programs.
func networksIn(text string) ([]netip.Prefix, error) {
	return value.ParseNetworks(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(",;", r) || unicode.IsSpace(r) }))
}

// explainUnread adds the errors that only the store finds to those of a form that cannot be read.
func (p *restrictionsPages) explainUnread(c *gin.Context, form *templates.KeyRestrictions, key keys.Key, r keys.Restrictions) error {
	unread, other := form.ExpiresProblem, ""
	if err := p.keys.CheckRestrictions(c.Request.Context(), key, r); err != nil && !explainRestrictions(form, &other, err) {
		return err
	}
	form.ExpiresProblem = cmp.Or(unread, form.ExpiresProblem)
	return nil
}

// expiryOf returns when the key expires. On the date that the key has already, the time stays too.
func (p *restrictionsPages) expiryOf(form templates.KeyRestrictions, key keys.Key) (*time.Time, error) {
	if form.Expires == templates.ExpiresNever {
		return nil, nil
	}
	if form.OnDate() {
		date, err := time.Parse(time.DateOnly, form.ExpiryDate)
		if key.ExpiresAt != nil && err == nil && date.Equal(templates.LastDay(*key.ExpiresAt)) {
			return key.ExpiresAt, nil
		}
		end := date.AddDate(0, 0, 1)
		switch {
		case err != nil:
			return nil, &value.InvalidError{Field: "expires", Message: "Enter a date, such as 2027-01-31."}
		case end.Year() > 9999:
			return nil, &value.InvalidError{Field: "expires", Message: "Enter a date before 9999-12-31."}
		}
		return &end, nil
	}
	if limit := p.keys.MaxLifetime(); form.Expires == templates.ExpiresLatest && limit > 0 {
		end := p.now().Add(limit)
		return &end, nil
	}
	for _, option := range keyExpiries {
		if form.Expires == strconv.Itoa(option.days) {
			end := p.now().Add(time.Duration(option.days) * value.Day)
			return &end, nil
		}
	}
	return nil, &value.InvalidError{Field: "expires", Message: "Choose when the key expires."}
}

// explainRestrictions gives each control its error, of those that err joins. It reports false if
// err is not about input. The error of another field goes to other, which has one such field.
func explainRestrictions(form *templates.KeyRestrictions, other *string, err error) bool {
	invalid := inputErrors(err)
	for _, one := range invalid {
		switch one.Field {
		case "expires":
			form.ExpiresProblem = one.Message
		case "agents":
			form.AgentsProblem = one.Message
		case "networks":
			form.NetworksProblem = one.Message
		default:
			problem := other
			for i := range form.Limits {
				if form.Limits[i].Name == one.Field {
					problem = &form.Limits[i].Problem
				}
			}
			*problem = one.Message
		}
	}
	return len(invalid) > 0
}

// clearProblems removes the errors of the controls, which are shown when the form is sent.
func clearProblems(form *templates.KeyRestrictions) {
	form.ExpiresProblem, form.AgentsProblem, form.NetworksProblem = "", "", ""
	for i := range form.Limits {
		form.Limits[i].Problem = ""
	}
}

// addsAddress reports whether "Add my address" was pressed. Nothing is saved then.
func addsAddress(c *gin.Context) bool { return c.PostForm("add_address") != "" }

// addAddress adds the address of the client to the networks, and says which one it is.
func addAddress(c *gin.Context, form *templates.KeyRestrictions) {
	clearProblems(form)
	client := middleware.ClientOf(c)
	address := client.Nearest()
	if !address.IsValid() {
		form.AddressAdded, form.AddressDoubtful = "Your address is unknown, so none was added.", true
		return
	}
	lines := strings.Fields(form.Networks)
	if !slices.Contains(lines, address.String()) {
		form.Networks = strings.TrimLeft(strings.TrimRight(form.Networks, "\r\n ")+"\n"+address.String()+"\n", "\n")
	}
	form.AddressAdded = fmt.Sprintf("Added %s, the address of this browser. Your servers may have others.", address)
	switch {
	case c.GetHeader("X-Forwarded-For") != "" && address == client.Peer:
		form.AddressDoubtful = true
		form.AddressAdded = fmt.Sprintf("Added %s. This is the address of a proxy that the portal does not know, not yours.", address)
	case address.IsPrivate() || address.IsLoopback() || address.IsLinkLocalUnicast():
		form.AddressDoubtful = true
		form.AddressAdded = fmt.Sprintf("Added %s, which is a private address. The portal sees it only from its own network.", address)
	}
}
