package main

import (
	"errors"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"portal/handlers/middleware"
	"portal/models/modelstest"
	"portal/models/widget"
)

const goodSecret = "0123456789abcdef0123456789abcdef"

// rows returns the table of settings.
func settingRows() []setting { return table(new(settings)) }

// parse parses a configuration from only these variables.
func parse(t *testing.T, env map[string]string) (settings, inputErrors) {
	t.Helper()
	for _, row := range settingRows() {
		t.Setenv(row.name, "") // restores it after the test
		modelstest.Must(t, os.Unsetenv(row.name))
	}
	for name, value := range env {
		t.Setenv(name, value)
	}
	s, err := readSettings()
	var found inputErrors
	if err != nil && !errors.As(err, &found) {
		t.Fatalf("want inputErrors, got %v", err)
	}
	return s, found
}

func TestDefaults(t *testing.T) {
	s, found := parse(t, nil)
	if len(found) > 0 {
		t.Fatal(found)
	}
	modelstest.Facts(t, s, map[string]bool{
		"address":          s.addr == "127.0.0.1:8080",
		"metrics address":  s.metricsAddr == "",
		"token TTL":        s.widgetTokenTTL == 10*time.Minute,
		"token algorithms": slices.Equal(s.widgetTokenAlg, []widget.Algorithm{widget.EdDSA}),
		"database":         s.database == databaseConfig{url: "sqlite:data/portal.db", directory: "data"},
		"secret":           s.secret == "",
		"previous secret":  s.secretPrevious == "",
		"session idle":     s.sessionIdle == 12*time.Hour,
		"session maximum":  s.sessionMax == 720*time.Hour,
		"sign-in limit":    s.signInLimit == defaultSignInLimit,
		"rate limit":       s.rateLimit == middleware.RateLimit{PerSecond: 50, Burst: 100},
		"name":             s.name == "Voice Portal",
		"base URL":         s.baseURL == nil,
		"trusted proxies":  len(s.trustedProxies) == 0,
	})
}

func TestAnEmptyVariableMeansNotSet(t *testing.T) {
	env := map[string]string{}
	for _, row := range settingRows() {
		env[row.name] = ""
	}
	s, found := parse(t, env)
	if len(found) > 0 || s.addr != "127.0.0.1:8080" || s.widgetTokenTTL != 10*time.Minute {
		t.Errorf("got %+v, errors %q", s, found)
	}
}

// Each secret with a line break, as kubectl create secret --from-file and echo | base64 keep it.
func TestWhiteSpaceAtTheEndsOfAValueIsCut(t *testing.T) {
	want := goodSecret + goodSecret
	env := map[string]string{
		"DATABASE_URL": "sqlite:data/portal.db", "PORTAL_SECRET": want, "PORTAL_SECRET_PREVIOUS": goodSecret, "PORTAL_OPERATOR_TOKEN": want,
		"PORTAL_OPERATOR_TOKEN_PREVIOUS": goodSecret, "PORTAL_OIDC_ISSUER": "https://login.example.com", "PORTAL_OIDC_CLIENT_ID": "portal",
		"PORTAL_OIDC_CLIENT_SECRET": want, "PORTAL_OIDC_NAME": "Acme ID", "PORTAL_LIVEKIT_URL": "wss://livekit.example.com", "PORTAL_LIVEKIT_API_KEY": "APIx",
		"PORTAL_LIVEKIT_API_SECRET": want, "PORTAL_BASE_URL": "https://portal.example.com", "PORTAL_NAME": "Acme", "PORTAL_LOG_LEVEL": "debug",
		"PORTAL_TRUSTED_PROXIES": "10.0.0.0/8", "PORTAL_SMTP_URL": "smtp://mail.example.com", "PORTAL_MAIL_FROM": "portal@example.com",
	}
	spaced := map[string]string{}
	for name, value := range env {
		spaced[name] = "\ufeff\t " + value + " \u00a0\r\n"
	}
	s, found := parse(t, spaced)
	if len(found) > 0 {
		t.Fatal(found)
	}
	modelstest.Facts(t, s, map[string]bool{
		"database":        s.database.url == env["DATABASE_URL"],
		"secret":          s.secret == want,
		"previous secret": s.secretPrevious == goodSecret,
		"operator token":  s.operatorToken == want,
		"previous token":  s.operatorTokenPrevious == goodSecret,
		"client secret":   s.provider.ClientSecret == want,
		"issuer":          s.provider.Issuer == env["PORTAL_OIDC_ISSUER"],
		"LiveKit":         s.liveKitOptions.APIKey == "APIx" && s.liveKitOptions.APISecret == want && s.liveKit != nil,
		"base URL":        s.baseURL.String() == env["PORTAL_BASE_URL"],
		"name":            s.name == "Acme",
	})
}

func TestAControlCharacterInsideAValueIsRefused(t *testing.T) {
	for _, row := range settingRows() {
		for _, character := range []string{"\n", "\t", "\x1b", "\u0085"} {
			env := map[string]string{row.name: "hunter2" + character + "hunter3 " + goodSecret}
			_, found := parse(t, env)
			lines := slices.DeleteFunc(slices.Clone(found), func(line string) bool { return !strings.HasPrefix(line, row.name+": ") })
			if len(lines) != 1 || !strings.Contains(lines[0], "control character") || strings.Contains(found.Error(), "hunter") {
				t.Errorf("%s with %q: got %q", row.name, character, found)
			}
		}
	}
	expectErrors(t, map[string]string{"PORTAL_NAME": "Acme \xff"}, "PORTAL_NAME")
}

// A secret or a URL with a password may be in the wrong variable.
func TestNoMessageShowsALongValueOrAURL(t *testing.T) {
	for _, row := range settingRows() {
		for _, value := range []string{"http://user:hunter2@proxy.example.com:3128", goodSecret + "hunter2" + goodSecret, "x@hunter2"} {
			_, found := parse(t, map[string]string{row.name: value})
			if row.name == "PORTAL_LOGO" { // a path
				continue
			}
			if strings.Contains(found.Error(), "hunter") {
				t.Errorf("%s: %q", row.name, found)
			}
		}
	}
}

// Libraries read these variables from the environment themselves.
func TestWhiteSpaceIsCutForLibrariesToo(t *testing.T) {
	for _, name := range []string{"OTEL_SERVICE_NAME", "PGPASSWORD", "HTTPS_PROXY", "no_proxy"} {
		t.Setenv(name, " value\n")
	}
	t.Setenv("LESS", " value ")
	modelstest.Must(t, tidyEnvironment())
	for _, name := range []string{"OTEL_SERVICE_NAME", "PGPASSWORD", "HTTPS_PROXY", "no_proxy"} {
		if got := os.Getenv(name); got != "value" {
			t.Errorf("%s is %q", name, got)
		}
	}
	if got := os.Getenv("LESS"); got != " value " {
		t.Errorf("LESS is %q", got)
	}
}

// What a newcomer has to read does not grow: a new setting takes the place of an old one.
func TestThereAreAtMost41Settings(t *testing.T) {
	documented := slices.DeleteFunc(settingRows(), func(row setting) bool { return row.group == forTests || !strings.HasPrefix(row.name, "PORTAL_") })
	if len(documented) > 41 {
		t.Errorf("there are %d documented PORTAL_ variables", len(documented))
	}
	help := serveCommand{}.Help()
	for _, row := range settingRows() {
		if strings.Contains(help, "\n"+row.name+": ") == (row.group == forTests) {
			t.Errorf("serve --help documents %s: %t", row.name, row.group == forTests)
		}
	}
}

// together has variables that are set together, by the beginning of their names.
var together = map[string]map[string]string{
	"PORTAL_LIVEKIT_": {
		"PORTAL_LIVEKIT_URL": "wss://livekit.example.com", "PORTAL_LIVEKIT_API_KEY": "APIx", "PORTAL_LIVEKIT_API_SECRET": goodSecret,
	},
	"PORTAL_OIDC_": {
		"PORTAL_OIDC_ISSUER": "https://login.example.com", "PORTAL_OIDC_CLIENT_ID": "portal", "PORTAL_OIDC_CLIENT_SECRET": "hunter2",
	},
	"PORTAL_SMTP_URL":       {"PORTAL_MAIL_FROM": "portal@example.com"},
	"PORTAL_MAIL_FROM":      {"PORTAL_SMTP_URL": "smtp://mail.example.com"},
	"PORTAL_OPERATOR_TOKEN": {"PORTAL_OPERATOR_TOKEN": goodSecret},
}

// values has a value of each variable, and more. No message may contain "hunter".
var values = map[string]struct{ valid, invalid []string }{
	"PORTAL_ADDR":  {[]string{":8080", "[::1]:0"}, []string{"8080", "127.0.0.1:70000", "127.0.0.1:"}},
	"DATABASE_URL": {nil, []string{"mysql://root:hunter2@localhost/db", "postgres://portal:hunter@2@localhost/db", "sqlite:", "portal.db"}},
	// See TestPublicURLs.
	"PORTAL_BASE_URL":                {[]string{"https://portal.example.com/"}, []string{"portal.example.com"}},
	"PORTAL_SECRET":                  {[]string{goodSecret}, []string{"hunter3", goodSecret[1:]}},
	"PORTAL_SECRET_PREVIOUS":         {[]string{goodSecret}, []string{"hunter4"}},
	"PORTAL_OPERATOR_TOKEN":          {[]string{goodSecret}, []string{"hunter5", goodSecret[1:], goodSecret + " " + goodSecret}},
	"PORTAL_WIDGET_TOKEN_TTL":        {[]string{"1m", "1h"}, []string{"2h", "59s", "1h1s", "600"}},
	"PORTAL_WIDGET_TOKEN_ALG":        {[]string{"ES256", "ES256,EdDSA", "EdDSA, ES256"}, []string{"RS256", "eddsa", "none", "ES256,", "ES256,ES256"}},
	"PORTAL_RATE_LIMIT":              {[]string{"off", "1:1"}, []string{"many", "50", "0:100", "50:-1", "50:100:1"}},
	"PORTAL_TRUSTED_PROXIES":         {[]string{"10.0.0.0/8, fd00::/8"}, []string{"10.0.0.1", "10.0.0.0/33"}},
	"PORTAL_SESSION_IDLE":            {nil, []string{"half a day", "0s"}},
	"PORTAL_SESSION_MAX":             {[]string{"1s"}, []string{"-1h"}},
	"PORTAL_KEY_UNUSED_LIFETIME":     {[]string{"90d", "720h", "1d", "1h"}, []string{"90", "0d", "1.5d", "-1d", "36501d"}},
	"PORTAL_KEY_MAX_LIFETIME":        {[]string{"90d", "8760h"}, []string{"90", "0d", "1.5h", "-1d", "36501d"}},
	"PORTAL_METRICS_ADDR":            {[]string{"127.0.0.1:9090"}, []string{"localhost:http", "127.0.0.1:8080"}},
	"PORTAL_LOG_LEVEL":               {[]string{"debug", "error"}, []string{"loud", "INFO+1"}},
	"PORTAL_NAME":                    {[]string{"Acme & Sons"}, []string{"two\nlines", strings.Repeat("a", 41)}},
	"PORTAL_LOGO":                    {[]string{"../../static/favicon.svg"}, []string{"none.svg", ".", "settings.go"}},
	"PORTAL_ACCENT":                  {[]string{"#0b6b4e", "#7A1FA2"}, []string{"red", "#ffcc00", "0b6b4e"}},
	"PORTAL_HOME_URL":                {[]string{"https://platform.example.com/voice"}, []string{"javascript:alert(1)", "mailto:help@example.com", "/", "https://root:hunter%zz@example.com"}},
	"PORTAL_NOTICE":                  {[]string{"Maintenance on Sunday & Monday", " ", strings.Repeat("é", 200)}, []string{"two\nlines", strings.Repeat("a", 201)}},
	"PORTAL_SUPPORT_URL":             {[]string{"https://example.com/help?topic=portal", "mailto:help@example.com"}, []string{"javascript:alert(1)", "mailto:help", "https://", "/help"}},
	"PORTAL_SECURITY_CONTACT":        {[]string{"mailto:security@example.com"}, []string{"security@example.com", "http://example.com", "https://example.com/a b"}},
	"PORTAL_TEST_SIGN_IN_LIMIT":      {[]string{"1000"}, []string{"none"}},
	"PORTAL_PASSWORD_SIGN_IN":        {[]string{"on"}, []string{"never", "off"}},
	"PORTAL_OPERATOR_TOKEN_PREVIOUS": {[]string{goodSecret, goodSecret + "0"}, []string{"hunter12", goodSecret[1:]}},
	"PORTAL_LEAKS_GITHUB_KEYS_URL": {
		[]string{"https://api.github.com/meta/public_keys/secret_scanning", "http://127.0.0.1:8090/keys?a=b", "http://[::1]:8090/keys"},
		// A name is not an address.
		[]string{"https://user:hunter9@example.com", "https://user:12345/hunter9@example.com", "http://localhost:8090/keys", "http://api.github.com/keys"},
	},
	"PORTAL_LIVEKIT_URL": {
		[]string{"ws://127.0.0.1:7880", "wss://example.com/livekit"},
		[]string{"https://hunter6.example.com", "", "wss://user:hunter6@example.com", "wss://user:12345/hunter6@example.com", "wss://example.com?access_token=x"},
	},
	"PORTAL_LIVEKIT_API_KEY":    {nil, []string{"hunter 7", ""}},
	"PORTAL_LIVEKIT_API_SECRET": {nil, []string{"hunter8", "", goodSecret[1:]}},
	"PORTAL_LIVEKIT_AGENT_NAME": {[]string{"receptionist"}, []string{"hunter\n9"}},
	"PORTAL_WEBHOOKS":           {[]string{"on", "off"}, []string{"sometimes"}},
	"PORTAL_WORKLOAD_ISSUERS": {
		[]string{"off", "https://gitlab.example.com,http://127.0.0.1:8090/ci"},
		[]string{"http://gitlab.example.com", "https://root:hunter2@gitlab.example.com", "https://root:12345/hunter2@gitlab.example.com", "https://gitlab.example.com?x=1", "https://gitlab.example.com/.well-known/openid-configuration", "on"},
	},
	"PORTAL_WEBHOOK_NETWORKS": {[]string{"10.0.0.0/8,fd00::/8"}, []string{"10.0.0.1/8", "10.0.0.1"}},
	"PORTAL_OIDC_ISSUER": {
		[]string{"https://login.example.com/realms/staff", "https://login.example.com/", "http://127.0.0.1:8090", "http://localhost"},
		[]string{"https://root:hunter2@login.example.com", "https://root:12345/hunter2@login.example.com", "http://login.example.com", "https://login.example.com?tenant=1", "https://login.example.com/.well-known/openid-configuration", "https://", ""},
	},
	"PORTAL_OIDC_CLIENT_ID":     {nil, []string{"a\x01", ""}},
	"PORTAL_OIDC_CLIENT_SECRET": {nil, []string{"hunter6é", ""}},
	"PORTAL_OIDC_NAME":          {[]string{"Acme ID", ""}, []string{"two\nlines", strings.Repeat("a", 41)}},
	"PORTAL_OIDC_TRUST_EMAIL":   {[]string{"true", "false"}, []string{"perhaps"}},
	"PORTAL_OIDC_ACCOUNTS":      {[]string{"claims", "off"}, []string{"on"}},
	"PORTAL_SMTP_URL": {
		[]string{
			"smtp://mail.example.com", "smtp://portal:a%20%2Fsecret@mail.example.com:2525", "smtps://portal:secret@mail.example.com",
			"smtp://10.0.0.1?tls=off", "smtp://portal:secret@127.0.0.1?tls=off",
		},
		[]string{
			"smtp://hunter10@mail.example.com", "smtp://portal:secret@10.0.0.1?tls=off", "smtps://mail.example.com?tls=off", "smtp://mail.example.com?tls=no",
			"smtp://mail.example.com:0", "smtp://mail.example.com/path", "mail.example.com:587", "",
			"smtp://portal:12345/hunter2@mail.example.com", "smtp://portal:12345?hunter2@mail.example.com", "smtp://portal:hunter%zz@mail.example.com",
		},
	},
	"PORTAL_MAIL_FROM": {[]string{"Acme <portal@example.com>"}, []string{"hunter11", "", "portal@example.com\nBcc: eve@example.com"}},
}

func TestValues(t *testing.T) {
	for name, values := range values {
		env := map[string]string{}
		for prefix, others := range together {
			if strings.HasPrefix(name, prefix) {
				maps.Copy(env, others)
			}
		}
		for _, value := range values.valid {
			env[name] = value
			expectErrors(t, env)
		}
		for _, value := range values.invalid {
			env[name] = value
			expectErrors(t, env, name)
		}
	}
}

func TestAllErrorsAreReportedTogether(t *testing.T) {
	env := map[string]string{}
	var names []string
	for _, row := range settingRows() {
		names, env[row.name] = append(names, row.name), values[row.name].invalid[0]
	}
	_, found := parse(t, env)
	var reported []string
	for _, line := range found {
		name, _, _ := strings.Cut(line, ": ")
		reported = append(reported, name)
	}
	slices.Sort(names)
	slices.Sort(reported)
	if !slices.Equal(reported, names) {
		t.Errorf("want one line for each variable, got %q", found)
	}
	if strings.Contains(found.Error(), "hunter") || strings.Contains(found.Error(), "\n\n") {
		t.Errorf("a message contains a secret or an empty line: %q", found)
	}
}

// expectErrors checks that a configuration has one error about each of these variables.
func expectErrors(t *testing.T, env map[string]string, names ...string) {
	t.Helper()
	_, found := parse(t, env)
	if !slices.EqualFunc(found, names, func(line, name string) bool { return strings.HasPrefix(line, name+": ") }) {
		t.Errorf("%v: want errors about %q, got %q", env, names, found)
	}
	if strings.Contains(found.Error(), "hunter") {
		t.Errorf("a message contains a secret: %q", found)
	}
}

// Networks contain IPv4 addresses in IPv4 notation only.
func TestNetworksInIPv6Notation(t *testing.T) {
	all, err := networks("::ffff:10.0.0.0/104, 2001:db8::/32")
	if want := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")}; err != nil || !slices.Equal(all, want) {
		t.Errorf("%v, %v", all, err)
	}
}

func TestPasswordsOfProxies(t *testing.T) {
	for _, name := range []string{"HTTP_PROXY", "https_proxy"} {
		for value, valid := range map[string]bool{
			"http://user:hunter2@proxy.example.com:3128\n": true, "http://user:hunter%40@proxy.example.com/a%40b": true,
			"http://user:hunter%zz@proxy.example.com": false, "http://user:12345/hunter2@proxy.example.com": false,
			"http://user:hunter2\n@proxy.example.com": false,
		} {
			t.Setenv(name, value)
			if valid {
				expectErrors(t, nil)
			} else {
				expectErrors(t, nil, name)
			}
		}
		t.Setenv(name, "")
	}
}

func TestTheNameOfAProviderIsItsHostUnlessSet(t *testing.T) {
	env := map[string]string{
		"PORTAL_OIDC_ISSUER": "https://login.example.com:8443/realms/staff", "PORTAL_OIDC_CLIENT_ID": "portal", "PORTAL_OIDC_CLIENT_SECRET": "hunter2",
	}
	s, found := parse(t, env)
	if len(found) > 0 || s.provider.Name != "login.example.com:8443" {
		t.Errorf("got %q, errors %q", s.provider.Name, found)
	}
	env["PORTAL_OIDC_NAME"] = "Acme ID"
	if s, _ = parse(t, env); s.provider.Name != "Acme ID" {
		t.Errorf("got %q", s.provider.Name)
	}
}

func TestValuesThatDependOnOthers(t *testing.T) {
	const postgres = "postgres://portal@db.example.com/portal"
	for _, test := range []struct {
		env     map[string]string
		invalid []string
	}{
		{map[string]string{"DATABASE_URL": postgres}, []string{"PORTAL_SECRET"}},
		{map[string]string{"DATABASE_URL": postgres, "PORTAL_SECRET": goodSecret}, nil},
		{map[string]string{"PORTAL_SECRET": goodSecret, "PORTAL_SECRET_PREVIOUS": goodSecret + "0"}, nil},
		{map[string]string{"PORTAL_SECRET": goodSecret, "PORTAL_SECRET_PREVIOUS": goodSecret}, []string{"PORTAL_SECRET_PREVIOUS"}},
		{map[string]string{"PORTAL_OPERATOR_TOKEN_PREVIOUS": goodSecret}, []string{"PORTAL_OPERATOR_TOKEN_PREVIOUS"}},
		{map[string]string{"PORTAL_LIVEKIT_AGENT_NAME": "receptionist"}, []string{"PORTAL_LIVEKIT_AGENT_NAME"}},
		{map[string]string{"PORTAL_OIDC_TRUST_EMAIL": "true"}, []string{"PORTAL_OIDC_TRUST_EMAIL"}},
		{map[string]string{"PORTAL_OIDC_NAME": "Acme ID"}, []string{"PORTAL_OIDC_NAME"}},
		// Without passwords, users sign in with a provider, a link of the operator or a
		// passkey.
		{map[string]string{
			"PORTAL_OIDC_ISSUER": "https://a.b", "PORTAL_OIDC_CLIENT_ID": "portal", "PORTAL_OIDC_CLIENT_SECRET": "hunter2",
			"PORTAL_PASSWORD_SIGN_IN": "off",
		}, nil},
		{map[string]string{"PORTAL_OPERATOR_TOKEN": goodSecret, "PORTAL_PASSWORD_SIGN_IN": "off"}, nil},
		{map[string]string{"PORTAL_BASE_URL": "https://portal.example.com", "PORTAL_PASSWORD_SIGN_IN": "off"}, nil},
		{map[string]string{"PORTAL_BASE_URL": "http://localhost:8080", "PORTAL_PASSWORD_SIGN_IN": "off"}, nil},
		{map[string]string{"PORTAL_ADDR": "localhost:8080", "PORTAL_PASSWORD_SIGN_IN": "off"}, nil},
		{map[string]string{"PORTAL_BASE_URL": "https://192.0.2.1", "PORTAL_PASSWORD_SIGN_IN": "off"}, []string{"PORTAL_PASSWORD_SIGN_IN"}},
		{map[string]string{"PORTAL_BASE_URL": "http://portal.example.com", "PORTAL_PASSWORD_SIGN_IN": "off"}, []string{"PORTAL_PASSWORD_SIGN_IN"}},
	} {
		expectErrors(t, test.env, test.invalid...)
	}
}

func TestPublicURLs(t *testing.T) {
	longName := strings.Repeat("a.", 126) + "a" // 253 characters, the most that a name can have
	for _, value := range []string{
		"http://localhost", "http://localhost:8080", "https://portal.example.com",
		"https://portal.example.com/", "HTTPS://Portal.Example.com",
		"https://xn--bcher-kva.example:65535", "http://portal_1:1", "http://127.0.0.1:8080",
		"http://[::1]", "http://[::1]:8080/", "http://[2001:db8::1]:8080", "https://1.example.com",
		"https://" + longName, "https://" + strings.Repeat("a", 63) + ".example.com",
	} {
		s, found := parse(t, map[string]string{"PORTAL_BASE_URL": value})
		if len(found) > 0 {
			t.Errorf("%q is refused: %q", value, found)
			continue
		}
		if got := s.baseURL.String(); !strings.EqualFold(got, strings.TrimSuffix(value, "/")) {
			t.Errorf("%q is read as %q", value, got)
		}
	}
	for _, value := range []string{
		// Invalid port.
		"http://a.b:99999", "http://a.b:65536", "http://a.b:0", "https://a.b:", "https://a.b:/",
		"http://a.b:-1", "http://a.b:http", "http://a.b:1:2", "http://[::1]:", "http://[::1]:99999",
		// More than scheme and host.
		"https://u@a.b", "https://u:p@a.b", "https://@a.b", "https://a.b?", "https://a.b/?",
		"https://a.b?c=d", "https://a.b#", "https://a.b/#", "https://a.b#c",
		"https://a.b/c", "https://a.b//", "https://a.b/.", "https://a.b/%2f",
		// No host, or neither http nor https.
		"http://", "https:///", "https://:443", "https:a.b", "https:/a.b", "//a.b", "a.b", "a.b:80", "/", "http",
		"ftp://a.b", "httpss://a.b", "javascript:alert(1)",
		// Neither a host name nor an IP address.
		"http://a b", "http:// a.b",
		"http://a.b\\c", "http://a%20b", "http://a%62c", "http://b\u00fccher.example",
		"http://b%C3%BCcher.example", `http://"a.b"`, "http://<a>", "http://a,b", "http://a;b",
		"http://a*b", "http://*.a.b", "http://.", "http://.a", "http://a..b", "http://-a.b",
		"https://portal.example.com.", // the host of passkeys has no dot at its end
		"http://a-.b", "http://${HOST}",
		"https://a" + longName, "https://" + strings.Repeat("a", 64) + ".b",
		"http://256.1.1.1", "http://1.2.3", "http://1.2.3.4.5", "http://1.2.3.4.", "http://a.1",
		"http://::1", "http://::1:8080", "http://[::1", "http://::1]", "http://[]", "http://[1.2.3.4]",
		"http://[a.b]", "http://[::1]a", "http://[fe80::1%25eth0]", "http://[fe80::1%eth0]",
	} {
		expectErrors(t, map[string]string{"PORTAL_BASE_URL": value}, "PORTAL_BASE_URL")
	}
}

func TestUnknownNames(t *testing.T) {
	got := unknownNames([]string{"PORTAL_SECRT=hunter2", "PORTAL_ADDR=:1", "PATH=/bin", "PORTAL_A=", "DATABASE_URL=x", "portal_name=x", "portal=x", "database_url=x"})
	if !slices.Equal(got, []string{"PORTAL_A", "PORTAL_SECRT", "database_url", "portal_name"}) {
		t.Errorf("got %q", got)
	}
}

// Docker and Kubernetes keep the quotes that a shell, Compose and systemd remove.
func TestQuotesAroundAValue(t *testing.T) {
	for name, values := range map[string][]string{
		"PORTAL_BASE_URL": {`"https://portal.example.com"`, `'https://portal.example.com'`}, "DATABASE_URL": {`"postgres://portal:hunter2@db/portal"`},
		"HTTPS_PROXY": {`"http://user:hunter2@proxy.example.com:3128"`}, "PORTAL_RATE_LIMIT": {`'50:100'`},
	} {
		for _, value := range values {
			_, found := parse(t, map[string]string{name: value})
			if len(found) != 1 || !strings.HasPrefix(found[0], name+": ") || !strings.Contains(found[0], "remove the quotes") || strings.Contains(found[0], "hunter") {
				t.Errorf("%s=%s: got %q", name, value, found)
			}
		}
		modelstest.Must(t, os.Unsetenv(name))
	}
	// They may be meant.
	s, found := parse(t, map[string]string{"PORTAL_SECRET": `"` + goodSecret + `"`, "PORTAL_NAME": `"Acme`, "PORTAL_NOTICE": `'`})
	if doubts := s.doubts(); len(found) > 0 || len(doubts) != 1 || !strings.HasPrefix(doubts[0], "PORTAL_SECRET is in quotes") {
		t.Errorf("got %q, doubts %q", found, doubts)
	}
}

// With a file of a secret that nobody reads, the portal would use another database and secret.
func TestNamesOfFilesAreRefused(t *testing.T) {
	for _, name := range []string{"DATABASE_URL_FILE", "PORTAL_SECRET_FILE"} {
		expectErrors(t, map[string]string{name: "/run/secrets/hunter2"}, name)
		expectErrors(t, map[string]string{name: "/run/secrets/hunter2", "DATABASE_URL": "sqlite:portal.db", "PORTAL_SECRET": goodSecret})
		modelstest.Must(t, os.Unsetenv(name))
	}
}
