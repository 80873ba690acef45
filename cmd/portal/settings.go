package main

import (
	"cmp"
	"log/slog"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"os"
	"regexp"
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

// setting is an environment variable that configures the portal: a row of the one table.
type setting struct {
	name     string
	standard string // the default value; empty: none
	example  string // a valid value for the file of examples; empty: the default value
	group    string
	help     string // one sentence or more in Markdown, with links from the root of the repository
	// parse sets a field of settings. It is not called with an empty value. The error says what
	// to write instead, and has no part of a secret.
	parse func(value string) error
}

var markdownLink = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`)

// text returns the help as plain text, with the default value.
func (s setting) text() string {
	text := strings.ReplaceAll(markdownLink.ReplaceAllString(s.help, "$1"), "`", "")
	if s.standard != "" {
		text += " Default: " + s.standard + "."
	}
	return text
}

// The groups of settings, in the order of the documents.
const (
	inProduction = "In production"
	signIn       = "Sign-in"
	calls        = "Calls"
	look         = "Look"
	rarely       = "Rarely"
	forTests     = "" // not documented for operators
)

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

	// What is read before it is known whether there is such a server.
	oidc           identity.Config
	liveKitOptions livekit.Options

	telemetry []string // mistakes in settings that only telemetry needs
}

const (
	defaultSignInLimit = 10 // the default of PORTAL_TEST_SIGN_IN_LIMIT

	shortestSession = time.Second
	longestSession  = 10 * 365 * 24 * time.Hour
)

// into returns a function that parses a value into target.
func into[T any](target *T, parse func(string) (T, error)) func(string) error {
	return func(value string) (err error) {
		*target, err = parse(value)
		return err
	}
}

// table returns all settings, whose functions parse into s. The documents, the file of examples and
// the help are made from it or checked against it.
func table(s *settings) []setting {
	return []setting{
		{
			name: "PORTAL_ADDR", standard: "127.0.0.1:8080", group: inProduction, parse: into(&s.addr, address),
			help: "Listen address.",
		},
		{
			name: "DATABASE_URL", standard: "sqlite:data/portal.db", example: "postgres://portal@127.0.0.1:5432/portal", group: inProduction, parse: into(&s.database, databaseURL),
			help: "SQLite, for one instance; or `postgres://...`, with several hosts for failover ([PostgreSQL](cmd/portal/operations/postgresql.md)).",
		},
		{
			name: "PORTAL_BASE_URL", example: "https://portal.example.com", group: inProduction, parse: into(&s.baseURL, origin),
			help: "Public URL, the same on every instance: sets cookie security, the token issuer, the address in examples and the host of passkeys. " +
				"Without it: `http://` and the listen address, with `serve --demo` the name localhost.",
		},
		{
			name: "PORTAL_SECRET", group: inProduction, parse: into(&s.secret, secretText(generate)),
			help: "At least 32 bytes, the same on every instance: the keys for cookies and tokens are derived from it. Required with PostgreSQL; " +
				"with SQLite, the default is generated once in `portal.secret` beside the database. Generate it with `openssl rand -hex 32`.",
		},
		{
			name: "PORTAL_TRUSTED_PROXIES", example: "127.0.0.1/32", group: inProduction, parse: into(&s.trustedProxies, networks),
			help: "Comma-separated networks (CIDR) of the proxies in front, whose `X-Forwarded-For` header is trusted, also with ports " +
				"(`203.0.113.9:51008`, `[2001:db8::1]:51008`). Behind a proxy, the networks of keys, sign-in limits and activity need it: " +
				"without it every client has the address of the proxy.",
		},
		{ //nolint:gosec // the password is an example
			name: "PORTAL_SMTP_URL", example: "smtp://portal:password@mail.example.com:587", group: inProduction, parse: into(&s.smtp, mailer.ParseServer),
			help: "Server for [emails](cmd/portal/operations/sign-in.md#emails) about changes, invitations and forgotten passwords: `smtp://` or " +
				"`smtps://`. Needs `PORTAL_MAIL_FROM`.",
		},
		{
			name: "PORTAL_MAIL_FROM", example: "portal@example.com", group: inProduction, parse: into(&s.mailFrom, mailer.ParseSender),
			help: "Sender of emails. Needs `PORTAL_SMTP_URL`.",
		},
		{
			name: "PORTAL_OPERATOR_TOKEN", group: inProduction, parse: into(&s.operatorToken, token),
			help: "At least 32 bytes; opens the [operator API](cmd/portal/operations/operator-api.md).",
		},
		{
			name: "PORTAL_METRICS_ADDR", example: "127.0.0.1:8090", group: inProduction, parse: into(&s.metricsAddr, address),
			help: "Listen address of `/metrics` for Prometheus and of health checks; empty: off.",
		},
		{
			name: "PORTAL_LOG_LEVEL", standard: "info", group: inProduction, parse: into(&s.logLevel, logLevel),
			help: "The lowest level in the log: `debug`, `info`, `warn` or `error`; requests are `info`, and server errors `error`.",
		},
		{
			name: "PORTAL_SECURITY_CONTACT", example: "mailto:security@example.com", group: inProduction, parse: into(&s.securityContact, link("https", "mailto")),
			help: "The address for vulnerability reports in `/.well-known/security.txt`: an `https:` or `mailto:` URL.",
		},

		{
			name: "PORTAL_SESSION_IDLE", standard: "12h", group: signIn, parse: into(&s.sessionIdle, duration(shortestSession, longestSession)),
			help: "A session ends after this time without use.",
		},
		{
			name: "PORTAL_SESSION_MAX", standard: "720h", group: signIn, parse: into(&s.sessionMax, duration(shortestSession, longestSession)),
			help: "A session ends at the latest this long after sign-in.",
		},
		{
			name: "PORTAL_PASSWORD_SIGN_IN", standard: "on", group: signIn, parse: into(&s.passwordsOff, choice("off", "on")),
			help: "`off`: no sign-in with a password, only with OpenID Connect, passkeys and links.",
		},
		{
			name: "PORTAL_OIDC_ISSUER", example: "https://login.example.com/realms/staff", group: signIn, parse: into(&s.oidc.Issuer, issuer),
			help: "Issuer of the [OpenID Connect](cmd/portal/operations/sign-in.md#openid-connect) provider that users can sign in with, exactly as " +
				"in its metadata. Needs `PORTAL_OIDC_CLIENT_ID` and `PORTAL_OIDC_CLIENT_SECRET`.",
		},
		{
			name: "PORTAL_OIDC_CLIENT_ID", example: "portal", group: signIn, parse: into(&s.oidc.ClientID, ascii),
			help: "The portal's client ID at the provider.",
		},
		{
			name: "PORTAL_OIDC_CLIENT_SECRET", group: signIn, parse: into(&s.oidc.ClientSecret, ascii),
			help: "The portal's client secret at the provider.",
		},
		{
			name: "PORTAL_OIDC_NAME", example: "Example Login", group: signIn, parse: into(&s.oidc.Name, shortText("name", maxProductName)),
			help: "The provider's name on the sign-in page. Without it: the issuer's host.",
		},
		{
			name: "PORTAL_OIDC_TRUST_EMAIL", standard: "false", group: signIn, parse: into(&s.oidc.TrustEmail, choice("true", "false")),
			help: "`true` signs users in by their verified email, if it is proven here too.",
		},
		{
			name: "PORTAL_OIDC_ACCOUNTS", standard: "off", group: signIn, parse: into(&s.oidc.Claims, choice("claims", "off")),
			help: "`claims`: the ID token's claims `portal_account` and `portal_role` [decide](cmd/portal/operations/sign-in.md#accounts-by-claims) " +
				"who belongs to which account, as an owner or a member; these users sign in with the provider alone.",
		},

		{
			name: "PORTAL_LIVEKIT_URL", example: "wss://livekit.example.com", group: calls, parse: into(&s.liveKitOptions.URL, webSocketURL),
			help: "LiveKit server for which [tokens](cmd/portal/operations/livekit.md) are issued too, as browsers reach it: a `wss:` or `ws:` URL. " +
				"Needs `PORTAL_LIVEKIT_API_KEY` and `PORTAL_LIVEKIT_API_SECRET`.",
		},
		{
			name: "PORTAL_LIVEKIT_API_KEY", example: "APIexample", group: calls, parse: into(&s.liveKitOptions.APIKey, liveKitName),
			help: "API key of the LiveKit server.",
		},
		{
			name: "PORTAL_LIVEKIT_API_SECRET", group: calls, parse: into(&s.liveKitOptions.APISecret, secretText("LiveKit signs with it")),
			help: "Secret of that key, at least 32 bytes.",
		},
		{
			name: "PORTAL_LIVEKIT_AGENT_NAME", example: "receptionist", group: calls, parse: into(&s.liveKitOptions.AgentName, liveKitName),
			help: "LiveKit agent that joins each new room.",
		},
		{
			name: "PORTAL_WIDGET_TOKEN_TTL", standard: "10m", group: calls, parse: into(&s.widgetTokenTTL, duration(time.Minute, widget.MaxTTL)),
			help: "Lifetime of a widget token, 1m to 1h.",
		},
		{
			name: "PORTAL_WIDGET_TOKEN_ALG", standard: "EdDSA", group: calls, parse: into(&s.widgetTokenAlg, algorithms),
			help: "Or `ES256`, or both with a comma: the first signs, the keys of all are published " +
				"([changing it](cmd/portal/operations/upgrade.md#token-algorithm)).",
		},

		{
			name: "PORTAL_NAME", standard: "Voice Portal", group: look, parse: into(&s.name, shortText("name", maxProductName)),
			help: "The product's name on every page.",
		},
		{
			name: "PORTAL_LOGO", example: "/etc/portal-logo.svg", group: look, parse: into(&s.brand.Logo, brand.ReadLogo),
			help: "Path of the logo on every page: an SVG or PNG file of at most 32 KiB; a PNG stands in emails too.",
		},
		{
			name: "PORTAL_ACCENT", example: "#0b6b4e", group: look, parse: into(&s.brand.Accent, brand.NewAccent),
			help: "Color of buttons and links, `#rrggbb`; the start fails if text in it on the page has a contrast below 4.5. Shades for the dark " +
				"scheme are computed.",
		},
		{
			name: "PORTAL_HOME_URL", example: "https://platform.example.com", group: look, parse: into(&s.brand.HomeURL, link("https", "http")),
			help: `Where the link "Back to" with the product's name leads, on every page and in emails.`,
		},
		{
			name: "PORTAL_SUPPORT_URL", example: "mailto:help@example.com", group: look, parse: into(&s.supportURL, link("https", "http", "mailto")),
			help: `Help for users: a link on every page and in the email about a changed email, and the target of "Forgot password?" if no emails are configured. An ` + "`https:`, `http:` or `mailto:` URL.",
		},
		{
			name: "PORTAL_NOTICE", example: "Maintenance on Sunday from 06:00 to 07:00 UTC", group: look, parse: into(&s.notice, shortText("text", maxNotice)),
			help: "A sentence above every page, such as for maintenance, of at most 200 characters.",
		},

		{
			name: "PORTAL_SECRET_PREVIOUS", group: rarely, parse: into(&s.secretPrevious, secretText(generate)),
			help: "A second secret during a rotation: it verifies and its public keys are published, but it never signs.",
		},
		{
			name: "PORTAL_OPERATOR_TOKEN_PREVIOUS", group: rarely, parse: into(&s.operatorTokenPrevious, token),
			help: "A second operator token, which is accepted too, during a [rotation](cmd/portal/operations/operator-api.md#rotate-the-token).",
		},
		{
			name: "PORTAL_RATE_LIMIT", standard: "50:100", group: rarely, parse: into(&s.rateLimit, rate),
			help: "Requests per second and burst of one key on one instance, or `off`; beyond it the response is 429. `/widget/authorize` applies it " +
				"to each widget token too, and 20 times the limit to all tokens of an account.",
		},
		{
			name: "PORTAL_KEY_MAX_LIFETIME", example: "90d", group: rarely, parse: into(&s.keyMaxLifetime, days),
			help: "The longest time until a new API key expires, in whole days or hours, such as `90d`; existing keys keep their expiry, and their " +
				"replacements need one.",
		},
		{
			name: "PORTAL_KEY_UNUSED_LIFETIME", example: "90d", group: rarely, parse: into(&s.keyUnusedLifetime, days),
			help: "An API key is revoked after this time without a use, in whole days or hours, such as `90d`. Owners can choose a shorter time in " +
				"Settings, not a longer one. They and the user who generated the key get emails 14 and 3 days before. With less than `15d`, a key is " +
				"revoked 15 days after its last use.",
		},
		{
			name: "PORTAL_WORKLOAD_ISSUERS", example: "https://gitlab.example.com", group: rarely, parse: into(&s.issuers, issuers),
			help: "Comma-separated issuers of your own (`https:`, or `http:` for loopback addresses), whose tokens can stand for an API key beside " +
				"those of the known platforms, and whose public keys are fetched; `off` turns keys without a secret off " +
				"([workload identity](cmd/portal/operations/workload-identity.md)).",
		},
		{
			name: "PORTAL_LEAKS_GITHUB_KEYS_URL", example: "https://api.github.com/meta/public_keys/secret_scanning", group: rarely, parse: into(&s.gitHubKeysURL, keysURL),
			help: "Lets GitHub [report leaked keys](cmd/portal/operations/leaked-keys.md), which are then revoked.",
		},
		{
			name: "PORTAL_WEBHOOKS", standard: "on", group: rarely, parse: into(&s.webhooksOff, choice("off", "on")),
			help: "`off` sends no [webhooks](cmd/portal/operations/webhooks.md), and hides their page.",
		},
		{
			name: "PORTAL_WEBHOOK_NETWORKS", example: "10.1.2.0/24", group: rarely, parse: into(&s.webhookNetworks, exactNetworks),
			help: "Networks (CIDR, host bits zero, separated by commas) that webhooks may be sent to although they are not public; in loopback ones " +
				"`http:` is allowed too.",
		},

		{
			name: "PORTAL_TEST_SIGN_IN_LIMIT", standard: "10", group: forTests, parse: into(&s.signInLimit, count),
			help: "Wrong passwords a minute before sign-in is refused. For tests only.",
		},
	}
}

// readSettings parses the environment. With names, it parses only these variables. The error is of
// type inputErrors and lists everything that is wrong. No message contains a part of a secret.
func readSettings(names ...string) (settings, error) {
	var s settings
	var found problems
	values := map[string]string{}
	for _, row := range table(&s) {
		if len(names) > 0 && !slices.Contains(names, row.name) {
			continue
		}
		value, err := variable(row.name)
		values[row.name] = value
		if os.Getenv(row.name+"_FILE") != "" && value == "" {
			found.add(row.name+"_FILE", "files of single settings are not read; write a line %s=... into a file, and name it with --env-file", row.name)
		}
		if value = cmp.Or(value, row.standard); err == nil && value != "" {
			err = row.parse(value)
		}
		if err != nil && isQuoted(value) {
			err = errQuoted
		}
		if err != nil {
			found.add(row.name, "%s", err)
		}
	}
	if len(names) == 0 {
		combine(&s, values, &found)
		s.spans, s.telemetry = readSpanReceiver()
	}
	return s, found.err()
}

// combine checks what depends on several variables, whose values it gets, and completes s.
func combine(s *settings, values map[string]string, found *problems) {
	combineProvider(s, values, found)
	combineLiveKit(s, values, found)
	found.together(values, "PORTAL_SMTP_URL", "PORTAL_MAIL_FROM")
	checkProxies(found)
	if s.metricsAddr == s.addr && s.addr != "" && !strings.HasSuffix(s.addr, ":0") {
		found.add("PORTAL_METRICS_ADDR", "must not be the same as PORTAL_ADDR; choose another port")
	}
	otherSignIn := s.provider != nil || s.operatorToken != "" || pages.OffersPasskeys(s.publicURL(&net.TCPAddr{}))
	if s.passwordsOff && !otherSignIn {
		found.add("PORTAL_PASSWORD_SIGN_IN", "off leaves users no way to sign in; set the PORTAL_OIDC variables, "+
			"PORTAL_OPERATOR_TOKEN for sign-in links, or for passkeys an https PORTAL_BASE_URL whose host name has a dot")
	}
	if values["PORTAL_SECRET"] == "" && s.database.isPostgres() {
		found.add("PORTAL_SECRET", "required with PostgreSQL, with the same value on every instance; "+generate)
	}
	if s.secret != "" && s.secret == s.secretPrevious {
		found.add("PORTAL_SECRET_PREVIOUS", "must not be the same as PORTAL_SECRET; set it to the previous secret or unset it")
	}
	if values["PORTAL_OPERATOR_TOKEN_PREVIOUS"] != "" && values["PORTAL_OPERATOR_TOKEN"] == "" {
		found.add("PORTAL_OPERATOR_TOKEN_PREVIOUS", "PORTAL_OPERATOR_TOKEN is not set; set it to the new token, or unset both")
	}
}

// combineProvider sets the OpenID Connect provider if there is one.
func combineProvider(s *settings, values map[string]string, found *problems) {
	if !found.together(values, "PORTAL_OIDC_ISSUER", "PORTAL_OIDC_CLIENT_ID", "PORTAL_OIDC_CLIENT_SECRET") {
		for _, extra := range []struct {
			name string
			set  bool
		}{
			{"PORTAL_OIDC_NAME", s.oidc.Name != ""}, {"PORTAL_OIDC_TRUST_EMAIL", s.oidc.TrustEmail}, {"PORTAL_OIDC_ACCOUNTS", s.oidc.Claims},
		} {
			if extra.set {
				found.add(extra.name, "has no effect without PORTAL_OIDC_ISSUER; set the other PORTAL_OIDC variables or unset it")
			}
		}
		return
	}
	if u, err := url.Parse(s.oidc.Issuer); err == nil {
		s.oidc.Name = cmp.Or(s.oidc.Name, u.Host)
	}
	s.provider = &s.oidc
}

// combineLiveKit sets the LiveKit server if there is one.
func combineLiveKit(s *settings, values map[string]string, found *problems) {
	before := len(found.lines)
	if !found.together(values, "PORTAL_LIVEKIT_URL", "PORTAL_LIVEKIT_API_KEY", "PORTAL_LIVEKIT_API_SECRET") {
		if values["PORTAL_LIVEKIT_AGENT_NAME"] != "" {
			found.add("PORTAL_LIVEKIT_AGENT_NAME", "needs PORTAL_LIVEKIT_URL, PORTAL_LIVEKIT_API_KEY and PORTAL_LIVEKIT_API_SECRET; set them or unset it")
		}
		return
	}
	if len(found.lines) == before && s.liveKitOptions.URL != nil {
		s.liveKit = livekit.New(s.liveKitOptions)
	}
}

// unknownNames returns the names in an environment that look like settings in capital or small
// letters and are none, sorted. readSettings refuses NAME_FILE.
func unknownNames(environ []string) []string {
	var known, unknown []string
	for _, row := range table(new(settings)) {
		known = append(known, row.name)
	}
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		ours := strings.HasPrefix(strings.ToUpper(name), "PORTAL_") || strings.EqualFold(name, "DATABASE_URL")
		if ours && !slices.Contains(known, strings.TrimSuffix(name, "_FILE")) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}

// publicURL returns the configured public URL, or else http:// and the listen address. It replaces
// port 0 with the port that the system chose. A demo on a loopback address has the name localhost,
// because browsers support passkeys there.
func (s settings) publicURL(listening net.Addr) *url.URL {
	if s.baseURL != nil {
		return s.baseURL
	}
	host, _, _ := net.SplitHostPort(s.addr) // parse has checked it
	if host == "" || s.demo && (host == "127.0.0.1" || host == "::1") {
		host = "localhost"
	}
	_, port, _ := net.SplitHostPort(listening.String())
	return &url.URL{Scheme: "http", Host: net.JoinHostPort(host, port)}
}

// checkProxies checks the URLs of proxies for the connections to other servers, as net/http reads
// them. Its errors contain the URL, which may have a password.
func checkProxies(found *problems) {
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"} {
		value, err := variable(name)
		if err == nil && isQuoted(value) {
			err = errQuoted
		}
		if err != nil {
			found.add(name, "%s", err)
			continue
		}
		u, err := url.Parse(value)
		if err != nil || u.Scheme == "" || u.Host == "" {
			u, err = url.Parse("http://" + value)
		}
		if err != nil || cutsPassword(u) {
			found.add(name, "invalid URL of a proxy; write http://user:password@proxy.example.com:3128, with special characters "+
				"percent-encoded, such as in the password @ as %%40, / as %%2F and %% as %%25")
		}
	}
}
