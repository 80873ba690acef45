// Package portal is what customers see in their browser: signing in, API keys,
// agents and activity, as pages and as the fragments that HTMX puts into them.
// Each resource has a file of its own, and every action is a real link or form
// that works without JavaScript.
//
// It decides what is shown and never what is allowed: the rules are the models',
// and the markup is the templates'.
package portal

import (
	"fmt"
	"net/url"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/gorilla/securecookie"

	"portal/handlers/middleware"
	"portal/models"
	"portal/static"
	"portal/templates"
)

// Deps is what the portal is built from.
type Deps struct {
	Store      *models.Store
	CookieKeys [][]byte         // of 32 bytes; the first signs, all verify
	SessionMax time.Duration    // how long a browser keeps the session cookie
	BaseURL    *url.URL         // the public URL; under https cookies are Secure
	Now        func() time.Time // nil: time.Now
	Stopping   <-chan struct{}  // closed when answers are not to be held any longer; nil: never
}

// Portal answers people in a browser.
type Portal struct {
	store     *models.Store
	sessions  *sessionStore
	cookies   cookies
	flashes   []securecookie.Codec
	templates *templates.Templates
	assets    *static.Assets
	tokenURL  string // of the endpoint that examples call
	agentsURL string // of the endpoint that they call where there is no agent
	now       func() time.Time
	waiting   chan struct{}   // holds one for each answer that is held
	stopping  <-chan struct{} // closed once no answer is to be held any longer
	pages     []string        // patterns of the addresses that a visitor can be sent to
}

// New returns the portal. It errs when a template or an asset is broken.
func New(d Deps) (*Portal, error) {
	assets, err := static.New()
	if err != nil {
		return nil, fmt.Errorf("portal: %w", err)
	}
	parsed, err := templates.New(assets.URL)
	if err != nil {
		return nil, fmt.Errorf("portal: %w", err)
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	jar := cookies{secure: d.BaseURL.Scheme == "https"}
	return &Portal{
		store:     d.Store,
		sessions:  newSessionStore(d.Store, d.CookieKeys, d.SessionMax, jar),
		cookies:   jar,
		flashes:   newCodecs(d.CookieKeys, flashAge),
		templates: parsed,
		assets:    assets,
		tokenURL:  d.BaseURL.JoinPath("/api/widget/token").String(),
		agentsURL: d.BaseURL.JoinPath("/api/agents").String(),
		now:       d.Now,
		waiting:   make(chan struct{}, maxWaiting),
		stopping:  d.Stopping,
	}, nil
}

// Register adds the portal's routes.
func (p *Portal) Register(r gin.IRouter) {
	r.GET(static.Prefix+"*name", p.handle(p.showAsset))

	// Signing in waits its turn for longer than the database may take, and
	// bounds its own time.
	r.POST("/login", p.handle(p.createSession))

	// So do a change of the password, and a download, which is as long as the
	// record is.
	r.POST("/account/password", p.inTime(p.requireSession), p.handle(p.changePassword))
	r.GET(exportPath, p.inTime(p.requireSession), p.handle(p.exportActivities))

	// These answers are held until there is something to tell.
	held := func(path string, h handler) {
		p.pages = append(p.pages, path)
		r.GET(path, p.inTime(p.requireSession), p.handle(h))
	}
	held("/api-keys/:id/first-use", p.showFirstUse)
	held("/api-keys/:id/rotation/progress", p.showRotationProgress)

	anyone := r.Group("", middleware.Deadline(models.Timeout))
	anyone.GET("/login", p.handle(p.newSession))
	anyone.POST("/logout", p.handle(p.destroySession))

	customers := anyone.Group("", p.requireSession)
	page := func(path string, h handler) {
		p.pages = append(p.pages, path)
		customers.GET(path, p.handle(h))
	}
	action := func(path string, h handler) { customers.POST(path, p.handle(h)) }

	page("/", p.home)
	page("/api-keys", p.listAPIKeys)
	action("/api-keys", p.generateAPIKey)
	page("/api-keys/:id", p.showAPIKey)
	page("/api-keys/:id/revocation", p.newRevocation)
	action("/api-keys/:id/revocation", p.createRevocation(p.revoked))
	page(changesPath, p.showChanges)
	page("/api-keys/:id/usage", p.showUsage)
	page("/api-keys/:id/name", p.editName)
	action("/api-keys/:id/name", p.updateName)
	page("/api-keys/:id/rotation", p.showRotation)
	action("/api-keys/:id/rotation", p.createReplacement)
	page("/api-keys/:id/rotation/revocation", p.newRotationRevocation)
	action("/api-keys/:id/rotation/revocation", p.createRevocation(p.goToRevoked))
	page("/agents", p.listAgents)
	action("/agents", p.createAgent)
	page("/agents/:id", p.showAgent)
	page("/agents/:id/removal", p.newRemoval)
	action("/agents/:id/removal", p.createRemoval)
	page("/integrate", p.showIntegration)
	page(activityPath, p.listActivities)
	page(accountPath, p.showAccount)
	action("/account/sessions/:id/revocation", p.revokeSession)
	action("/account/other-sessions/revocation", p.revokeOtherSessions)
}

func (p *Portal) home(c *gin.Context) error { return p.redirect(c, homePath) }
