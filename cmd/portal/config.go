package main

import (
	"cmp"
	"log/slog"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"portal/handlers/brand"
	"portal/handlers/mailer"
	"portal/handlers/middleware"
	pages "portal/handlers/portal"
	"portal/handlers/portal/identity"
	"portal/models/livekit"
	"portal/models/widget"
	"portal/models/workload"
)

// config is the configuration as text. Each field is an environment variable. If it is no secret,
// it is a flag of serve too, which overrides the variable. All fields are text, because kong would
// stop at the first value of a wrong type. Instead kong calls Validate, which reports all errors
// together.
type config struct {
	Addr              string `env:"PORTAL_ADDR" default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"Listen address. Default: ${default}."`
	BaseURL           string `env:"PORTAL_BASE_URL" placeholder:"URL" help:"Public URL, the same on every instance. Default: http:// and the listen address, with --demo the name localhost."`
	WidgetTokenTTL    string `env:"PORTAL_WIDGET_TOKEN_TTL" default:"10m" placeholder:"DURATION" help:"Lifetime of a widget token, 1m to 1h. Default: ${default}."`
	WidgetTokenAlg    string `env:"PORTAL_WIDGET_TOKEN_ALG" default:"EdDSA" placeholder:"ALG,.." help:"Algorithm of widget tokens: EdDSA, ES256, or both with a comma. The first signs, the keys of all are published. Default: ${default}."`
	RateLimit         string `env:"PORTAL_RATE_LIMIT" default:"50:100" placeholder:"RATE:BURST" help:"Requests per second and burst of one API key, or off. Default: ${default}."`
	TrustedProxies    string `env:"PORTAL_TRUSTED_PROXIES" placeholder:"CIDR,..." help:"Networks of proxies whose X-Forwarded-For is trusted."`
	SessionIdle       string `env:"PORTAL_SESSION_IDLE" default:"12h" placeholder:"DURATION" help:"Time without use after which a session ends. Default: ${default}."`
	SessionMax        string `env:"PORTAL_SESSION_MAX" default:"720h" placeholder:"DURATION" help:"Time after sign-in at which every session ends. Default: ${default}."`
	KeyMaxLifetime    string `env:"PORTAL_KEY_MAX_LIFETIME" placeholder:"DAYS" help:"Longest time until a new API key expires, in whole days or hours, such as 90d or 8760h. Default: keys need no expiry."`
	KeyUnusedLifetime string `env:"PORTAL_KEY_UNUSED_LIFETIME" placeholder:"DAYS" help:"Time without a use after which an API key is revoked, in whole days or hours, such as 90d, unless its account has chosen a shorter one. Default: only accounts that choose it."`
	MetricsAddr       string `env:"PORTAL_METRICS_ADDR" placeholder:"HOST:PORT" help:"Listen address of /metrics for Prometheus, and of health checks. Default: off."`
	LogLevel          string `env:"PORTAL_LOG_LEVEL" default:"info" placeholder:"LEVEL" help:"Lowest level of the log: debug, info, warn or error. Default: ${default}."`

	Name            string `env:"PORTAL_NAME" default:"Voice Portal" placeholder:"NAME" help:"Name of the product on every page. Default: ${default}."`
	Notice          string `env:"PORTAL_NOTICE" placeholder:"TEXT" help:"Sentence above every page, such as for maintenance, of at most 200 characters. Default: none."`
	Logo            string `env:"PORTAL_LOGO" placeholder:"FILE" help:"Logo on every page, as an SVG or PNG file of at most 32 KiB; a PNG stands in emails too. Default: the portal's own."`
	Accent          string `env:"PORTAL_ACCENT" placeholder:"#RRGGBB" help:"Color of buttons and links, which must have enough contrast on white. Default: the portal's own."`
	HomeURL         string `env:"PORTAL_HOME_URL" name:"home-url" placeholder:"URL" help:"Where the link back to the platform leads: an https: or http: URL. Default: no link."`
	SupportURL      string `env:"PORTAL_SUPPORT_URL" placeholder:"URL" help:"Where users get help: an https:, http: or mailto: URL."`
	SecurityContact string `env:"PORTAL_SECURITY_CONTACT" placeholder:"URL" help:"Contact for vulnerability reports in security.txt: an https: or mailto: URL."`

	OIDCIssuer     string `env:"PORTAL_OIDC_ISSUER" name:"oidc-issuer" placeholder:"URL" help:"Issuer of the OpenID Connect provider that users can sign in with."`
	OIDCClientID   string `env:"PORTAL_OIDC_CLIENT_ID" name:"oidc-client-id" placeholder:"ID" help:"The portal's client ID at the provider."`
	OIDCName       string `env:"PORTAL_OIDC_NAME" name:"oidc-name" placeholder:"NAME" help:"Name of the provider for users."`
	OIDCTrustEmail string `env:"PORTAL_OIDC_TRUST_EMAIL" name:"oidc-trust-email" default:"false" placeholder:"BOOL" help:"Whether an identity with a verified email signs in as the user with this email: true or false. Default: ${default}."`
	OIDCAccounts   string `env:"PORTAL_OIDC_ACCOUNTS" name:"oidc-accounts" default:"off" placeholder:"OFF|CLAIMS" help:"Whether the claims portal_account and portal_role of the provider decide who belongs to which account: off or claims. Default: ${default}."`
	PasswordSignIn string `env:"PORTAL_PASSWORD_SIGN_IN" default:"on" placeholder:"ON|OFF" help:"Sign-in with a password: on or off. Default: ${default}."`

	TestSignInLimit string `env:"PORTAL_TEST_SIGN_IN_LIMIT" default:"10" placeholder:"NUMBER" help:"Wrong passwords a minute before sign-in is refused. For tests only. Default: ${default}." hidden:""`

	LiveKitURL       string `env:"PORTAL_LIVEKIT_URL" name:"livekit-url" placeholder:"URL" help:"LiveKit server for which tokens are issued too, as browsers reach it: a wss: or ws: URL. Default: off."`
	LiveKitAPIKey    string `env:"PORTAL_LIVEKIT_API_KEY" name:"livekit-api-key" placeholder:"KEY" help:"API key of the LiveKit server. Its secret is in PORTAL_LIVEKIT_API_SECRET."`
	LiveKitAgentName string `env:"PORTAL_LIVEKIT_AGENT_NAME" name:"livekit-agent-name" placeholder:"NAME" help:"LiveKit agent that joins each new room. Default: none."`
	MailFrom         string `env:"PORTAL_MAIL_FROM" placeholder:"ADDRESS" help:"Sender of emails, such as portal@example.com; needs PORTAL_SMTP_URL. Default: no emails."`

	LeaksGitHubKeysURL string `env:"PORTAL_LEAKS_GITHUB_KEYS_URL" name:"leaks-github-keys-url" placeholder:"URL" help:"Public keys of GitHub's secret scanning, whose reports then revoke leaked keys: https://api.github.com/meta/public_keys/secret_scanning. Default: off."`

	Webhooks        string `env:"PORTAL_WEBHOOKS" default:"on" placeholder:"ON|OFF" help:"Webhooks of accounts: on or off. Default: ${default}."`
	WorkloadIssuers string `env:"PORTAL_WORKLOAD_ISSUERS" placeholder:"URL,..." help:"Further issuers whose tokens can stand for an API key, and whose public keys are fetched; off: none at all. Default: those of the known platforms."`
	WebhookNetworks string `env:"PORTAL_WEBHOOK_NETWORKS" placeholder:"CIDR,..." help:"Networks that webhooks may be sent to although they are not public. Default: none."`

	DatabaseURL           string `kong:"-" env:"DATABASE_URL" default:"sqlite:data/portal.db"`
	Secret                string `kong:"-" env:"PORTAL_SECRET"`
	SecretPrevious        string `kong:"-" env:"PORTAL_SECRET_PREVIOUS"`
	OperatorToken         string `kong:"-" env:"PORTAL_OPERATOR_TOKEN"`
	OperatorTokenPrevious string `kong:"-" env:"PORTAL_OPERATOR_TOKEN_PREVIOUS"`

	LiveKitAPISecret string `kong:"-" env:"PORTAL_LIVEKIT_API_SECRET"`
	OIDCClientSecret string `kong:"-" env:"PORTAL_OIDC_CLIENT_SECRET"`
	SMTPURL          string `kong:"-" env:"PORTAL_SMTP_URL"`
}

// settings is the parsed configuration.
type settings struct {
	addr           string
	metricsAddr    string // empty: no metrics
	demo           bool   // in an empty database, create an account
	logLevel       slog.Level
	database       databaseConfig
	baseURL        *url.URL // nil: see publicURL
	trustedProxies []netip.Prefix
	secret         string // empty: the file portal.secret beside the database
	secretPrevious string
	spans          *spanReceiver // nil: no traces

	name, notice, supportURL, securityContact string

	brand brand.Brand

	sessionIdle, sessionMax, keyMaxLifetime, keyUnusedLifetime time.Duration
	signInLimit                                                int
	passwordsOff                                               bool
	provider                                                   *identity.Config // nil: none
	smtp                                                       mailer.Server
	mailFrom                                                   *mail.Address // nil: no emails

	widgetTokenTTL time.Duration
	widgetTokenAlg []widget.Algorithm // the first signs
	liveKit        *livekit.Server    // nil: none
	rateLimit      middleware.RateLimit
	operatorToken  string
	gitHubKeysURL  string

	operatorTokenPrevious string // accepted too

	webhooksOff     bool
	webhookNetworks []netip.Prefix
	issuers         workload.Issuers
}

const (
	defaultSignInLimit = 10 // the default of PORTAL_TEST_SIGN_IN_LIMIT

	shortestSession = time.Second
	longestSession  = 10 * 365 * 24 * time.Hour
)

// Validate returns an error of type inputErrors for invalid values. Kong calls it after it has set
// the fields.
func (c *config) Validate() error {
	_, err := c.parse()
	return err
}

// parse parses all values, including the secrets in the environment. The error is of type
// inputErrors.
func (c *config) parse() (settings, error) {
	c.fill()
	var check checker
	s := settings{
		addr:           check.address("PORTAL_ADDR", c.Addr),
		logLevel:       check.logLevel("PORTAL_LOG_LEVEL", c.LogLevel),
		database:       check.database(c.DatabaseURL),
		secret:         check.secret("PORTAL_SECRET", c.Secret),
		secretPrevious: check.secret("PORTAL_SECRET_PREVIOUS", c.SecretPrevious),
		widgetTokenTTL: check.duration("PORTAL_WIDGET_TOKEN_TTL", c.WidgetTokenTTL, time.Minute, widget.MaxTTL),
		widgetTokenAlg: check.algorithms("PORTAL_WIDGET_TOKEN_ALG", c.WidgetTokenAlg),
		spans:          check.spanReceiver(),

		sessionIdle:       check.duration("PORTAL_SESSION_IDLE", c.SessionIdle, shortestSession, longestSession),
		sessionMax:        check.duration("PORTAL_SESSION_MAX", c.SessionMax, shortestSession, longestSession),
		keyMaxLifetime:    check.days("PORTAL_KEY_MAX_LIFETIME", c.KeyMaxLifetime),
		keyUnusedLifetime: check.days("PORTAL_KEY_UNUSED_LIFETIME", c.KeyUnusedLifetime),
		signInLimit:       check.count("PORTAL_TEST_SIGN_IN_LIMIT", c.TestSignInLimit),
		passwordsOff:      check.choice("PORTAL_PASSWORD_SIGN_IN", c.PasswordSignIn, "off", "on"),
		liveKit:           check.liveKit(c.LiveKitURL, c.LiveKitAPIKey, c.LiveKitAPISecret, c.LiveKitAgentName),
		rateLimit:         check.rate("PORTAL_RATE_LIMIT", c.RateLimit),
		trustedProxies:    check.networks("PORTAL_TRUSTED_PROXIES", c.TrustedProxies),
		operatorToken:     check.token("PORTAL_OPERATOR_TOKEN", c.OperatorToken),

		operatorTokenPrevious: check.previousToken("PORTAL_OPERATOR_TOKEN", c.OperatorToken, c.OperatorTokenPrevious),

		gitHubKeysURL:   check.keysURL("PORTAL_LEAKS_GITHUB_KEYS_URL", c.LeaksGitHubKeysURL),
		webhooksOff:     check.choice("PORTAL_WEBHOOKS", c.Webhooks, "off", "on"),
		webhookNetworks: check.exactNetworks("PORTAL_WEBHOOK_NETWORKS", c.WebhookNetworks),
		issuers:         check.issuers("PORTAL_WORKLOAD_ISSUERS", c.WorkloadIssuers),
		provider:        check.provider(c),
		name:            check.productName("PORTAL_NAME", c.Name),
		notice:          check.notice("PORTAL_NOTICE", c.Notice),
		brand:           check.brand(c),
		supportURL:      check.link("PORTAL_SUPPORT_URL", c.SupportURL, "https", "http", "mailto"),
		securityContact: check.link("PORTAL_SECURITY_CONTACT", c.SecurityContact, "https", "mailto"),
	}
	s.smtp, s.mailFrom = check.mail(c.SMTPURL, c.MailFrom)
	check.proxies()
	if c.BaseURL != "" {
		s.baseURL = check.origin("PORTAL_BASE_URL", c.BaseURL)
	}
	if c.MetricsAddr != "" {
		s.metricsAddr = check.address("PORTAL_METRICS_ADDR", c.MetricsAddr)
		if s.metricsAddr == s.addr && !strings.HasSuffix(s.addr, ":0") {
			check.add("PORTAL_METRICS_ADDR", "must not be the same as PORTAL_ADDR; choose another port")
		}
	}
	if s.passwordsOff && s.provider == nil && s.operatorToken == "" && !pages.OffersPasskeys(s.publicURL(&net.TCPAddr{})) {
		check.add("PORTAL_PASSWORD_SIGN_IN", "off leaves users no way to sign in; set the PORTAL_OIDC variables, "+
			"PORTAL_OPERATOR_TOKEN for sign-in links, or for passkeys an https PORTAL_BASE_URL with a host name")
	}
	if s.secret == "" && s.database.isPostgres() {
		check.add("PORTAL_SECRET", "required with PostgreSQL, with the same value on every instance; generate one with: openssl rand -hex 32")
	}
	if s.secret != "" && s.secret == s.secretPrevious {
		check.add("PORTAL_SECRET_PREVIOUS", "must not be the same as PORTAL_SECRET; set it to the previous secret or unset it")
	}
	return s, check.err()
}

// fill reads the values that kong has not set from the environment: the secrets, and for commands
// without the flags of serve all of them. Because compose files and unit files cannot leave a
// variable out, an empty value counts as not set.
func (c *config) fill() {
	value := reflect.ValueOf(c).Elem()
	for _, field := range configFields() {
		if target := value.FieldByIndex(field.Index); target.String() == "" {
			target.SetString(cmp.Or(os.Getenv(field.Tag.Get("env")), field.Tag.Get("default")))
		}
	}
}

func configFields() []reflect.StructField {
	return reflect.VisibleFields(reflect.TypeFor[config]())
}

// unknownNames returns the names in an environment that begin with PORTAL_ and are not in config,
// sorted.
func unknownNames(environ []string) []string {
	var known, unknown []string
	for _, field := range configFields() {
		known = append(known, field.Tag.Get("env"))
	}
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "PORTAL_") && !slices.Contains(known, name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}
