package main

import (
	"fmt"
	"log/slog"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"portal/handlers/brand"
	"portal/handlers/mailer"
	"portal/handlers/middleware"
	"portal/models/database"
	"portal/models/secret"
	"portal/models/widget"
	"portal/models/workload"
)

// checker parses the values of a configuration and collects the errors.
type checker struct {
	errors inputErrors
}

// err returns all errors as one, or nil if there is none.
func (c *checker) err() error {
	if len(c.errors) == 0 {
		return nil
	}
	return c.errors
}

func (c *checker) add(name, format string, args ...any) {
	c.errors = append(c.errors, name+": "+fmt.Sprintf(format, args...))
}

// together checks that all values of a group are set, or none, and reports whether one is. The
// arguments are the names of variables and their values in turn.
func (c *checker) together(group ...string) bool {
	var names, missing []string
	for pair := range slices.Chunk(group, 2) {
		names = append(names, pair[0])
		if pair[1] == "" {
			missing = append(missing, pair[0])
		}
	}
	if len(missing) == len(names) {
		return false
	}
	for _, name := range missing {
		c.add(name, "missing; set %s together, or none of them", strings.Join(names, ", "))
	}
	return true
}

// duration parses a duration such as 10m, from least to most inclusive.
func (c *checker) duration(name, value string, least, most time.Duration) time.Duration {
	d, err := time.ParseDuration(value)
	switch {
	case err != nil:
		c.add(name, "invalid duration %q; write a number with its unit, such as 90s, 10m or 12h", value)
	case d < least || d > most:
		c.add(name, "%q is out of range; choose a duration from %s to %s", value, short(least), short(most))
	}
	return d
}

// maxKeyDays keeps an expiry within the years that every client can read.
const maxKeyDays = 100 * 365

// days parses whole days or hours above zero, such as 90d. An empty value is 0.
func (c *checker) days(name, value string) time.Duration {
	if value == "" {
		return 0
	}
	count, unit := strings.CutSuffix(value, "d")
	hours := 24
	if !unit {
		count, hours = strings.TrimSuffix(value, "h"), 1
	}
	n, err := strconv.ParseUint(count, 10, 32)
	if err != nil || count == value || n == 0 || int(n)*hours > 24*maxKeyDays {
		c.add(name, "invalid lifetime %q; write whole days or hours above zero, such as 90d or 8760h", value)
		return 0
	}
	return time.Duration(int(n)*hours) * time.Hour
}

// short formats a duration without the trailing zeros of Duration.String, such as 1h for 1h0m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// address checks a listen address: a host, which may be empty, and a port.
func (c *checker) address(name, value string) string {
	_, port, err := net.SplitHostPort(value)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		c.add(name, "invalid listen address %q; write host:port, such as 127.0.0.1:8080 or 0.0.0.0:8080", value)
	}
	return value
}

// origin parses a public URL, which is a scheme and a host without a path. Because the value may
// contain a password, the message does not contain it.
func (c *checker) origin(name, value string) *url.URL {
	u := serverURL(value, "", "http", "https")
	// Comparing the whole value also refuses an empty query or fragment.
	if u == nil || !strings.EqualFold(strings.TrimSuffix(value, "/"), u.Scheme+"://"+u.Host) {
		c.add(name, "invalid public URL; write only the scheme, the host and, if it is not the default, the port, such as "+
			"https://portal.example.com")
		return nil
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host}
}

const longestName = 253 // characters (RFC 1035, section 2.3.4)

var (
	// hostName allows underscores, which occur in names of containers.
	hostName = regexp.MustCompile(`^(?i:[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.|$))+$`)
	// numericEnd matches names that browsers parse as an IPv4 address or refuse.
	numericEnd = regexp.MustCompile(`(^|\.)[0-9]+\.?$`)
)

// serverURL parses a URL with one of the schemes and a host. If value is no such URL, or has an @
// or one of the characters in forbidden, serverURL returns nil. An @ ends credentials, even where
// a character of a password that is not percent-encoded has cut them short.
func serverURL(value, forbidden string, schemes ...string) *url.URL {
	u, err := url.Parse(value)
	if err != nil || !slices.Contains(schemes, u.Scheme) || !isHost(u) || strings.ContainsAny(value, "@"+forbidden) {
		return nil
	}
	return u
}

// isHost reports whether a URL's host is a name or an IP address, with a valid port after a colon.
func isHost(u *url.URL) bool {
	name, port := u.Hostname(), u.Port()
	if number, err := strconv.ParseUint(port, 10, 16); strings.HasSuffix(u.Host, ":") || port != "" && (err != nil || number == 0) {
		return false
	}
	ip, err := netip.ParseAddr(name)
	if strings.HasPrefix(u.Host, "[") {
		// A zone is valid on one machine only.
		return err == nil && ip.Is6() && ip.Zone() == ""
	}
	if numericEnd.MatchString(name) {
		return err == nil
	}
	return len(name) <= longestName && hostName.MatchString(name)
}

// networks parses networks in CIDR form, separated by commas or spaces.
func (c *checker) networks(name, value string) (all []netip.Prefix) {
	for field := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == ',' || r == ' ' }) {
		network, err := netip.ParsePrefix(field)
		if err != nil {
			c.add(name, "invalid network %q; write networks in CIDR form, separated by commas, such as 10.0.0.0/8,192.0.2.7/32", field)
			continue
		}
		all = append(all, network)
	}
	return all
}

// exactNetworks parses networks whose host bits are zero.
func (c *checker) exactNetworks(name, value string) []netip.Prefix {
	return slices.DeleteFunc(c.networks(name, value), func(network netip.Prefix) bool {
		if network == network.Masked() {
			return false
		}
		c.add(name, "the host bits of %s are not zero; write %s", network, network.Masked())
		return true
	})
}

// issuers parses the URLs of issuers, separated by commas or spaces, or off.
func (c *checker) issuers(name, value string) (issuers workload.Issuers) {
	if value == "off" {
		return workload.Issuers{Off: true}
	}
	for field := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == ',' || r == ' ' }) {
		if u := serverURL(field, "?#", "https", "http"); u == nil || !workload.CheckIssuer(field, true) {
			c.add(name, "must be off, or https URLs without credentials and a query, separated by commas; http is for loopback addresses only")
			continue
		}
		issuers.Own = append(issuers.Own, field)
	}
	return issuers
}

// rate parses requests per second and burst, such as 50:100, or off.
func (c *checker) rate(name, value string) middleware.RateLimit {
	if value == "off" {
		return middleware.RateLimit{}
	}
	perSecond, burst, _ := strings.Cut(value, ":")
	limit := middleware.RateLimit{PerSecond: positive(perSecond), Burst: positive(burst)}
	if limit.PerSecond == 0 || limit.Burst == 0 {
		c.add(name, "invalid rate %q; write requests per second and burst, such as 50:100, or off", value)
	}
	return limit
}

// algorithms parses one or more algorithms of widget tokens, separated by commas.
func (c *checker) algorithms(name, value string) []widget.Algorithm {
	var all []widget.Algorithm
	for field := range strings.SplitSeq(value, ",") {
		algorithm := widget.Algorithm(strings.TrimSpace(field))
		if !slices.Contains(widget.Algorithms(), algorithm) || slices.Contains(all, algorithm) {
			c.add(name, "invalid algorithms %q; write EdDSA or ES256, or both with a comma, the one that signs first", value)
			return nil
		}
		all = append(all, algorithm)
	}
	return all
}

var logLevels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
}

func (c *checker) logLevel(name, value string) slog.Level {
	level, ok := logLevels[value]
	if !ok {
		c.add(name, "invalid level %q; write debug, info, warn or error", value)
	}
	return level
}

// count parses a number from 1 to 1,000,000.
func (c *checker) count(name, value string) int {
	n := positive(value)
	if n == 0 {
		c.add(name, "invalid number %q; write a number from 1 to 1000000", value)
	}
	return n
}

// positive parses a number from 1 to 1,000,000, and returns 0 for anything else.
func positive(value string) int {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > 1_000_000 {
		return 0
	}
	return n
}

// maxProductName is the maximum length of the product's name in characters.
const maxProductName = 40

// productName returns the trimmed name, which must be one short line.
func (c *checker) productName(name, value string) string {
	value = strings.TrimSpace(value)
	if length := utf8.RuneCountInString(value); length == 0 || length > maxProductName ||
		!utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl) {
		c.add(name, "invalid name %q; use 1 to %d characters without control characters", value, maxProductName)
	}
	return value
}

// brand reads the logo and computes the shades of the accent color.
func (c *checker) brand(given *config) brand.Brand {
	found := brand.Brand{HomeURL: c.link("PORTAL_HOME_URL", given.HomeURL, "https", "http")}
	var err error
	if given.Logo != "" {
		if found.Logo, err = brand.ReadLogo(given.Logo); err != nil {
			c.add("PORTAL_LOGO", "%s", err)
		}
	}
	if given.Accent != "" {
		if found.Accent, err = brand.NewAccent(given.Accent); err != nil {
			c.add("PORTAL_ACCENT", "%s", err)
		}
	}
	return found
}

const maxNotice = 200

// notice returns the trimmed text, which must be one line. An empty value is valid.
func (c *checker) notice(name, value string) string {
	value = strings.TrimSpace(value)
	if length := utf8.RuneCountInString(value); length > maxNotice || strings.ContainsFunc(value, unicode.IsControl) {
		c.add(name, "invalid text of %d characters; use at most %d, without control characters", length, maxNotice)
	}
	return value
}

// link checks a URL with one of the schemes. An empty value is valid. The message does not contain
// the URL, because it may contain a password.
func (c *checker) link(name, value string, schemes ...string) string {
	if value == "" {
		return ""
	}
	u, err := url.Parse(value)
	switch {
	case err != nil || !slices.Contains(schemes, u.Scheme),
		u.Scheme == "mailto" && !strings.Contains(u.Opaque, "@"),
		u.Scheme != "mailto" && !isHost(u),
		strings.ContainsFunc(value, unicode.IsSpace):
		c.add(name, "invalid URL; use a URL that begins with %s:", strings.Join(schemes, ": or "))
	}
	return value
}

// receiver is link for a server whose URL may have a user and a password.
func (c *checker) receiver(name, value string, schemes ...string) string {
	if u, err := url.Parse(value); err == nil && cutsPassword(u) {
		c.add(name, "invalid URL; percent-encode special characters in the user and the password, such as / as %%2F")
		return value
	}
	return c.link(name, value, schemes...)
}

// cutsPassword reports whether a character of a password that is not percent-encoded has ended the
// host of a URL, so that the end of the password and the real host are in the path or after it.
func cutsPassword(u *url.URL) bool {
	return strings.Contains(u.Opaque+u.EscapedPath()+u.RawQuery+u.EscapedFragment(), "@")
}

// proxies checks the URLs of proxies for the connections to other servers, as net/http reads them.
// Its errors contain the URL, which may have a password.
func (c *checker) proxies() {
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"} {
		value := os.Getenv(name)
		u, err := url.Parse(value)
		if err != nil || u.Scheme == "" || u.Host == "" {
			u, err = url.Parse("http://" + value)
		}
		if err != nil || cutsPassword(u) {
			c.add(name, "invalid URL of a proxy; write http://user:password@proxy.example.com:3128, with special characters "+
				"percent-encoded, such as in the password @ as %%40, / as %%2F and %% as %%25")
		}
	}
}

// secret checks the length of a secret. The message does not contain the value.
func (c *checker) secret(name, value string) string {
	if value != "" && len(value) < secret.MinLength {
		c.add(name, "too short: %d bytes, and at least %d are needed; generate one with: openssl rand -hex 32", len(value), secret.MinLength)
	}
	return value
}

// token checks a secret that clients send in a header.
func (c *checker) token(name, value string) string {
	if strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) {
		c.add(name, "must have only ASCII letters, digits and punctuation, because clients send it in a header; generate one with: openssl rand -hex 32")
		return value
	}
	return c.secret(name, value)
}

// previousToken checks the token that clients may still send while they change to the token of the
// variable name.
func (c *checker) previousToken(name, current, value string) string {
	if value != "" && current == "" {
		c.add(name+"_PREVIOUS", "%s is not set; set it to the new token, or unset both", name)
	}
	return c.token(name+"_PREVIOUS", value)
}

// database checks a database URL. The message does not contain it, because it may contain a
// password.
func (c *checker) database(url string) databaseConfig {
	if err := database.CheckURL(url); err != nil {
		c.add("DATABASE_URL", "%s", err)
		return databaseConfig{}
	}
	d := databaseConfig{url: url}
	if path, ok := database.SQLitePath(url); ok {
		d.directory = filepath.Dir(path)
	}
	return d
}

// mail parses the SMTP server and the sender, which are both set or both empty. Because the URL may
// contain a password, the messages do not contain it.
func (c *checker) mail(server, from string) (mailer.Server, *mail.Address) {
	if !c.together("PORTAL_SMTP_URL", server, "PORTAL_MAIL_FROM", from) {
		return mailer.Server{}, nil
	}
	parsed, err := mailer.ParseServer(server)
	if server != "" && err != nil {
		c.add("PORTAL_SMTP_URL", "%s", err)
	}
	sender, err := mailer.ParseSender(from)
	if from != "" && err != nil {
		c.add("PORTAL_MAIL_FROM", "%s", err)
	}
	return parsed, sender
}
