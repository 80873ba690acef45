package webhooks

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"code.dny.dev/ssrf"
	"golang.org/x/net/idna"
)

var (
	// ErrAddress means that the portal sends no webhooks to the address.
	ErrAddress = errors.New("the address is not allowed")
	// ErrOwnAddress means that the address is one of the portal itself.
	ErrOwnAddress = errors.New("the address is one of the portal itself")
)

// Guard decides which URLs and addresses webhooks may be sent to. The zero value allows public
// addresses.
type Guard struct {
	// Networks are allowed although they are not public. In those of loopback addresses, http
	// is allowed too.
	Networks []netip.Prefix
	// Own are the addresses that the portal listens on, which are never allowed.
	Own []netip.AddrPort
	// BaseURL is the URL of the portal, whose host and port are never allowed; nil: none.
	BaseURL *url.URL
}

// MaxURL is the largest length of a URL, in bytes.
const MaxURL = 500

// CheckURL returns a message for the user unless webhooks may be sent to the URL, as far as the
// text tells. It resolves nothing.
func (g *Guard) CheckURL(text string) (message string) {
	if len(text) > MaxURL {
		return "The URL is longer than 500 characters."
	}
	parsed, err := url.Parse(text)
	host := ""
	// A host that is percent-encoded in the text is not in it.
	if err == nil && strings.Contains(text, parsed.Host) {
		host = asciiHost(parsed.Hostname())
	}
	address, notLiteral := netip.ParseAddr(host)
	switch {
	case host == "" || !isPort(portOf(parsed)) || strings.ContainsFunc(text, isUnseen):
		return "Enter a URL, such as https://example.com/webhooks."
	case parsed.User != nil:
		return "The URL must not have a user name or a password."
	case parsed.Fragment != "" || strings.Contains(text, "#"):
		return "The URL must not have a fragment (#)."
	case parsed.Scheme != "https" && (parsed.Scheme != "http" || !g.allowsHTTP(host, address)):
		return "The URL must begin with https://."
	case g.isBase(host, parsed):
		return "The URL leads to the portal itself."
	case notLiteral == nil && g.check(address) != nil, notLiteral != nil && isNumber(host):
		return "The portal does not send webhooks to this address."
	}
	return ""
}

// isUnseen reports whether a character is white space, invisible or none, or changes the order of
// others.
func isUnseen(r rune) bool {
	return r == ' ' || r == utf8.RuneError || !unicode.IsPrint(r) || r == '\u2800' || // the blank of Braille
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// asciiHost returns a host in the form in which net/http resolves it. It returns "" if there is
// none, or if a host in ASCII alone is written with other characters, such as full-width digits.
func asciiHost(host string) string {
	if !strings.ContainsFunc(host, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return host
	}
	ascii, err := idna.Lookup.ToASCII(host)
	if err != nil || !strings.Contains(ascii, "xn--") {
		return ""
	}
	return ascii
}

// isNumber reports whether browsers and other programs read a host that is no [netip.Addr] as an
// IPv4 address, such as 2130706433 or 127.1. No top-level domain is a number.
func isNumber(host string) bool {
	last := host[strings.LastIndexByte(strings.TrimSuffix(host, "."), '.')+1:]
	_, err := strconv.ParseUint(strings.TrimSuffix(last, "."), 0, 64)
	return err == nil
}

// allowsHTTP reports whether a host is a loopback address in an allowed network.
func (g *Guard) allowsHTTP(host string, address netip.Addr) bool {
	if address.IsValid() {
		return address.Unmap().IsLoopback() && g.allowed(address.Unmap())
	}
	return strings.EqualFold(host, "localhost") &&
		slices.ContainsFunc(g.Networks, func(n netip.Prefix) bool { return n.Addr().IsLoopback() })
}

// isBase reports whether a URL with this host in ASCII has the host and port of the portal's own.
func (g *Guard) isBase(host string, u *url.URL) bool {
	return g.BaseURL != nil && strings.EqualFold(strings.TrimSuffix(host, "."), asciiHost(g.BaseURL.Hostname())) && portOf(u) == portOf(g.BaseURL)
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "http":
		return "80"
	}
	return "443"
}

func isPort(text string) bool {
	port, err := strconv.ParseUint(text, 10, 16)
	return err == nil && port > 0
}

// Control is the Control of a [net.Dialer]: it sees each address that is dialed, after the name was
// resolved. Unencrypted means that the URL begins with http.
func (g *Guard) Control(unencrypted bool) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		dialed, err := netip.ParseAddrPort(address)
		if err != nil {
			return ErrAddress
		}
		if g.isOwn(dialed) {
			return ErrOwnAddress
		}
		if unencrypted && !dialed.Addr().Unmap().IsLoopback() {
			return ErrAddress
		}
		return g.check(dialed.Addr())
	}
}

// guardian knows IANA's registries of special-purpose addresses.
var guardian = ssrf.New(ssrf.WithAnyPort())

// check returns [ErrAddress] unless an address is public or in an allowed network. An IPv6 address
// that stands for an IPv4 address is judged by that.
func (g *Guard) check(address netip.Addr) error {
	address = embedded(address.WithZone("").Unmap())
	if g.allowed(address) || guardian.SafeAddr(address) == nil {
		return nil
	}
	return ErrAddress
}

func (g *Guard) allowed(address netip.Addr) bool {
	return slices.ContainsFunc(g.Networks, func(network netip.Prefix) bool { return network.Contains(address) })
}

var (
	nat64  = netip.MustParsePrefix("64:ff9b::/96") // RFC 6052
	sixTo4 = netip.MustParsePrefix("2002::/16")    // RFC 3056
)

// embedded returns the IPv4 address in an address of NAT64 or 6to4, and others as they are.
func embedded(address netip.Addr) netip.Addr {
	bytes := address.As16()
	switch {
	case nat64.Contains(address):
		return netip.AddrFrom4([4]byte(bytes[12:]))
	case sixTo4.Contains(address):
		return netip.AddrFrom4([4]byte(bytes[2:6]))
	}
	return address
}

// isOwn reports whether the portal listens on an address.
func (g *Guard) isOwn(dialed netip.AddrPort) bool {
	ip := embedded(dialed.Addr().WithZone("").Unmap())
	return slices.ContainsFunc(g.Own, func(own netip.AddrPort) bool {
		return own.Port() == dialed.Port() && (own.Addr().Unmap() == ip || own.Addr().IsUnspecified() && isLocal(ip))
	})
}

// isLocal reports whether an address is one of this machine.
func isLocal(ip netip.Addr) bool {
	if ip.IsLoopback() || ip.IsUnspecified() {
		return true
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	return slices.ContainsFunc(addresses, func(address net.Addr) bool {
		prefix, err := netip.ParsePrefix(address.String())
		return err == nil && prefix.Addr().Unmap() == ip
	})
}
