package portal

// The paths that several files name. Those of links are without their token.
const (
	homePath       = "/api-keys"
	previewPath    = homePath + "/preview" // of the form of a new key
	signInPath     = "/login"
	secondStepPath = signInPath + "/verification"
	providerPath   = signInPath + "/oidc"
	// The OpenID Connect provider sends the browser back to it.
	CallbackPath     = providerPath + "/callback"
	sessionPath      = "/session" // polled by every page of a signed-in user
	accountPath      = "/account"
	passkeysPath     = accountPath + "/passkeys"
	secondFactorPath = accountPath + "/second-factor"
	identityPath     = accountPath + "/identity"
	settingsPath     = "/settings"
	agentsPath       = "/agents"
	usagePath        = "/usage"
	activityPath     = "/activity"
	peoplePath       = "/people"
	invitationsPath  = peoplePath + "/invitations"
	webhooksPath     = "/webhooks"

	invitationPath    = "/invitations"
	passwordResetPath = "/password-resets" // also of the page that asks for a link
	signInLinkPath    = "/sign-in-links"
)
