// Package portal serves the pages that customers use in a browser, and the fragments that HTMX
// puts into them: sign-in, API keys, agents and activity. Each resource has a file of its own.
// Every action is a link or a form that works without JavaScript.
//
// The package decides what to show. The rules are in models, the markup is in templates.
package portal

import (
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-webauthn/webauthn/webauthn"

	"portal/handlers/middleware"
	"portal/handlers/portal/identity"
	"portal/models"
	"portal/static"
	"portal/templates"
)

// Deps are the dependencies of the portal.
type Deps struct {
	Store      *models.Store
	CookieKeys [][]byte         // of 32 bytes; the first signs, all verify
	SessionMax time.Duration    // lifetime of the session cookie
	BaseURL    *url.URL         // the public URL; under https cookies are Secure
	OpenAPI    []byte           // the OpenAPI document of the JSON API
	Changelog  string           // of the JSON API, as Markdown
	Now        func() time.Time // nil: time.Now

	Provider     *identity.Config // the OpenID Connect provider; nil: none
	PasswordsOff bool             // nobody signs in with a password

	Name            string // of the product
	SupportURL      string // leads to help with a forgotten password; may be empty
	SecurityContact string // URL in security.txt; empty: no security.txt
}

// Portal handles the requests of browsers.
type Portal struct {
	store      *models.Store
	sessions   cookie // the session token
	flash      cookie
	revealed   cookie
	devices    cookie
	pending    cookie
	webauthn   *webauthn.WebAuthn // nil: no passkeys
	challenges cookie
	templates  *templates.Templates
	assets     *static.Assets
	tokenURL   string // of the endpoint in the examples
	agentsURL  string // of the endpoint in the examples of an account without agents
	now        func() time.Time
	actions    middleware.Slots
	pages      []string // patterns of the paths that sign-in may lead back to

	provider     *identity.Provider // nil: none
	attempts     cookie
	passwordsOff bool

	name, supportURL, securityContact string

	baseURL *url.URL

	// documentation returns the pages about the API. The first call builds them, so that the
	// start is fast.
	documentation func() (documentation, error)
}

// embeddedFiles are the templates and the assets. They do not depend on the configuration.
type embeddedFiles struct {
	assets    *static.Assets
	templates *templates.Templates
}

// embedded parses the embedded files, once.
var embedded = sync.OnceValues(func() (embeddedFiles, error) {
	assets, err := static.New()
	if err != nil {
		return embeddedFiles{}, err
	}
	parsed, err := templates.New(assets.URL)
	return embeddedFiles{assets, parsed}, err
})

// New returns the portal. It returns an error if a template or an asset is invalid.
func New(d Deps) (*Portal, error) {
	files, err := embedded()
	if err != nil {
		return nil, fmt.Errorf("portal: %w", err)
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	relyingParty, err := newWebAuthn(d.BaseURL, d.Name)
	if err != nil {
		return nil, fmt.Errorf("portal: %w", err)
	}
	var provider *identity.Provider
	if d.Provider != nil {
		config := *d.Provider
		config.RedirectURL, config.Now = d.BaseURL.JoinPath(CallbackPath).String(), d.Now
		provider = identity.New(config)
	}
	return &Portal{
		store:      d.Store,
		sessions:   newCookie(d, "session", d.SessionMax),
		flash:      newCookie(d, "flash", flashAge),
		revealed:   newCookie(d, "revealed", 0),
		devices:    newCookie(d, "device", deviceAge),
		pending:    newCookie(d, "pending", pendingAge),
		webauthn:   relyingParty,
		challenges: newCookie(d, "challenge", models.ChallengeLife),
		templates:  files.templates,
		assets:     files.assets,
		tokenURL:   d.BaseURL.JoinPath("/api/widget/token").String(),
		agentsURL:  d.BaseURL.JoinPath("/api/agents").String(),
		now:        d.Now,
		actions:    middleware.NewSlots(maxActions),

		provider: provider, attempts: newCookie(d, "oidc", attemptAge), passwordsOff: d.PasswordsOff,

		name: d.Name, supportURL: d.SupportURL, securityContact: d.SecurityContact,

		baseURL: d.BaseURL,

		documentation: sync.OnceValues(func() (documentation, error) {
			return newDocumentation(d.OpenAPI, d.Changelog, d.BaseURL)
		}),
	}, nil
}

func (p *Portal) home(c *gin.Context) error { return p.redirect(c, homePath) }
