package main

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"portal/handlers/api"
	"portal/models"
)

// checker reads the values of a configuration and collects what is wrong with them.
type checker struct {
	found problems
}

// err returns what was found as an error, nil if that is nothing.
func (c *checker) err() error {
	if len(c.found) == 0 {
		return nil
	}
	return c.found
}

func (c *checker) add(name, format string, args ...any) {
	c.found = append(c.found, name+": "+fmt.Sprintf(format, args...))
}

// duration reads a value such as 10m and keeps it between the two limits, both included.
func (c *checker) duration(name, value string, least, most time.Duration) time.Duration {
	d, err := time.ParseDuration(value)
	switch {
	case err != nil:
		c.add(name, "%q is no duration; write a number with its unit, such as 90s, 10m or 12h", value)
	case d < least || d > most:
		c.add(name, "%q is outside %s to %s; choose a duration within", value, short(least), short(most))
	}
	return d
}

// short writes a whole number of hours, minutes or seconds without the zeros of time.Duration's own form.
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

// address checks a listen address: a host, which may be empty for all of them, and a port.
func (c *checker) address(name, value string) string {
	_, port, err := net.SplitHostPort(value)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		c.add(name, "%q is no listen address; write host:port, such as 127.0.0.1:8080 or 0.0.0.0:8080", value)
	}
	return value
}

// origin reads a public URL, which is a scheme and a host: every path of the portal starts at its root. Its value is in
// no message: it may hold a password.
func (c *checker) origin(name, value string) *url.URL {
	u, err := url.Parse(value)
	// Compared as a whole, so that nothing else is there: not even an empty query, which a parsed URL hardly tells.
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") ||
		!strings.EqualFold(strings.TrimSuffix(value, "/"), u.Scheme+"://"+u.Host) || !isHost(u) {
		c.add(name, "it is no public URL; write scheme and host alone, and a port if it is not the scheme's own, such as https://portal.example.com")
		return nil
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host}
}

const longestName = 253 // characters (RFC 1035, section 2.3.4)

var (
	// hostName has an underscore too, which DNS knows and names of containers have.
	hostName = regexp.MustCompile(`^(?i:[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.|$))+$`)
	// inNumbers is what browsers take for an IPv4 address or nothing.
	inNumbers = regexp.MustCompile(`(^|\.)[0-9]+\.?$`)
)

// isHost reports whether a URL's host is one that can be gone to: a name or an IP address, and a port if there is a colon.
func isHost(u *url.URL) bool {
	name, port := u.Hostname(), u.Port()
	if number, err := strconv.ParseUint(port, 10, 16); strings.HasSuffix(u.Host, ":") || port != "" && (err != nil || number == 0) {
		return false
	}
	ip, err := netip.ParseAddr(name)
	if strings.HasPrefix(u.Host, "[") {
		return err == nil && ip.Is6() && ip.Zone() == "" // a zone means something on one machine alone
	}
	if inNumbers.MatchString(name) {
		return err == nil
	}
	return len(name) <= longestName && hostName.MatchString(name)
}

// networks reads networks in CIDR form, separated by commas or spaces.
func (c *checker) networks(name, value string) []string {
	var all []string
	for field := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == ',' || r == ' ' }) {
		network, err := netip.ParsePrefix(field)
		if err != nil {
			c.add(name, "%q is no network; write networks in CIDR form with commas between, such as 10.0.0.0/8,192.0.2.7/32", field)
			continue
		}
		all = append(all, network.Masked().String())
	}
	return all
}

// rate reads requests a second and burst, such as 50:100, or off.
func (c *checker) rate(name, value string) api.RateLimit {
	if value == "off" {
		return api.RateLimit{}
	}
	perSecond, burst, _ := strings.Cut(value, ":")
	limit := api.RateLimit{PerSecond: positive(perSecond), Burst: positive(burst)}
	if limit.PerSecond == 0 || limit.Burst == 0 {
		c.add(name, "%q is no rate; write requests per second and burst, such as 50:100, or off", value)
	}
	return limit
}

// positive reads a whole number of 1 to a million; anything else is 0.
func positive(value string) int {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > 1_000_000 {
		return 0
	}
	return n
}

// secret checks a secret's length. Its value is in no message.
func (c *checker) secret(name, value string) string {
	if value != "" && len(value) < leastSecret {
		c.add(name, "it has %d bytes and needs at least %d; make one with: openssl rand -hex 32", len(value), leastSecret)
	}
	return value
}

// database checks a database URL, which may hold a password and is therefore in no message.
func (c *checker) database(url string) database {
	if err := models.CheckDatabaseURL(url); err != nil {
		c.add("DATABASE_URL", "%s", err)
		return database{}
	}
	d := database{url: url}
	if path, ok := models.SQLitePath(url); ok {
		d.directory = filepath.Dir(path)
	}
	return d
}
