package portal

import (
	"github.com/gin-gonic/gin"

	"portal/handlers/middleware"
	"portal/static"
	"portal/templates"
)

// Register adds the portal's routes, grouped by who may call them. Handlers outside the groups with
// deadline set their own deadlines and do not run in the slots of pages, because they wait for
// password hashing, for the OpenID Connect provider or for a slow download.
func (p *Portal) Register(r gin.IRouter) {
	anyone := routes{site: p.site, IRouter: r, slots: p.actions}
	p.registerDocuments(anyone.in(nil))
	p.registerSignIn(anyone, anyone.group(p.deadline))

	signedIn := anyone.group(p.signIn.requireSession)
	p.registerAccount(signedIn)
	p.registerPeople(signedIn)
	users := signedIn.group(p.deadline)
	users.page("/", func(c *gin.Context) error { return p.redirect(c, homePath) })
	p.registerKeys(users)
	users.page(agentsPath, p.agents.list)
	users.change(agentsPath, p.agents.create)
	users.page("/agents/:id", p.agents.show)
	users.page("/agents/:id/name", p.agents.editName)
	users.change("/agents/:id/name", p.agents.rename)
	users.page("/agents/:id/removal", p.agents.newRemoval)
	users.change("/agents/:id/removal", p.agents.createRemoval)
	users.page("/agents/:id/pause", p.agents.newPause)
	users.change("/agents/:id/pause", p.agents.setPaused(true, "Agent “%s” is paused."))
	users.page("/agents/:id/resumption", p.agents.show)
	users.change("/agents/:id/resumption", p.agents.setPaused(false, "Agent “%s” is resumed."))
	if p.callsOn {
		users.page(callsPath, p.calls.list)
		users.page("/calls/:id", p.calls.show)
		users.page("/calls/:id/end", p.calls.newEnd)
		users.change("/calls/:id/end", p.calls.createEnd)
		signedIn.export(callsPath+"/export", p.calls.export)
	}
	users.page(usagePath, p.usage.show)
	signedIn.export(usagePath+"/export", p.usage.export)
	users.page("/integrate", p.agents.showIntegration)
	users.page(activityPath, p.activity.list)
	users.read(activityPath+"/filter", p.activity.filter)
	signedIn.export(exportPath, p.activity.export)

	// Open pages poll these.
	polled := anyone.group(background, p.deadline)
	polled.get(sessionPath, p.signIn.showSessionState)
	polled = polled.group(p.signIn.requireSession)
	polled.page(changesPath, p.keys.showChanges)
	if p.callsOn {
		polled.page(callsRefreshPath, p.calls.refresh)
	}
	polled.page("/api-keys/:id/first-use", p.keys.showFirstUse)
	polled.page("/api-keys/:id/rotation/progress", p.rotations.showProgress)
	polled.page("/api-keys/:id/revocation/outcome", p.revocations.showOutcome)
}

func (p *Portal) registerDocuments(anyone routes) {
	anyone.get(static.Prefix+"*name", p.documents.showAsset)
	if p.documents.securityContact != "" {
		anyone.get("/.well-known/security.txt", p.documents.showSecurityContact)
	}
	// W3C: A Well-Known URL for Changing Passwords.
	anyone.get("/.well-known/change-password", func(c *gin.Context) error { return p.redirect(c, accountPath) })
	anyone.get("/robots.txt", p.documents.showRobots)
	anyone.get("/llms.txt", p.documents.showIndex)
	paths := []string{docsPath, "/docs/widget", "/docs/guides", "/docs/leaked-keys", "/docs/reports", "/docs/webhooks", "/docs/errors", "/docs/gateway", "/docs/changelog"}
	if p.documents.workloads {
		paths = append(paths, "/docs/workload-identity")
	}
	if p.documents.operated {
		paths = append(paths, "/docs/operate", "/docs/operate/people", "/docs/operate/keys", "/docs/operate/reports")
	}
	anyone.get(searchPath, p.documents.search)
	read := anyone.group(background) // reading the documentation is no use of the session
	for _, path := range paths {
		read.get(path, p.documents.show)
		anyone.get(path+markdownExtension, p.documents.showMarkdown)
	}
}

func (p *Portal) registerSignIn(anyone, quick routes) {
	passwords, provider := anyone.in(p.passwords), anyone.in(p.waiting)
	tokens, quickTokens := passwords.group(hideToken), quick.group(hideToken)
	quick.get(signInPath, p.signIn.show)
	passwords.post(signInPath, p.signIn.signInWithPassword)
	quick.get(secondStepPath, p.signIn.showSecondStep)
	quick.post(secondStepPath, p.signIn.finishSecondStep)
	quick.post("/logout", p.signIn.signOut)
	quickTokens.get(signInLinkPath+"/:token", p.signIn.showSignInLink)
	quickTokens.post(signInLinkPath+"/:token", p.signIn.useSignInLink)
	quickTokens.get(invitationPath+"/:token", p.signIn.showInvitation)
	tokens.post(invitationPath+"/:token", p.signIn.join)
	if p.mailsOn && !p.passwordsOff {
		quick.get(passwordResetPath, p.signIn.newPasswordReset)
		quick.post(passwordResetPath, p.signIn.createPasswordReset)
		quickTokens.get(passwordResetPath+"/:token", p.signIn.showPasswordReset)
		tokens.post(passwordResetPath+"/:token", p.signIn.usePasswordReset)
	}
	if p.mailsOn {
		quickTokens.get(emailChangePath+"/:token", p.signIn.showEmailChange)
		quickTokens.post(emailChangePath+"/:token", p.signIn.confirmEmail)
	}
	if p.signIn.oidc != nil {
		provider.get(providerPath, p.signIn.startProviderSignIn)
		provider.group(hideToken).get(CallbackPath, p.signIn.finishProviderSignIn)
		provider.group(hideToken).get(invitationPath+"/:token/oidc", p.signIn.startProviderJoin)
	}
	if p.signIn.passkeys != nil {
		// After a refused passkey, the browser shows this address.
		anyone.get(passkeySignInPath, func(c *gin.Context) error { return p.redirect(c, signInPath) })
		quick.post(passkeySignInPath, p.signIn.signInWithPasskey)
		quick.post(passkeySignInPath+"/options", p.signIn.passkeySignInOptions)
	}
}

func (p *Portal) registerKeys(users routes) {
	users.page(homePath, p.keys.list)
	users.post(homePath, p.keys.generate)
	users.page(revokedPath, p.revocations.list)
	users.page(selectedPath, p.revocations.newSelected)
	users.post(selectedPath, p.revocations.createSelected)
	users.page(hintsPath, func(c *gin.Context) error { return p.redirect(c, homePath) })
	users.post(hintsPath, p.keys.dismissHints)
	users.page("/api-keys/:id", p.keys.show)
	users.page("/api-keys/:id/leak-dismissal", p.keys.showLeaks)
	users.post("/api-keys/:id/leak-dismissal", p.keys.dismissLeaks)
	users.page("/api-keys/:id/name", p.keys.editName)
	users.change("/api-keys/:id/name", p.keys.rename)
	users.page("/api-keys/:id/restrictions", p.restrictions.edit)
	users.change("/api-keys/:id/restrictions", p.restrictions.save)
	users.page("/api-keys/:id/restrictions/preview", p.restrictions.edit)
	users.read("/api-keys/:id/restrictions/preview", p.restrictions.preview)
	users.page(previewPath, p.keys.list)
	users.read(previewPath, p.keys.previewKey)
	users.page("/api-keys/:id/trust", p.trust.edit)
	users.change("/api-keys/:id/trust", p.trust.save)
	users.page("/api-keys/:id/trust/preview", p.trust.edit)
	users.read("/api-keys/:id/trust/preview", p.trust.preview)
	users.page("/api-keys/:id/revocation", p.revocations.newRevocation)
	users.post("/api-keys/:id/revocation", p.revocations.createRevocation)
	users.page("/api-keys/:id/rotation", p.rotations.show)
	users.post("/api-keys/:id/rotation", p.rotations.createReplacement)
	users.page("/api-keys/:id/rotation/revocation", p.rotations.newRevocation)
	users.post("/api-keys/:id/rotation/revocation", p.rotations.createRevocation)
}

func (p *Portal) registerAccount(signedIn routes) {
	users := signedIn.group(p.deadline)
	users.page(accountPath, p.account.show)
	users.page(secondFactorPath, p.account.newSecondFactor)
	users.change("/account/sessions/:id/revocation", p.account.revokeSession)
	users.page("/account/other-sessions/revocation", p.account.newOthersRevocation)
	users.change("/account/other-sessions/revocation", p.account.revokeOtherSessions)
	passwords := signedIn.in(p.passwords)
	if p.mailsOn {
		passwords.change("/account/email", p.account.requestEmailChange)
		users.change("/account/email/mail", p.account.resendEmailChange)
		users.change("/account/email/cancellation", p.account.cancelEmailChange)
	}
	passwords.change("/account/password", p.account.changePassword)

	fresh := signedIn.group(p.requireFreshSignIn)
	factors := fresh.group(p.deadline)
	factors.change("/account/authenticator", p.account.startTOTP)
	factors.change("/account/authenticator/confirmation", p.account.enableTOTP)
	users.page("/account/authenticator/removal", p.account.confirmFactor(templates.FactorTurningOff))
	factors.change("/account/authenticator/removal", p.account.disableTOTP)
	users.page("/account/recovery-codes", p.account.confirmFactor(templates.FactorNewCodes))
	factors.change("/account/recovery-codes", p.account.renewRecoveryCodes)
	users.page(passkeysPath+"/:id/removal", p.account.newPasskeyRemoval)
	factors.change(passkeysPath+"/:id/removal", p.account.removePasskey)
	if p.account.passkeys != nil {
		factors.change(passkeysPath, p.account.createPasskey)
		factors.post(passkeysPath+"/options", p.account.passkeyOptions)
	}
	if p.account.oidc != nil {
		fresh.in(p.waiting).change(identityPath, p.account.createIdentity)
		factors.change(identityPath+"/removal", p.account.removeIdentity)
	}
}

// registerPeople adds the page that everyone sees, and what owners change.
func (p *Portal) registerPeople(signedIn routes) {
	signedIn.group(p.deadline).page(peoplePath, p.people.list)
	owners := signedIn.group(p.requireOwner, p.requireFreshSignIn, p.deadline)
	owners.page("/people/:id", p.people.show)
	owners.page("/people/:id/role", p.people.newRole)
	owners.change("/people/:id/role", p.people.updateRole)
	owners.page("/people/:id/removal", p.people.newRemoval)
	owners.change("/people/:id/removal", p.people.createRemoval)
	// Otherwise the address would be that of a person.
	owners.get(invitationsPath, func(c *gin.Context) error { return p.redirect(c, peoplePath) })
	owners.change(invitationsPath, p.people.createInvitation)
	owners.change(invitationsPath+"/:id/renewal", p.people.renewInvitation)
	owners.change(invitationsPath+"/:id/cancellation", p.people.cancelInvitation)
	owners.page(settingsPath, p.settings.show)
	signedIn.group(p.requireOwner, p.deadline).change(settingsPath+"/name", p.settings.rename)
	owners.change(settingsPath+"/unused-keys", p.settings.setUnusedLifetime)
	owners.page(settingsPath+"/two-step", p.settings.newRequirement)
	owners.change(settingsPath+"/two-step", p.settings.createRequirement)
	if p.webhooksOn {
		p.registerWebhooks(owners)
	}
}

func (p *Portal) registerWebhooks(owners routes) {
	w, one := &p.webhooks, webhooksPath+"/:id"
	owners.page(webhooksPath, w.list)
	owners.change(webhooksPath, w.create)
	owners.page(one, w.show(""))
	for _, asking := range []string{"rotation", "disabling", "removal"} {
		owners.page(one+"/"+asking, w.show(asking))
	}
	owners.page(one+"/events", w.show(""))
	owners.change(one+"/events", w.setEvents)
	owners.change(one+"/rotation", w.rotate)
	owners.change(one+"/disabling", w.change("The endpoint was disabled.", w.disable))
	owners.change(one+"/removal", w.remove)
	for action, do := range map[string]handler{
		"enabling": w.change("The endpoint was enabled.", w.enable),
		"test":     w.change("A test event will be sent.", w.test),
		"resend":   w.change("The event will be sent again.", w.resend),
	} {
		owners.page(one+"/"+action, w.show(""))
		owners.change(one+"/"+action, do)
	}
}

type routes struct {
	*site
	gin.IRouter

	slots middleware.Slots // of the handlers
}

func (r routes) group(handlers ...gin.HandlerFunc) routes {
	return routes{site: r.site, IRouter: r.Group("", handlers...), slots: r.slots}
}

// in returns the group with other slots.
func (r routes) in(slots middleware.Slots) routes {
	return routes{site: r.site, IRouter: r.IRouter, slots: slots}
}

func (r routes) get(path string, h handler)  { r.GET(path, r.handle(r.slots, h)) }
func (r routes) post(path string, h handler) { r.POST(path, r.handle(r.slots, h)) }

// export adds a download, which takes a slot for each batch that it reads.
func (r routes) export(path string, h handler) {
	r.in(nil).get(path, func(c *gin.Context) error {
		return r.exports.Run(sessionFrom(c).UserID, func() error { return h(c) })
	})
}

// change adds a form with which a signed-in user changes something that the activity log records.
func (r routes) change(path string, h handler) { r.POST(path, r.limitChanges, r.handle(r.slots, h)) }

// read adds a form that a page sends to read, and that changes nothing.
func (r routes) read(path string, h handler) { r.POST(path, r.handleRead(r.slots, h)) }

// page adds a page for signed-in users, which sign-in may lead back to.
func (r routes) page(path string, h handler) {
	r.pages = append(r.pages, path)
	r.GET(path, r.plainAddress, r.handleRead(r.slots, h))
}
