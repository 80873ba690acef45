// Package portal serves the pages that customers use in a browser, and the fragments that HTMX
// puts into them. A [Portal] has a type for each group of pages, and routes.go has all their
// addresses. Every action is a link or a form that works without JavaScript.
//
// The package decides what to show, while the rules are in models and the markup is in templates.
package portal

import (
	"cmp"
	"fmt"
	"sync"

	"github.com/google/uuid"

	"portal/handlers/deps"
	"portal/handlers/middleware"
	"portal/handlers/problem"
	"portal/static"
	"portal/templates"
)

// Portal handles the requests of browsers.
type Portal struct {
	*site

	keys         keyPages
	revocations  revocationPages
	rotations    rotationPages
	restrictions restrictionsPages
	trust        trustPages
	agents       agentPages
	calls        callPages
	usage        usagePages
	activity     activityPages
	people       peoplePages
	account      accountPages
	settings     settingsPages
	webhooks     webhookPages
	signIn       signInPages
	documents    documents
}

// The embedded files are parsed once, because they do not depend on the configuration.
var (
	embeddedAssets    = sync.OnceValues(static.New)
	embeddedTemplates = sync.OnceValues(func() (*templates.Templates, error) {
		assets, err := embeddedAssets()
		if err != nil {
			return nil, err
		}
		return templates.New(assets.URL)
	})
)

// New returns the portal, with this OpenAPI document and this changelog, as Markdown, of the JSON
// API. It returns an error if a template or an asset is invalid.
func New(d deps.Deps, openAPI []byte, changelog string) (*Portal, error) {
	assets, assetsErr := embeddedAssets()
	parsed, templatesErr := embeddedTemplates()
	kept := newCookies(d)
	keys, err := newRelyingParty(d, kept)
	if err := cmp.Or(assetsErr, templatesErr, err); err != nil {
		return nil, fmt.Errorf("portal: %w", err)
	}
	store, actions := d.Store, middleware.NewSlots(maxActions)
	s := &site{
		baseURL: d.BaseURL, now: d.Now, timeout: store.Timeout(),
		product: d.Name, operatorNotice: d.Notice, support: d.SupportURL, passwordsOff: d.PasswordsOff,
		callsOn: store.Calls.Enabled(), mailsOn: store.Outbox.Enabled(), webhooksOn: store.Webhooks.Enabled(),
		sessions: &sessionStore{
			name: cookieName(d.BaseURL, sessionCookie), cookies: newCookieStore(d, d.SessionMax),
			stored: store.Sessions, timeout: store.Timeout(), slots: actions,
		},
		cookies:        kept,
		templates:      parsed,
		actions:        actions,
		passwords:      middleware.NewSlots(maxActions),
		waiting:        middleware.NewSlots(maxActions),
		exports:        &exports{running: map[uuid.UUID]int{}},
		reads:          middleware.NewSlotsOf(maxReads, readWait, problem.TooManyAtOnce()),
		changes:        middleware.NewLimiter(changeRate, d.Now),
		accountChanges: middleware.NewLimiter(accountChangeRate, d.Now),
		generations:    middleware.NewLimiter(generationRate, d.Now),
	}
	if d.Provider != nil {
		s.provider = d.Provider.Name
	}
	docs := documents{
		site: s, agents: store.Agents, assets: assets,
		operated: d.OperatorToken != "", workloads: !store.Workload.Issuers().Off, rate: d.RateLimit, securityContact: d.SecurityContact,
	}
	docs.branding, s.brand = brandAssets(d.Brand)
	docs.documentation = sync.OnceValues(func() (documentation, error) { return docs.newDocumentation(openAPI, changelog) })
	usage := usagePages{site: s, keys: store.Keys, keyUsage: store.Usage, calls: store.Calls}
	views := keyViews{site: s, keys: store.Keys, calls: store.Calls, leaksReported: d.GitHubKeysURL != ""}
	revocations := revocationPages{site: s, views: views, keys: store.Keys, keyUsage: store.Usage, calls: store.Calls}
	restrictions := restrictionsPages{site: s, views: views, keys: store.Keys, keyUsage: store.Usage, agents: store.Agents, calls: store.Calls}
	trust := trustPages{site: s, views: views, keys: store.Keys, workload: store.Workload}
	oidc := newOIDCClient(s, d)
	return &Portal{
		site: s,
		keys: keyPages{
			site: s, views: views, restrictions: restrictions, trust: trust, usage: usage,
			keys: store.Keys, keyUsage: store.Usage, workload: store.Workload, agents: store.Agents, people: store.People,
		},
		revocations:  revocations,
		rotations:    rotationPages{site: s, views: views, revocations: revocations, keys: store.Keys, keyUsage: store.Usage, agents: store.Agents},
		restrictions: restrictions,
		trust:        trust,
		agents:       agentPages{site: s, agents: store.Agents, calls: store.Calls},
		calls:        callPages{site: s, calls: store.Calls, keys: store.Keys, agents: store.Agents, accounts: store.Accounts},
		usage:        usage,
		activity:     activityPages{site: s, activity: store.Activity, keys: store.Keys, keyUsage: store.Usage, people: store.People},
		people:       peoplePages{site: s, people: store.People, invitations: store.Invitations, keys: store.Keys},
		account:      accountPages{site: s, credentials: store.Credentials, passkeys: keys, oidc: oidc},
		settings:     settingsPages{site: s, accounts: store.Accounts, credentials: store.Credentials, keys: store.Keys, unused: store.Unused},
		webhooks:     webhookPages{site: s, webhooks: store.Webhooks},
		signIn: signInPages{
			site: s, signIns: store.SignIn, people: store.People, invitations: store.Invitations, credentials: store.Credentials,
			passkeys: keys, oidc: oidc,
		},
		documents: docs,
	}, nil
}
