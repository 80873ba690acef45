package portal

import (
	"net/url"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
	"portal/models"
	"portal/templates"
)

// The parameters of the filter.
const (
	paramKind   = "kind" // an action or a group
	paramKey    = "key"
	paramFrom   = "from" // a UTC day, such as 2026-03-14
	paramUntil  = "to"   // the last UTC day
	paramSearch = "q"
)

// activityView is the filter of the activity page.
type activityView struct {
	kind        string
	actions     []models.Action
	key         uuid.UUID
	from, until time.Time // days; zero if not set
	search      string
}

// newActivityView returns the view that the parameters describe. It returns a 404 for an unknown
// kind and ignores other invalid values. API keys in the search are redacted.
func newActivityView(parameters url.Values) (activityView, error) {
	view := activityView{kind: parameters.Get(paramKind)}
	if view.kind != "" {
		if view.actions = actionsOf(view.kind); view.actions == nil {
			return activityView{}, problem.NotFound()
		}
	}
	view.key, _ = parseID(parameters.Get(paramKey))
	view.from, _ = time.Parse(time.DateOnly, parameters.Get(paramFrom))
	view.until, _ = time.Parse(time.DateOnly, parameters.Get(paramUntil))
	search := strings.TrimSpace(models.RedactKeys(parameters.Get(paramSearch)))
	view.search = strings.TrimPrefix(search, "nas_...")
	return view, nil
}

// page returns the page of the activity log that the view selects.
func (v activityView) page(limit int) models.ActivityPage {
	page := models.ActivityPage{Limit: limit, Actions: v.actions, KeyID: v.key, From: v.from, Search: v.search}
	if !v.until.IsZero() {
		page.Until = v.until.AddDate(0, 0, 1)
	}
	return page
}

// address returns the URL of the view at path. Unless before is empty, the page starts after the
// activity with that id.
func (v activityView) address(path, before string) string {
	query := url.Values{}
	set := func(name, value string) {
		if value != "" {
			query.Set(name, value)
		}
	}
	set(paramKind, v.kind)
	if v.key != uuid.Nil {
		set(paramKey, v.key.String())
	}
	set(paramFrom, dateOf(v.from))
	set(paramUntil, dateOf(v.until))
	set(paramSearch, v.search)
	set(paramBefore, before)
	return (&url.URL{Path: path, RawQuery: query.Encode()}).String()
}

// dateOf formats the day for a date field. It returns "" for the zero day.
func dateOf(day time.Time) string {
	if day.IsZero() {
		return ""
	}
	return day.Format(time.DateOnly)
}

// filter redirects to the filtered page. The filter is sent with POST, because a key that
// is pasted into the search must not reach a URL.
func (p *activityPages) filter(c *gin.Context) error {
	view, err := newActivityView(c.Request.PostForm)
	if err != nil {
		return err
	}
	return p.redirect(c, view.address(activityPath, ""))
}

// activityKinds are the choices of the filter, in order.
var activityKinds = []struct {
	id, group, all string // all names the choice that selects the whole group
	actions        []models.Action
}{
	{"keys", "Keys", "All key events", []models.Action{models.ActionKeyGenerated, models.ActionKeyRenamed, models.ActionKeyRevoked, models.ActionCallsEnded}},
	{"agents", "Agents", "All agent events", []models.Action{models.ActionAgentCreated, models.ActionAgentRenamed, models.ActionAgentRemoved}},
	{"sessions", "Sign-ins and sessions", "All sign-in events", []models.Action{
		models.ActionSignedIn, models.ActionSignInFailed, models.ActionSignedOut, models.ActionSessionRevoked, models.ActionSessionsRevoked,
	}},
	{"credentials", "Email and password", "All email and password events", []models.Action{
		models.ActionEmailChanged, models.ActionPasswordRefused, models.ActionPasswordChanged, models.ActionPasswordReset,
	}},
	{"factors", "Second factors", "All second factor events", []models.Action{
		models.ActionTOTPOn, models.ActionTOTPOff, models.ActionCodeRefused, models.ActionCodesRefused,
		models.ActionRecoveryCodeUsed, models.ActionRecoveryCodesRenewed, models.ActionPasskeyAdded, models.ActionPasskeyRemoved,
		models.ActionSecondFactorRequired, models.ActionSecondFactorOptional, models.ActionSecondFactorReset,
	}},
	{"identities", "Sign-in with a provider", "All provider events", []models.Action{
		models.ActionIdentityConnected, models.ActionIdentityDisconnected,
	}},
	{"users", "People", "All people events", []models.Action{
		models.ActionInvitationCreated, models.ActionInvitationCancelled, models.ActionInvitationAccepted,
		models.ActionUserMadeOwner, models.ActionUserMadeMember,
		models.ActionUserAdded, models.ActionUserDisabled, models.ActionUserEnabled, models.ActionUserRemoved, models.ActionLinkCreated,
	}},
	{"account", "Account", "All account events", []models.Action{
		models.ActionAccountCreated, models.ActionAccountRenamed, models.ActionAccountDisabled, models.ActionAccountEnabled,
	}},
	{"database", "Database", "All database events", []models.Action{models.ActionDatabaseRestored}},
}

// activityKindNames are the names of the kinds in the filter.
var activityKindNames = map[models.Action]string{
	models.ActionKeyGenerated:         "New keys",
	models.ActionKeyRenamed:           "Renamed keys",
	models.ActionKeyRevoked:           "Revoked keys",
	models.ActionCallsEnded:           "Ended calls",
	models.ActionAgentCreated:         "New agents",
	models.ActionAgentRenamed:         "Renamed agents",
	models.ActionAgentRemoved:         "Removed agents",
	models.ActionSignedIn:             "Sign-ins",
	models.ActionSignInFailed:         "Incorrect passwords",
	models.ActionSignedOut:            "Sign-outs",
	models.ActionSessionRevoked:       "Sessions ended remotely",
	models.ActionSessionsRevoked:      "All other sessions ended",
	models.ActionEmailChanged:         "Email changes",
	models.ActionPasswordRefused:      "Incorrect current passwords",
	models.ActionPasswordChanged:      "Password changes",
	models.ActionPasswordReset:        "Password resets",
	models.ActionIdentityConnected:    "Connected providers",
	models.ActionIdentityDisconnected: "Disconnected providers",
	models.ActionInvitationCreated:    "New invitations",
	models.ActionInvitationCancelled:  "Cancelled invitations",
	models.ActionInvitationAccepted:   "Accepted invitations",
	models.ActionUserMadeOwner:        "Members made owners",
	models.ActionUserMadeMember:       "Owners made members",
	models.ActionUserAdded:            "New users",
	models.ActionUserDisabled:         "Disabled users",
	models.ActionUserEnabled:          "Enabled users",
	models.ActionUserRemoved:          "Removed users",
	models.ActionLinkCreated:          "Sign-in links",
	models.ActionAccountCreated:       "Account created",
	models.ActionAccountRenamed:       "Account renamed",
	models.ActionAccountDisabled:      "Account disabled",
	models.ActionAccountEnabled:       "Account enabled",
	models.ActionDatabaseRestored:     "Restored backups",

	models.ActionTOTPOn:               "Two-step verification turned on",
	models.ActionTOTPOff:              "Two-step verification turned off",
	models.ActionPasskeyAdded:         "New passkeys",
	models.ActionPasskeyRemoved:       "Removed passkeys",
	models.ActionSecondFactorRequired: "Second factor required",
	models.ActionSecondFactorOptional: "Second factor no longer required",
	models.ActionCodeRefused:          "Incorrect codes",
	models.ActionCodesRefused:         "Many incorrect codes",
	models.ActionRecoveryCodeUsed:     "Used recovery codes",
	models.ActionRecoveryCodesRenewed: "New recovery codes",
	models.ActionSecondFactorReset:    "Resets by an operator",
}

// actionsOf returns the actions of a kind, which is an action or the id of a group. It returns nil
// for an unknown kind.
func actionsOf(kind string) []models.Action {
	for _, group := range activityKinds {
		if group.id == kind {
			return group.actions
		}
	}
	if _, known := activityKindNames[models.Action(kind)]; known {
		return []models.Action{models.Action(kind)}
	}
	return nil
}

// filterForm returns the filter form with the values of the view.
func (p *activityPages) filterForm(c *gin.Context, view activityView) (templates.ActivityFilter, error) {
	filter := templates.ActivityFilter{
		From: dateOf(view.from), Until: dateOf(view.until), Search: view.search,
		Active: view.address(activityPath, "") != activityPath,
	}
	for _, kind := range activityKinds {
		group := templates.ActivityKinds{Name: kind.group, Kinds: []templates.ActivityKind{
			{Kind: kind.id, Name: kind.all, Chosen: kind.id == view.kind},
		}}
		for _, action := range kind.actions {
			group.Kinds = append(group.Kinds, templates.ActivityKind{
				Kind: string(action), Name: activityKindNames[action], Chosen: string(action) == view.kind,
			})
		}
		filter.Groups = append(filter.Groups, group)
	}
	var err error
	filter.Keys, filter.Revoked, err = p.keyChoices(c, view.key)
	return filter, err
}

// keyChoices returns the active keys and the keys that were revoked last as choices of the
// filter. The chosen key is always among them.
func (p *activityPages) keyChoices(c *gin.Context, chosen uuid.UUID) (active, revoked []templates.ActivityKey, err error) {
	account, ctx := sessionFrom(c).AccountID, c.Request.Context()
	keys, err := p.keys.Names(ctx, account, revokedPerPage)
	if err != nil {
		return nil, nil, err
	}
	found := chosen == uuid.Nil
	for _, key := range keys {
		choice := templates.ActivityKey{ID: key.ID, Name: key.Label + " (" + key.Masked() + ")", Chosen: key.ID == chosen}
		found = found || choice.Chosen
		if key.RevokedAt == nil {
			active = append(active, choice)
		} else {
			revoked = append(revoked, choice)
		}
	}
	if !found {
		key, err := p.keys.Find(ctx, account, chosen)
		if err != nil {
			return nil, nil, err
		}
		revoked = append(revoked, templates.ActivityKey{ID: key.ID, Name: key.Label + " (" + key.Masked() + ")", Chosen: true})
	}
	return active, revoked, nil
}
