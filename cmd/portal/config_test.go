package main

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"portal/handlers/api"
	"portal/models/modelstest"
	"portal/models/widget"
)

const goodSecret = "0123456789abcdef0123456789abcdef"

// parse parses a configuration from only these variables and flags.
func parse(t *testing.T, env map[string]string, flags ...string) (settings, inputErrors) {
	t.Helper()
	for _, field := range configFields() {
		name := field.Tag.Get("env")
		t.Setenv(name, "") // restores it after the test
		modelstest.Must(t, os.Unsetenv(name))
	}
	for name, value := range env {
		t.Setenv(name, value)
	}
	var c config
	parser := modelstest.Value(kong.New(&c))(t)
	_, err := parser.Parse(flags)
	var found inputErrors
	if err != nil && !errors.As(err, &found) {
		t.Fatalf("want inputErrors, got %v", err)
	}
	return c.settings, found
}

func TestDefaults(t *testing.T) {
	s, found := parse(t, nil)
	if len(found) > 0 {
		t.Fatal(found)
	}
	want := settings{
		addr: "127.0.0.1:8080", widgetTokenTTL: 10 * time.Minute, rateLimit: api.RateLimit{PerSecond: 50, Burst: 100},
		widgetTokenAlg: []widget.Algorithm{widget.EdDSA},
		sessionIdle:    12 * time.Hour, sessionMax: 720 * time.Hour, name: "Voice Portal",
		database: dataSource{url: "sqlite:data/portal.db", directory: "data"},
	}
	if s.addr != want.addr || s.widgetTokenTTL != want.widgetTokenTTL || s.rateLimit != want.rateLimit ||
		!slices.Equal(s.widgetTokenAlg, want.widgetTokenAlg) ||
		s.sessionIdle != want.sessionIdle || s.sessionMax != want.sessionMax || s.name != want.name || s.signInLimit != 10 || s.database != want.database ||
		s.baseURL != nil || s.metricsAddr != "" || len(s.trustedProxies) > 0 || s.secret != "" || s.secretPrevious != "" {
		t.Errorf("got %+v, want %+v", s, want)
	}
}

func TestAnEmptyVariableMeansNotSet(t *testing.T) {
	env := map[string]string{}
	for _, field := range configFields() {
		env[field.Tag.Get("env")] = ""
	}
	s, found := parse(t, env)
	if len(found) > 0 || s.addr != "127.0.0.1:8080" || s.widgetTokenTTL != 10*time.Minute {
		t.Errorf("got %+v, errors %q", s, found)
	}
}

func TestAFlagOverridesItsVariable(t *testing.T) {
	s, found := parse(t, map[string]string{"PORTAL_ADDR": "127.0.0.1:1111"}, "--addr=127.0.0.1:2222")
	if len(found) > 0 || s.addr != "127.0.0.1:2222" {
		t.Errorf("got %q, errors %q", s.addr, found)
	}
}

func TestSecretsHaveNoFlag(t *testing.T) {
	var c config
	parser := modelstest.Value(kong.New(&c))(t)
	for _, flag := range parser.Model.Flags {
		if slices.ContainsFunc(flag.Envs, func(name string) bool {
			return strings.Contains(name, "SECRET") || strings.Contains(name, "DATABASE")
		}) {
			t.Errorf("--%s puts a secret on the command line", flag.Name)
		}
	}
	for _, field := range configFields() {
		if name := field.Tag.Get("env"); field.Tag.Get("kong") == "-" && !strings.Contains(description, name) {
			t.Errorf("--help does not name %s", name)
		}
	}
}

func TestAllErrorsAreReportedTogether(t *testing.T) {
	env := map[string]string{
		"PORTAL_ADDR":            "8080",
		"DATABASE_URL":           "mysql://root:hunter2@localhost/db",
		"PORTAL_BASE_URL":        "portal.example.com",
		"PORTAL_SECRET":          "hunter3",
		"PORTAL_SECRET_PREVIOUS": "hunter4",
		"PORTAL_OPERATOR_TOKEN":  "hunter5",

		"PORTAL_LEAKS_GITHUB_KEYS_URL": "https://user:hunter9@example.com",
		"PORTAL_LEAKS_GITLAB_KEYS_URL": "http://example.com",
		"PORTAL_LEAKS_TOKEN":           "hunter10",
		"PORTAL_WIDGET_TOKEN_TTL":      "2h",
		"PORTAL_WIDGET_TOKEN_ALG":      "RS256",
		"PORTAL_RATE_LIMIT":            "many",
		"PORTAL_TRUSTED_PROXIES":       "10.0.0.1",
		"PORTAL_SESSION_IDLE":          "half a day",
		"PORTAL_SESSION_MAX":           "-1h",
		"PORTAL_KEY_MAX_LIFETIME":      "90",
		"PORTAL_METRICS_ADDR":          "localhost:http",
		"PORTAL_LOG_LEVEL":             "loud",
		"PORTAL_NAME":                  "two\nlines",
		"PORTAL_SUPPORT_URL":           "javascript:alert(1)",
		"PORTAL_SECURITY_CONTACT":      "security@example.com",

		"PORTAL_LIVEKIT_URL":        "https://hunter6.example.com",
		"PORTAL_LIVEKIT_API_KEY":    "hunter 7",
		"PORTAL_LIVEKIT_API_SECRET": "hunter8",
		"PORTAL_LIVEKIT_AGENT_NAME": "hunter\n9",
		"PORTAL_OIDC_ISSUER":        "https://root:hunter2@login.example.com",
		"PORTAL_OIDC_CLIENT_ID":     "a\x01",
		"PORTAL_OIDC_CLIENT_SECRET": "hunter6\n",
		"PORTAL_OIDC_NAME":          "two\nlines",
		"PORTAL_OIDC_TRUST_EMAIL":   "perhaps",
		"PORTAL_PASSWORD_SIGN_IN":   "never",

		"PORTAL_SMTP_URL":  "smtp://hunter10@mail.example.com",
		"PORTAL_MAIL_FROM": "hunter11",

		"PORTAL_TEST_SIGN_IN_LIMIT": "none",
	}
	if len(env) != len(configFields()) {
		t.Errorf("the test sets %d of %d variables", len(env), len(configFields()))
	}
	_, found := parse(t, env)
	for name := range env {
		lines := slices.DeleteFunc(slices.Clone(found), func(line string) bool { return !strings.HasPrefix(line, name+": ") })
		if len(lines) != 1 {
			t.Errorf("%s: want one line, got %q", name, lines)
		}
	}
	if len(found) != len(env) {
		t.Errorf("want one line for each of %d variables, got %q", len(env), found)
	}
	if strings.Contains(found.Error(), "hunter") || strings.Contains(found.Error(), "\n\n") {
		t.Errorf("a message contains a secret or an empty line: %q", found)
	}
}

func TestValues(t *testing.T) {
	postgres := func(more ...string) map[string]string {
		env := map[string]string{"DATABASE_URL": "postgres://portal@db.example.com/portal"}
		for i := 0; i < len(more); i += 2 {
			env[more[i]] = more[i+1]
		}
		return env
	}
	provider := func(issuer string, more ...string) map[string]string {
		env := map[string]string{
			"PORTAL_OIDC_ISSUER": issuer, "PORTAL_OIDC_CLIENT_ID": "portal", "PORTAL_OIDC_CLIENT_SECRET": "hunter2", "PORTAL_OIDC_NAME": "Acme ID",
		}
		for i := 0; i < len(more); i += 2 {
			env[more[i]] = more[i+1]
		}
		return env
	}
	one := func(name, value string) map[string]string { return map[string]string{name: value} }
	mails := func(server, from string) map[string]string {
		return map[string]string{"PORTAL_SMTP_URL": server, "PORTAL_MAIL_FROM": from}
	}
	liveKit := func(name, value string) map[string]string {
		env := map[string]string{
			"PORTAL_LIVEKIT_URL": "wss://livekit.example.com", "PORTAL_LIVEKIT_API_KEY": "APIx",
			"PORTAL_LIVEKIT_API_SECRET": goodSecret,
		}
		env[name] = value
		return env
	}
	for _, test := range []struct {
		env     map[string]string
		invalid string // the variable in the error; empty: valid
	}{
		{one("PORTAL_ADDR", ":8080"), ""},
		{one("PORTAL_ADDR", "[::1]:0"), ""},
		{one("PORTAL_ADDR", "127.0.0.1:70000"), "PORTAL_ADDR"},
		{one("PORTAL_ADDR", "127.0.0.1:"), "PORTAL_ADDR"},
		{one("PORTAL_BASE_URL", "https://portal.example.com/"), ""},
		{one("PORTAL_BASE_URL", "https://portal.example.com:8443"), ""},
		{one("PORTAL_BASE_URL", "https://portal.example.com/keys"), "PORTAL_BASE_URL"},
		{one("PORTAL_BASE_URL", "https://portal.example.com/?a=b"), "PORTAL_BASE_URL"},
		{one("PORTAL_BASE_URL", "https://user@portal.example.com"), "PORTAL_BASE_URL"},
		{one("PORTAL_BASE_URL", "ftp://portal.example.com"), "PORTAL_BASE_URL"},
		{one("PORTAL_BASE_URL", "https://:443"), "PORTAL_BASE_URL"},
		{one("PORTAL_WIDGET_TOKEN_TTL", "1m"), ""},
		{one("PORTAL_WIDGET_TOKEN_TTL", "1h"), ""},
		{one("PORTAL_WIDGET_TOKEN_TTL", "59s"), "PORTAL_WIDGET_TOKEN_TTL"},
		{one("PORTAL_WIDGET_TOKEN_TTL", "1h1s"), "PORTAL_WIDGET_TOKEN_TTL"},
		{one("PORTAL_WIDGET_TOKEN_TTL", "600"), "PORTAL_WIDGET_TOKEN_TTL"},
		{one("PORTAL_WIDGET_TOKEN_ALG", "ES256"), ""},
		{one("PORTAL_WIDGET_TOKEN_ALG", "ES256,EdDSA"), ""},
		{one("PORTAL_WIDGET_TOKEN_ALG", "EdDSA, ES256"), ""},
		{one("PORTAL_WIDGET_TOKEN_ALG", "eddsa"), "PORTAL_WIDGET_TOKEN_ALG"},
		{one("PORTAL_WIDGET_TOKEN_ALG", "none"), "PORTAL_WIDGET_TOKEN_ALG"},
		{one("PORTAL_WIDGET_TOKEN_ALG", "ES256,"), "PORTAL_WIDGET_TOKEN_ALG"},
		{one("PORTAL_WIDGET_TOKEN_ALG", "ES256,ES256"), "PORTAL_WIDGET_TOKEN_ALG"},
		{one("PORTAL_RATE_LIMIT", "off"), ""},
		{one("PORTAL_RATE_LIMIT", "1:1"), ""},
		{one("PORTAL_RATE_LIMIT", "50"), "PORTAL_RATE_LIMIT"},
		{one("PORTAL_RATE_LIMIT", "0:100"), "PORTAL_RATE_LIMIT"},
		{one("PORTAL_RATE_LIMIT", "50:-1"), "PORTAL_RATE_LIMIT"},
		{one("PORTAL_RATE_LIMIT", "50:100:1"), "PORTAL_RATE_LIMIT"},
		{one("PORTAL_TRUSTED_PROXIES", "10.0.0.0/8, fd00::/8"), ""},
		{one("PORTAL_TRUSTED_PROXIES", "10.0.0.0/33"), "PORTAL_TRUSTED_PROXIES"},
		{one("PORTAL_SESSION_IDLE", "0s"), "PORTAL_SESSION_IDLE"},
		{one("PORTAL_SESSION_MAX", "1s"), ""},
		{one("PORTAL_KEY_MAX_LIFETIME", "90d"), ""},
		{one("PORTAL_KEY_MAX_LIFETIME", "8760h"), ""},
		{one("PORTAL_KEY_MAX_LIFETIME", "0d"), "PORTAL_KEY_MAX_LIFETIME"},
		{one("PORTAL_KEY_MAX_LIFETIME", "1.5h"), "PORTAL_KEY_MAX_LIFETIME"},
		{one("PORTAL_KEY_MAX_LIFETIME", "-1d"), "PORTAL_KEY_MAX_LIFETIME"},
		{one("PORTAL_KEY_MAX_LIFETIME", "36501d"), "PORTAL_KEY_MAX_LIFETIME"},
		{one("PORTAL_METRICS_ADDR", "127.0.0.1:9090"), ""},
		{one("PORTAL_METRICS_ADDR", "127.0.0.1:8080"), "PORTAL_METRICS_ADDR"},
		{one("PORTAL_LOG_LEVEL", "debug"), ""},
		{one("PORTAL_LOG_LEVEL", "error"), ""},
		{one("PORTAL_LOG_LEVEL", "INFO+1"), "PORTAL_LOG_LEVEL"},
		{one("PORTAL_NAME", " "), "PORTAL_NAME"},
		{one("PORTAL_NAME", "Acme & Sons"), ""},
		{one("PORTAL_NAME", strings.Repeat("a", 41)), "PORTAL_NAME"},
		{one("PORTAL_SUPPORT_URL", "https://example.com/help?topic=portal"), ""},
		{one("PORTAL_SUPPORT_URL", "mailto:help@example.com"), ""},
		{one("PORTAL_SUPPORT_URL", "mailto:help"), "PORTAL_SUPPORT_URL"},
		{one("PORTAL_SUPPORT_URL", "https://"), "PORTAL_SUPPORT_URL"},
		{one("PORTAL_SUPPORT_URL", "/help"), "PORTAL_SUPPORT_URL"},
		{one("PORTAL_SECURITY_CONTACT", "mailto:security@example.com"), ""},
		{one("PORTAL_SECURITY_CONTACT", "http://example.com"), "PORTAL_SECURITY_CONTACT"},
		{one("PORTAL_SECURITY_CONTACT", "https://example.com/a b"), "PORTAL_SECURITY_CONTACT"},
		{one("PORTAL_SECRET", goodSecret[1:]), "PORTAL_SECRET"},
		{one("PORTAL_SECRET", goodSecret), ""},
		{one("DATABASE_URL", "sqlite:"), "DATABASE_URL"},
		{one("DATABASE_URL", "portal.db"), "DATABASE_URL"},
		{postgres(), "PORTAL_SECRET"},
		{postgres("PORTAL_SECRET", goodSecret), ""},
		{postgres("PORTAL_SECRET", goodSecret, "PORTAL_SECRET_PREVIOUS", goodSecret+"0"), ""},
		{liveKit("PORTAL_LIVEKIT_AGENT_NAME", "receptionist"), ""},
		{liveKit("PORTAL_LIVEKIT_URL", "ws://127.0.0.1:7880"), ""},
		{liveKit("PORTAL_LIVEKIT_URL", "wss://example.com/livekit"), ""},
		{liveKit("PORTAL_LIVEKIT_URL", ""), "PORTAL_LIVEKIT_URL"},
		{liveKit("PORTAL_LIVEKIT_URL", "wss://user:password@example.com"), "PORTAL_LIVEKIT_URL"},
		{liveKit("PORTAL_LIVEKIT_URL", "wss://example.com?access_token=x"), "PORTAL_LIVEKIT_URL"},
		{liveKit("PORTAL_LIVEKIT_API_KEY", ""), "PORTAL_LIVEKIT_API_KEY"},
		{liveKit("PORTAL_LIVEKIT_API_SECRET", ""), "PORTAL_LIVEKIT_API_SECRET"},
		{liveKit("PORTAL_LIVEKIT_API_SECRET", goodSecret[1:]), "PORTAL_LIVEKIT_API_SECRET"},
		{one("PORTAL_LIVEKIT_AGENT_NAME", "receptionist"), "PORTAL_LIVEKIT_AGENT_NAME"},
		{mails("smtp://mail.example.com", "portal@example.com"), ""},
		{mails("smtp://portal:a%20%2Fsecret@mail.example.com:2525", "Acme <portal@example.com>"), ""},
		{mails("smtps://portal:secret@mail.example.com", "portal@example.com"), ""},
		{mails("smtp://10.0.0.1?tls=off", "portal@example.com"), ""},
		{mails("smtp://portal:secret@127.0.0.1?tls=off", "portal@example.com"), ""},
		{mails("smtp://portal:secret@10.0.0.1?tls=off", "portal@example.com"), "PORTAL_SMTP_URL"},
		{mails("smtps://mail.example.com?tls=off", "portal@example.com"), "PORTAL_SMTP_URL"},
		{mails("smtp://mail.example.com?tls=no", "portal@example.com"), "PORTAL_SMTP_URL"},
		{mails("smtp://mail.example.com:0", "portal@example.com"), "PORTAL_SMTP_URL"},
		{mails("smtp://mail.example.com/path", "portal@example.com"), "PORTAL_SMTP_URL"},
		{mails("mail.example.com:587", "portal@example.com"), "PORTAL_SMTP_URL"},
		{mails("", "portal@example.com"), "PORTAL_SMTP_URL"},
		{mails("smtp://mail.example.com", ""), "PORTAL_MAIL_FROM"},
		{
			mails("smtp://mail.example.com", "portal@example.com\nBcc: eve@example.com"),
			"PORTAL_MAIL_FROM",
		},
		{one("PORTAL_OPERATOR_TOKEN", goodSecret), ""},
		{one("PORTAL_OPERATOR_TOKEN", goodSecret[:31]), "PORTAL_OPERATOR_TOKEN"},
		{one("PORTAL_OPERATOR_TOKEN", goodSecret+"\n"), "PORTAL_OPERATOR_TOKEN"},
		{one("PORTAL_OPERATOR_TOKEN", goodSecret+" "+goodSecret), "PORTAL_OPERATOR_TOKEN"},
		{one("PORTAL_LEAKS_TOKEN", goodSecret), ""},
		{one("PORTAL_LEAKS_TOKEN", goodSecret[:31]), "PORTAL_LEAKS_TOKEN"},
		{one("PORTAL_LEAKS_GITHUB_KEYS_URL", "https://api.github.com/meta/public_keys/secret_scanning"), ""},
		{one("PORTAL_LEAKS_GITHUB_KEYS_URL", "http://127.0.0.1:8090/keys?a=b"), ""},
		{one("PORTAL_LEAKS_GITHUB_KEYS_URL", "http://[::1]:8090/keys"), ""},
		// A name is not an address.
		{one("PORTAL_LEAKS_GITHUB_KEYS_URL", "http://localhost:8090/keys"), "PORTAL_LEAKS_GITHUB_KEYS_URL"},
		{one("PORTAL_LEAKS_GITHUB_KEYS_URL", "http://api.github.com/keys"), "PORTAL_LEAKS_GITHUB_KEYS_URL"},
		{one("PORTAL_LEAKS_GITLAB_KEYS_URL", "https://user:password@example.com/"), "PORTAL_LEAKS_GITLAB_KEYS_URL"},
		{one("PORTAL_LEAKS_GITLAB_KEYS_URL", "keys.json"), "PORTAL_LEAKS_GITLAB_KEYS_URL"},
		{postgres("PORTAL_SECRET", goodSecret, "PORTAL_SECRET_PREVIOUS", goodSecret), "PORTAL_SECRET_PREVIOUS"},
		{provider("https://login.example.com/realms/staff"), ""},
		{provider("https://login.example.com/"), ""},
		{provider("http://127.0.0.1:8090"), ""},
		{provider("http://localhost"), ""},
		{provider("http://login.example.com"), "PORTAL_OIDC_ISSUER"},
		{provider("https://login.example.com?tenant=1"), "PORTAL_OIDC_ISSUER"},
		{provider("https://"), "PORTAL_OIDC_ISSUER"},
		{provider(""), "PORTAL_OIDC_ISSUER"},
		{provider("https://a.b", "PORTAL_OIDC_CLIENT_ID", ""), "PORTAL_OIDC_CLIENT_ID"},
		{provider("https://a.b", "PORTAL_OIDC_CLIENT_SECRET", ""), "PORTAL_OIDC_CLIENT_SECRET"},
		{provider("https://a.b", "PORTAL_OIDC_NAME", ""), "PORTAL_OIDC_NAME"},
		{provider("https://a.b", "PORTAL_OIDC_TRUST_EMAIL", "true"), ""},
		{one("PORTAL_OIDC_TRUST_EMAIL", "true"), "PORTAL_OIDC_TRUST_EMAIL"},
		{one("PORTAL_OIDC_TRUST_EMAIL", "false"), ""},
		{provider("https://a.b", "PORTAL_PASSWORD_SIGN_IN", "off"), ""},
		{map[string]string{"PORTAL_OPERATOR_TOKEN": goodSecret, "PORTAL_PASSWORD_SIGN_IN": "off"}, ""},
		{one("PORTAL_PASSWORD_SIGN_IN", "off"), "PORTAL_PASSWORD_SIGN_IN"},
		// Passkeys remain.
		{map[string]string{"PORTAL_BASE_URL": "https://portal.example.com", "PORTAL_PASSWORD_SIGN_IN": "off"}, ""},
		{map[string]string{"PORTAL_BASE_URL": "http://localhost:8080", "PORTAL_PASSWORD_SIGN_IN": "off"}, ""},
		{map[string]string{"PORTAL_ADDR": "localhost:8080", "PORTAL_PASSWORD_SIGN_IN": "off"}, ""},
		{map[string]string{"PORTAL_BASE_URL": "https://192.0.2.1", "PORTAL_PASSWORD_SIGN_IN": "off"}, "PORTAL_PASSWORD_SIGN_IN"},
		{map[string]string{"PORTAL_BASE_URL": "http://portal.example.com", "PORTAL_PASSWORD_SIGN_IN": "off"}, "PORTAL_PASSWORD_SIGN_IN"},
		{one("PORTAL_PASSWORD_SIGN_IN", "false"), "PORTAL_PASSWORD_SIGN_IN"},
	} {
		_, found := parse(t, test.env)
		switch {
		case test.invalid == "" && len(found) > 0:
			t.Errorf("%v is refused: %q", test.env, found)
		case test.invalid != "" && (len(found) != 1 || !strings.HasPrefix(found[0], test.invalid+": ")):
			t.Errorf("%v: want one error about %s, got %q", test.env, test.invalid, found)
		}
	}
}

func TestPublicURLs(t *testing.T) {
	longName := strings.Repeat("a.", 126) + "a" // 253 characters, the most that a name can have
	for _, value := range []string{
		"http://localhost", "http://localhost:8080", "https://portal.example.com",
		"https://portal.example.com/", "https://portal.example.com.", "HTTPS://Portal.Example.com",
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
		"http://", "https:///", "https:a.b", "https:/a.b", "//a.b", "a.b", "a.b:80", "/", "http",
		"ftp://a.b", "httpss://a.b", "javascript:alert(1)",
		// Neither a host name nor an IP address.
		"http://a b", "http:// a.b", " http://a.b", "http://a.b ", "http://a.b\t", "http://a.b\n",
		"http://a.b\\c", "http://a%20b", "http://a%62c", "http://b\u00fccher.example",
		"http://b%C3%BCcher.example", `http://"a.b"`, "http://<a>", "http://a,b", "http://a;b",
		"http://a*b", "http://*.a.b", "http://.", "http://.a", "http://a..b", "http://-a.b",
		"http://a-.b", "http://${HOST}",
		"https://a" + longName, "https://" + strings.Repeat("a", 64) + ".b",
		"http://256.1.1.1", "http://1.2.3", "http://1.2.3.4.5", "http://1.2.3.4.", "http://a.1",
		"http://::1", "http://::1:8080", "http://[::1", "http://::1]", "http://[]", "http://[1.2.3.4]",
		"http://[a.b]", "http://[::1]a", "http://[fe80::1%25eth0]", "http://[fe80::1%eth0]",
	} {
		_, found := parse(t, map[string]string{"PORTAL_BASE_URL": value})
		if len(found) != 1 || !strings.HasPrefix(found[0], "PORTAL_BASE_URL: ") {
			t.Errorf("%q: want one error, got %q", value, found)
		}
	}
}

func TestUnknownNames(t *testing.T) {
	got := unknownNames([]string{"PORTAL_SECRT=hunter2", "PORTAL_ADDR=:1", "PATH=/bin", "PORTAL_A=", "DATABASE_URL=x"})
	if !slices.Equal(got, []string{"PORTAL_A", "PORTAL_SECRT"}) {
		t.Errorf("got %q", got)
	}
}

func TestREADMEListsEveryVariableAndItsDefault(t *testing.T) {
	readme := modelstest.Value(os.ReadFile("../../README.md"))(t)
	for _, field := range configFields() {
		row := regexp.MustCompile("(?m)^\\|.*`" + field.Tag.Get("env") + "`.*\\|$").FindString(string(readme))
		if row == "" || !strings.Contains(row, field.Tag.Get("default")) {
			t.Errorf("want a row on %s with its default %q, got %q", field.Tag.Get("env"), field.Tag.Get("default"), row)
		}
	}
}
