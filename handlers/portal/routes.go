package portal

import (
	"github.com/gin-gonic/gin"

	"portal/static"
)

// Register adds the portal's routes.
func (p *Portal) Register(r gin.IRouter) {
	deadline := p.deadline
	// For everyone. A sign-in waits in the queue for password hashing, so it sets its own
	// deadlines.
	r.GET(static.Prefix+"*name", p.handle(p.showAsset))
	r.GET("/.well-known/security.txt", p.handle(p.showSecurityContact))
	r.GET("/login", deadline, p.handle(p.newSession))
	r.POST("/login", p.handle(p.createSession))
	r.GET(secondStepPath, deadline, p.handle(p.showSecondStep))
	r.POST(secondStepPath, deadline, p.handle(p.finishSignIn))
	r.GET(SignInLinkPath+"/:token", deadline, p.handle(p.showSignInLink))
	r.POST(SignInLinkPath+"/:token", deadline, p.handle(p.useSignInLink))
	r.GET(invitationPath+"/:token", deadline, p.handle(p.showInvitation))
	r.POST(invitationPath+"/:token", p.handle(p.join))
	reset := r.Group(passwordResetPath, p.requireMail)
	reset.GET("", deadline, p.handle(p.newPasswordReset))
	reset.POST("", deadline, p.handle(p.createPasswordReset))
	reset.GET("/:token", deadline, p.handle(p.showPasswordReset))
	reset.POST("/:token", p.handle(p.usePasswordReset))
	r.GET("/docs", p.handle(p.showReference))
	r.GET("/docs/guides", p.handle(p.showGuides))
	r.GET("/docs/changelog", p.handle(p.showChangelog))
	r.POST("/logout", deadline, p.handle(p.destroySession))
	r.GET(sessionPath, background, deadline, p.handle(p.showSession))

	// These wait for the OpenID Connect provider, so they set their own deadlines.
	if p.provider != nil {
		r.GET(providerPath, p.handle(p.startProviderSignIn))
		r.GET(CallbackPath, p.handle(p.finishProviderSignIn))
		r.GET(invitationPath+"/:token/oidc", p.handle(p.startProviderJoin))
		changes := r.Group(identityPath, p.requireSession, p.requireFreshSignIn)
		changes.POST("", p.handle(p.createIdentity))
		changes.POST("/removal", p.deadline, p.handle(p.removeIdentity))
	}

	// For signed-in users. A page is an address that sign-in may lead back to.
	page := func(g gin.IRouter, path string, h handler) {
		p.pages = append(p.pages, path)
		g.GET(path, p.plainAddress, p.handle(h))
	}

	// Open pages poll these.
	polled := r.Group("", background, deadline, p.requireSession)
	page(polled, "/api-keys/:id/first-use", p.showFirstUse)
	page(polled, "/api-keys/:id/rotation/progress", p.showRotationProgress)
	page(polled, changesPath, p.showChanges)
	page(polled, "/api-keys/:id/revocation/outcome", p.showRevocationOutcome)

	// These send a download or wait in the queue for password hashing, so they set their own
	// deadlines.
	long := r.Group("", p.requireSession)
	long.GET(exportPath, p.handle(p.exportActivities))
	long.POST("/account/email", p.handle(p.changeEmail))
	long.POST("/account/password", p.handle(p.changePassword))

	// These change how the user signs in.
	factors := r.Group("", p.requireSession, p.requireFreshSignIn, deadline)
	factors.POST("/account/authenticator", p.handle(p.startAuthenticator))
	factors.POST("/account/authenticator/confirmation", p.handle(p.enableAuthenticator))
	factors.POST("/account/authenticator/removal", p.handle(p.disableAuthenticator))
	factors.POST("/account/recovery-codes", p.handle(p.renewRecoveryCodes))
	factors.POST(passkeysPath+"/:id/removal", p.handle(p.removePasskey))
	if p.webauthn != nil {
		factors.POST(passkeysPath, p.handle(p.createPasskey))
		factors.POST(passkeysPath+"/options", p.handle(p.passkeyOptions))
		r.GET(passkeySignInPath, p.handle(p.leadToSignIn))
		r.POST(passkeySignInPath, deadline, p.handle(p.signInWithPasskey))
		r.POST(passkeySignInPath+"/options", deadline, p.handle(p.passkeySignInOptions))
	}

	users := r.Group("", deadline, p.requireSession)
	page(users, "/", p.home)
	page(users, homePath, p.listAPIKeys)
	users.POST(homePath, p.handle(p.generateAPIKey))
	page(users, revokedPath, p.listRevokedKeys)
	page(users, "/api-keys/:id", p.showAPIKey)
	page(users, "/api-keys/:id/usage", p.showUsage)
	page(users, "/api-keys/:id/name", p.editAPIKeyName)
	users.POST("/api-keys/:id/name", p.handle(p.updateAPIKeyName))
	page(users, "/api-keys/:id/revocation", p.newRevocation)
	users.POST("/api-keys/:id/revocation", p.handle(p.createRevocation))
	page(users, "/api-keys/:id/rotation", p.showRotation)
	users.POST("/api-keys/:id/rotation", p.handle(p.createReplacement))
	page(users, "/api-keys/:id/rotation/revocation", p.newRotationRevocation)
	users.POST("/api-keys/:id/rotation/revocation", p.handle(p.createRotationRevocation))
	page(users, agentsPath, p.listAgents)
	users.POST(agentsPath, p.handle(p.createAgent))
	page(users, "/agents/:id", p.showAgent)
	page(users, "/agents/:id/removal", p.newAgentRemoval)
	users.POST("/agents/:id/removal", p.handle(p.createAgentRemoval))
	page(users, "/integrate", p.showIntegration)
	page(users, activityPath, p.listActivities)
	users.POST(activityPath+"/filter", p.handle(p.filterActivities))
	page(users, peoplePath, p.listPeople)
	page(users, accountPath, p.showAccount)
	page(users, secondFactorPath, p.newSecondFactor)
	users.POST("/account/sessions/:id/revocation", p.handle(p.revokeSession))
	page(users, "/account/other-sessions/revocation", p.newOthersRevocation)
	users.POST("/account/other-sessions/revocation", p.handle(p.revokeOtherSessions))

	// For owners. Changes of people require a fresh sign-in.
	owners := r.Group("", p.requireSession, p.require(managePeople), p.requireFreshSignIn, deadline)
	page(owners, "/people/:id", p.showPerson)
	owners.POST(secondFactorPath+"/requirement", p.handle(p.requireSecondFactor))
	owners.POST("/people/:id/role", p.handle(p.updateRole))
	page(owners, "/people/:id/removal", p.newPersonRemoval)
	owners.POST("/people/:id/removal", p.handle(p.createPersonRemoval))
	owners.POST("/people/invitations", p.handle(p.createInvitation))
	owners.POST("/people/invitations/:id/cancellation", p.handle(p.cancelInvitation))
}
