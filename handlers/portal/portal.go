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

	"portal/handlers/deps"
	"portal/handlers/middleware"
	"portal/static"
	"portal/templates"
)

// Portal handles the requests of browsers.
type Portal struct {
	*site

	keys      keyPages
	agents    agentPages
	usage     usagePages
	activity  activityPages
	people    peoplePages
	account   accountPages
	settings  settingsPages
	signIn    signInPages
	documents documents
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
	keys, err := newRelyingParty(d)
	if err := cmp.Or(assetsErr, templatesErr, err); err != nil {
		return nil, fmt.Errorf("portal: %w", err)
	}
	s := &site{
		Deps:         d,
		sessionToken: newCookie(d, "session", d.SessionMax),
		flash:        newCookie(d, "flash", flashAge),
		revealed:     newCookie(d, "revealed", 0),
		device:       newCookie(d, "device", deviceAge),
		templates:    parsed,
		actions:      middleware.NewSlots(maxActions),
		changes:      middleware.NewLimiter(changeRate, d.Now),
	}
	store := d.Store
	oidc := newOIDCClient(s)
	return &Portal{
		site:     s,
		keys:     keyPages{s, store.Keys, store.Agents, store.Calls},
		agents:   agentPages{s, store.Agents},
		usage:    usagePages{s, store.Keys},
		activity: activityPages{s, store.Activity, store.Keys, store.People},
		people:   peoplePages{s, store.People, store.Invitations, store.Keys},
		account:  accountPages{s, store.Credentials, keys, oidc},
		settings: settingsPages{s, store.Accounts, store.Credentials, store.Keys},
		signIn: signInPages{
			site: s, signIns: store.SignIn, invitations: store.Invitations, credentials: store.Credentials,
			passkeys: keys, oidc: oidc, pending: newCookie(d, "pending", pendingAge),
		},
		documents: documents{s, assets, sync.OnceValues(func() (documentation, error) {
			return s.newDocumentation(openAPI, changelog)
		})},
	}, nil
}
