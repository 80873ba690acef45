package portal

import (
	"portal/models"
	"portal/templates"
)

// activityKinds are the choices of the filter, in order.
var activityKinds = []struct {
	group   string
	actions []models.Action
}{
	{"Keys", []models.Action{models.ActionKeyGenerated, models.ActionKeyRenamed, models.ActionKeyRevoked}},
	{"Agents", []models.Action{models.ActionAgentCreated, models.ActionAgentRemoved}},
	{"Sessions", []models.Action{
		models.ActionSignedIn, models.ActionSignInFailed, models.ActionSignedOut, models.ActionSessionRevoked, models.ActionSessionsRevoked,
	}},
	{"Email and password", []models.Action{
		models.ActionEmailChanged, models.ActionPasswordRefused, models.ActionPasswordChanged, models.ActionPasswordReset,
	}},
}

// activityKindNames are the names of the kinds in the filter.
var activityKindNames = map[models.Action]string{
	models.ActionKeyGenerated:    "New keys",
	models.ActionKeyRenamed:      "Renamed keys",
	models.ActionKeyRevoked:      "Revoked keys",
	models.ActionAgentCreated:    "New agents",
	models.ActionAgentRemoved:    "Removed agents",
	models.ActionSignedIn:        "Sign-ins",
	models.ActionSignInFailed:    "Incorrect passwords",
	models.ActionSignedOut:       "Sign-outs",
	models.ActionSessionRevoked:  "Sessions ended remotely",
	models.ActionSessionsRevoked: "All other sessions ended",
	models.ActionEmailChanged:    "Email changes",
	models.ActionPasswordRefused: "Incorrect current passwords",
	models.ActionPasswordChanged: "Password changes",
	models.ActionPasswordReset:   "Password resets",
}

// activityFilter returns the filter with the chosen kind selected.
func activityFilter(chosen models.Action) templates.ActivityFilter {
	filter := templates.ActivityFilter{Chosen: string(chosen)}
	for _, kind := range activityKinds {
		group := templates.ActivityKinds{Name: kind.group}
		for _, action := range kind.actions {
			group.Kinds = append(group.Kinds, templates.ActivityKind{
				Action: string(action), Name: activityKindNames[action], Chosen: action == chosen,
			})
		}
		filter.Groups = append(filter.Groups, group)
	}
	return filter
}
