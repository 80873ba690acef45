package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"portal/handlers/middleware"
	"portal/models/database"
	"portal/models/secret"
	"portal/models/value"
	"portal/models/widget"
	"portal/models/workload"
)

// The functions in this file parse the values of settings, which are not empty. Their errors say
// what to write instead. If a value may contain a secret, the error has no part of it.

// shown returns a value for an error about it, after a space. A long one and a URL may have a
// secret, so it returns "" for them.
func shown(value string) string {
	if len(value) > 24 || strings.Contains(value, "@") || strings.Contains(value, "://") {
		return ""
	}
	return " " + strconv.Quote(value)
}

// duration returns a function that parses a duration such as 10m, from least to most inclusive.
func duration(least, most time.Duration) func(string) (time.Duration, error) {
	return func(value string) (time.Duration, error) {
		d, err := time.ParseDuration(value)
		switch {
		case err != nil:
			return 0, fmt.Errorf("invalid duration%s; write a number with its unit, such as 90s, 10m or 12h", shown(value))
		case d < least || d > most:
			return 0, fmt.Errorf("%q is out of range; choose a duration from %s to %s", value, short(least), short(most))
		}
		return d, nil
	}
}

// maxKeyDays keeps an expiry within the years that every client can read.
const maxKeyDays = 100 * 365

// days parses whole days or hours above zero, such as 90d.
func days(value string) (time.Duration, error) {
	count, unit := strings.CutSuffix(value, "d")
	hours := 24
	if !unit {
		count, hours = strings.TrimSuffix(value, "h"), 1
	}
	n, err := strconv.ParseUint(count, 10, 32)
	if err != nil || count == value || n == 0 || int(n)*hours > 24*maxKeyDays {
		return 0, fmt.Errorf("invalid lifetime%s; write whole days or hours above zero, such as 90d or 8760h", shown(value))
	}
	return time.Duration(int(n)*hours) * time.Hour, nil
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
func address(value string) (string, error) {
	_, port, err := net.SplitHostPort(value)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return "", fmt.Errorf("invalid listen address%s; write host:port, such as 127.0.0.1:8080 or 0.0.0.0:8080", shown(value))
	}
	return value, nil
}

// origin parses a public URL, which is a scheme and a host without a path. Because the value may
// contain a password, the error does not contain it.
func origin(value string) (*url.URL, error) {
	u := serverURL(value, "", "http", "https")
	// Comparing the whole value also refuses an empty query or fragment. A passkey's host has no
	// dot at its end.
	if u == nil || !strings.EqualFold(strings.TrimSuffix(value, "/"), u.Scheme+"://"+u.Host) || strings.HasSuffix(u.Hostname(), ".") {
		return nil, errors.New("invalid public URL; write only the scheme, the host and, if it is not the default, the port, such as " +
			"https://portal.example.com")
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host}, nil
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
	valid := err == nil && slices.Contains(schemes, u.Scheme) && isHost(u)
	if !valid || strings.ContainsAny(value, "@"+forbidden) {
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

// isLocal reports whether a URL's host is localhost or a loopback IP address.
func isLocal(u *url.URL) bool { return u.Hostname() == "localhost" || isLoopback(u) }

// isLoopback reports whether a URL's host is a loopback IP address.
func isLoopback(u *url.URL) bool { return net.ParseIP(u.Hostname()).IsLoopback() }

// fields returns the parts of a list that are separated by commas or spaces.
func fields(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })
}

// networks parses networks in CIDR form.
func networks(list string) (all []netip.Prefix, err error) {
	for _, field := range fields(list) {
		network, ok := value.ParseNetwork(field)
		if !ok || !strings.Contains(field, "/") {
			return nil, fmt.Errorf("invalid network%s; write networks in CIDR form, separated by commas, such as 10.0.0.0/8,192.0.2.7/32", shown(field))
		}
		all = append(all, network)
	}
	return all, nil
}

// exactNetworks parses networks whose host bits are zero.
func exactNetworks(value string) ([]netip.Prefix, error) {
	all, err := networks(value)
	for _, network := range all {
		if network != network.Masked() {
			return nil, fmt.Errorf("the host bits of %s are not zero; write %s", network, network.Masked())
		}
	}
	return all, err
}

// issuers parses the URLs of issuers, or off.
func issuers(value string) (all workload.Issuers, err error) {
	if value == "off" {
		return workload.Issuers{Off: true}, nil
	}
	for _, field := range fields(value) {
		if u := serverURL(field, "?#", "https", "http"); u == nil || !workload.CheckIssuer(field, true) || isMetadata(field) {
			return all, errors.New("must be off, or https URLs without credentials, a query and /.well-known/, separated by commas; http is for loopback addresses only")
		}
		all.Own = append(all.Own, field)
	}
	return all, nil
}

// rate parses requests per second and burst, such as 50:100, or off.
func rate(value string) (middleware.RateLimit, error) {
	if value == "off" {
		return middleware.RateLimit{}, nil
	}
	perSecond, burst, _ := strings.Cut(value, ":")
	limit := middleware.RateLimit{PerSecond: positive(perSecond), Burst: positive(burst)}
	if limit.PerSecond == 0 || limit.Burst == 0 {
		return limit, fmt.Errorf("invalid rate%s; write requests per second and burst, such as 50:100, or off", shown(value))
	}
	return limit, nil
}

// algorithms parses one or more algorithms of widget tokens, separated by commas.
func algorithms(value string) ([]widget.Algorithm, error) {
	var all []widget.Algorithm
	for field := range strings.SplitSeq(value, ",") {
		algorithm := widget.Algorithm(strings.TrimSpace(field))
		if !slices.Contains(widget.Algorithms(), algorithm) || slices.Contains(all, algorithm) {
			return nil, fmt.Errorf("invalid algorithms%s; write EdDSA or ES256, or both with a comma, the one that signs first", shown(value))
		}
		all = append(all, algorithm)
	}
	return all, nil
}

var logLevels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
}

func logLevel(value string) (slog.Level, error) {
	level, ok := logLevels[value]
	if !ok {
		return level, fmt.Errorf("invalid level%s; write debug, info, warn or error", shown(value))
	}
	return level, nil
}

// choice returns a function that reports whether the value is yes. Any value but yes and no is an
// error.
func choice(yes, no string) func(string) (bool, error) {
	return func(value string) (bool, error) {
		if value != yes && value != no {
			return false, fmt.Errorf("invalid value%s; write %s or %s", shown(value), yes, no)
		}
		return value == yes, nil
	}
}

// count parses a number from 1 to 1,000,000.
func count(value string) (int, error) {
	n := positive(value)
	if n == 0 {
		return 0, fmt.Errorf("invalid number%s; write a number from 1 to 1000000", shown(value))
	}
	return n, nil
}

// positive parses a number from 1 to 1,000,000, and returns 0 for anything else.
func positive(value string) int {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > 1_000_000 {
		return 0
	}
	return n
}

// The maximum lengths of the product's name and of the notice, in characters.
const (
	maxProductName = 40
	maxNotice      = 200
)

// shortText returns a function that checks the length of a text, which is a name or a sentence.
func shortText(what string, most int) func(string) (string, error) {
	return func(value string) (string, error) {
		if length := utf8.RuneCountInString(value); length > most {
			return "", fmt.Errorf("invalid %s of %d characters; use at most %d", what, length, most)
		}
		return value, nil
	}
}

// link returns a function that checks a URL with one of the schemes. The error does not contain
// the URL, because it may contain a password.
func link(schemes ...string) func(string) (string, error) {
	return func(value string) (string, error) {
		u, err := url.Parse(value)
		switch {
		case err != nil || !slices.Contains(schemes, u.Scheme),
			u.Scheme == "mailto" && !strings.Contains(u.Opaque, "@"),
			u.Scheme != "mailto" && !isHost(u),
			strings.ContainsFunc(value, unicode.IsSpace):
			return "", fmt.Errorf("invalid URL; use a URL with the scheme %s", strings.Join(schemes, " or "))
		}
		return value, nil
	}
}

// receiver is link for a server whose URL may have a user and a password.
func receiver(value string) (string, error) {
	if u, err := url.Parse(value); err == nil && cutsPassword(u) {
		return "", errors.New("invalid URL; percent-encode special characters in the user and the password, such as / as %2F")
	}
	return link("http", "https")(value)
}

// cutsPassword reports whether a character of a password that is not percent-encoded has ended the
// host of a URL, so that the end of the password and the real host are in the path or after it.
func cutsPassword(u *url.URL) bool {
	return strings.Contains(u.Opaque+u.EscapedPath()+u.RawQuery+u.EscapedFragment(), "@")
}

// secretText returns a function that checks the length of a secret. The advice ends the error.
func secretText(advice string) func(string) (string, error) {
	return func(value string) (string, error) {
		if len(value) < secret.MinLength {
			return "", fmt.Errorf("too short: %d bytes, and at least %d are needed; %s", len(value), secret.MinLength, advice)
		}
		return value, nil
	}
}

// generate says how to get a secret.
const generate = "generate one with: openssl rand -hex 32"

// token checks a secret that clients send in a header.
func token(value string) (string, error) {
	if strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", errors.New("must have only ASCII letters, digits and punctuation, because clients send it in a header; " + generate)
	}
	return secretText(generate)(value)
}

func databaseURL(value string) (databaseConfig, error) {
	if err := database.CheckURL(value); err != nil {
		return databaseConfig{}, err
	}
	d := databaseConfig{url: value}
	if path, ok := database.SQLitePath(value); ok {
		d.directory = filepath.Dir(path)
	}
	return d, nil
}

// ascii checks the credentials of a client at an OpenID Connect provider (RFC 6749, appendix A).
func ascii(value string) (string, error) {
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "", errors.New("must have only printable ASCII characters")
	}
	return value, nil
}

// issuer checks the issuer of an OpenID Connect provider: an https URL without query and fragment.
// On a loopback address it may be http. The value is compared with the provider's, so it is not
// changed. Because it may contain a password, the error does not contain it.
func issuer(value string) (string, error) {
	u := serverURL(value, "?# \\", "https", "http")
	if u == nil || u.Scheme == "http" && !isLocal(u) || isMetadata(value) {
		return "", errors.New("invalid issuer; write the provider's https URL without query and /.well-known/, exactly as in its metadata, " +
			"such as https://login.example.com/realms/staff")
	}
	return value, nil
}

// isMetadata reports whether a URL is that of an issuer's metadata, and not of the issuer.
func isMetadata(issuer string) bool { return strings.Contains(issuer, "/.well-known/") }

// keysURL checks the URL of a provider's public keys: https, or http for a loopback IP address
// (not the name localhost). The error does not contain the URL, because it may contain a password.
func keysURL(value string) (string, error) {
	u := serverURL(value, "# \\", "https", "http")
	if u == nil || u.Scheme == "http" && !isLoopback(u) {
		return "", errors.New("invalid URL; write the https URL of the provider's public keys, such as " +
			"https://api.github.com/meta/public_keys/secret_scanning")
	}
	return value, nil
}

// webSocketURL parses a URL for browsers, without credentials and a query.
func webSocketURL(value string) (*url.URL, error) {
	u := serverURL(value, "?#", "wss", "ws")
	if u == nil {
		return nil, errors.New("invalid URL; write the scheme wss (or ws), the host and, if it is not the default, " +
			"the port, such as wss://livekit.example.com")
	}
	return u, nil
}

// maxLiveKitName is the maximum length of LiveKit's API key and agent name in bytes.
const maxLiveKitName = 128

// liveKitName checks a name that stands in LiveKit tokens. The error does not contain the value,
// because users confuse the API key and the secret.
func liveKitName(value string) (string, error) {
	if len(value) > maxLiveKitName || strings.ContainsFunc(value, unicode.IsSpace) {
		return "", fmt.Errorf("invalid name; use at most %d bytes without spaces", maxLiveKitName)
	}
	return value, nil
}

// databaseConfig is the parsed DATABASE_URL.
type databaseConfig struct {
	url       string
	directory string // of the SQLite file; empty with PostgreSQL
}

func (d databaseConfig) isPostgres() bool { return d.url != "" && d.directory == "" }

// problems collects the errors of a configuration.
type problems struct {
	lines inputErrors
}

// err returns all errors as one, or nil if there is none.
func (p *problems) err() error {
	if len(p.lines) == 0 {
		return nil
	}
	return p.lines
}

// add adds the error of a variable, unless it has one.
func (p *problems) add(name, format string, args ...any) {
	if slices.ContainsFunc(p.lines, func(line string) bool { return strings.HasPrefix(line, name+": ") }) {
		return
	}
	p.lines = append(p.lines, name+": "+fmt.Sprintf(format, args...))
}

// together checks that all variables of a group are set, or none, and reports whether one is.
func (p *problems) together(values map[string]string, names ...string) bool {
	missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return values[name] != "" })
	if len(missing) == len(names) {
		return false
	}
	for _, name := range missing {
		p.add(name, "missing; set %s together, or none of them", strings.Join(names, ", "))
	}
	return true
}
