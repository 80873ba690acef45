package portal

import (
	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/models"
	"portal/templates"
)

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

// activityFilter returns the filter form with the values of the view.
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
	var err error
	filter.Keys, filter.Revoked, err = p.activityKeys(c, view.key)
	return filter, err
}

// activityKeys returns the active keys and the keys that were revoked last as choices of the
// filter. The chosen key is always among them.
func (p *Portal) activityKeys(c *gin.Context, chosen uuid.UUID) (active, revoked []templates.ActivityKey, err error) {
	account, ctx := sessionFrom(c).AccountID, c.Request.Context()
	keys, err := p.store.Keys.Names(ctx, account, revokedPerPage)
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
		key, err := p.store.Keys.Find(ctx, account, chosen)
		if err != nil {
			return nil, nil, err
		}
		revoked = append(revoked, templates.ActivityKey{ID: key.ID, Name: key.Label + " (" + key.Masked() + ")", Chosen: true})
	}
	return active, revoked, nil
}
