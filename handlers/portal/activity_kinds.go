package portal

import (
	"slices"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/models"
	"portal/templates"
)

// activityKinds are the choices of the filter, in order.
var activityKinds = []struct {
	id, group, all string // all is the name of the choice of the whole group
	actions        []models.Action
}{
	{"keys", "Keys", "All key events", []models.Action{models.ActionKeyGenerated, models.ActionKeyRenamed, models.ActionKeyRevoked}},
	{"agents", "Agents", "All agent events", []models.Action{models.ActionAgentCreated, models.ActionAgentRemoved}},
	{"sessions", "Sign-ins and sessions", "All sign-in events", []models.Action{
		models.ActionSignedIn, models.ActionSignInFailed, models.ActionSignedOut, models.ActionSessionRevoked, models.ActionSessionsRevoked,
	}},
	{"credentials", "Email and password", "All email and password events", []models.Action{
		models.ActionEmailChanged, models.ActionPasswordRefused, models.ActionPasswordChanged, models.ActionPasswordReset,
	}},
	{"database", "Database", "All database events", []models.Action{models.ActionDatabaseRestored}},
}

// activityKindNames are the names of the kinds in the filter.
var activityKindNames = map[models.Action]string{
	models.ActionKeyGenerated:     "New keys",
	models.ActionKeyRenamed:       "Renamed keys",
	models.ActionKeyRevoked:       "Revoked keys",
	models.ActionAgentCreated:     "New agents",
	models.ActionAgentRemoved:     "Removed agents",
	models.ActionSignedIn:         "Sign-ins",
	models.ActionSignInFailed:     "Incorrect passwords",
	models.ActionSignedOut:        "Sign-outs",
	models.ActionSessionRevoked:   "Sessions ended remotely",
	models.ActionSessionsRevoked:  "All other sessions ended",
	models.ActionEmailChanged:     "Email changes",
	models.ActionPasswordRefused:  "Incorrect current passwords",
	models.ActionPasswordChanged:  "Password changes",
	models.ActionPasswordReset:    "Password resets",
	models.ActionDatabaseRestored: "Restored backups",
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

// activityFilter returns the filter with the values of the view.
func (p *Portal) activityFilter(c *gin.Context, view activityView) (templates.ActivityFilter, error) {
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
	session := sessionFrom(c)
	keys, err := p.store.APIKeys(c.Request.Context(), session.AccountID)
	if err != nil {
		return templates.ActivityFilter{}, err
	}
	if view.key != uuid.Nil && !slices.ContainsFunc(keys, func(key models.APIKey) bool { return key.ID == view.key }) {
		chosen, err := p.store.APIKey(c.Request.Context(), session.AccountID, view.key)
		if err != nil {
			return templates.ActivityFilter{}, err
		}
		keys = append(keys, chosen)
	}
	for _, key := range keys {
		filter.Keys = append(filter.Keys, templates.ActivityKey{
			ID: key.ID, Label: key.Label, Masked: key.Masked(), Chosen: key.ID == view.key,
		})
	}
	return filter, nil
}
