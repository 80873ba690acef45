package value

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"portal/models/usage"
)

// maxKeyNetworks is the maximum number of networks of a key.
const maxKeyNetworks = 20

// ParseNetworks returns the networks with these texts, such as 192.0.2.0/24 or 2001:db8::1, without
// repetitions. Empty texts are ignored. The error may be an [*InvalidError] for the field
// "networks", which names every wrong text.
func ParseNetworks(texts []string) ([]netip.Prefix, error) {
	networks := []netip.Prefix{}
	var wrong, hosts []string
	for _, text := range texts {
		text = strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || Hidden(r) })
		if text == "" {
			continue
		}
		network, ok := ParseNetwork(text)
		switch {
		case !ok:
			wrong = append(wrong, strconv.Quote(shorten(text)))
		case network != network.Masked():
			hosts = append(hosts, fmt.Sprintf("%s isn’t a network address. Did you mean %s?", network, network.Masked()))
		case !slices.Contains(networks, network):
			networks = append(networks, network)
		}
	}
	const examples = "such as 192.0.2.0/24 or 2001:db8::1."
	switch {
	case len(wrong) == 1:
		hosts = append([]string{wrong[0] + " is not an IP address or network, " + examples}, hosts...)
	case len(wrong) > 1:
		hosts = append([]string{someOf(wrong, ", ") + " are not IP addresses or networks, " + examples}, hosts...)
	}
	if len(hosts) > 0 {
		return nil, invalidNetworks(someOf(hosts, " "))
	}
	if len(networks) == 0 || len(networks) > maxKeyNetworks {
		return nil, invalidNetworks(fmt.Sprintf("Enter 1 to %d networks. You entered %d.", maxKeyNetworks, len(networks)))
	}
	return networks, nil
}

// someOf joins texts. Of more than a key can have networks, it counts the rest.
func someOf(texts []string, separator string) string {
	if rest := len(texts) - maxKeyNetworks; rest > 0 {
		texts = append(texts[:maxKeyNetworks:maxKeyNetworks], fmt.Sprintf("and %d more", rest))
	}
	return strings.Join(texts, separator)
}

// ParseNetwork returns the network with this text. An address is the network of this address alone,
// and an IPv4 address in IPv6 notation is IPv4.
func ParseNetwork(text string) (netip.Prefix, bool) {
	network, err := netip.ParsePrefix(text)
	if err != nil {
		address, err := netip.ParseAddr(text)
		if err != nil || address.Zone() != "" {
			return netip.Prefix{}, false
		}
		network = netip.PrefixFrom(address, address.BitLen())
	}
	if network.Addr().Is4In6() {
		if network.Bits() < 96 {
			return netip.Prefix{}, false
		}
		network = netip.PrefixFrom(network.Addr().Unmap(), network.Bits()-96)
	}
	return network, true
}

func invalidNetworks(message string) error { return &InvalidError{"networks", message} }

// shorten returns the start of an input for a message.
func shorten(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), 64)], "")
}

// Network returns the [usage.Network] of an address. Other text is returned unchanged.
func Network(address string) string { return prefix(address, 128) }

// Site returns the largest network that one attacker usually controls: the IPv4 address, or the /48
// network of an IPv6 address. Other text is returned unchanged.
func Site(address string) string { return prefix(address, 48) }

// prefix returns the [usage.Network] of an address, or the network around it with a shorter length.
func prefix(address string, bits int) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	client := usage.Network(ip)
	return netip.PrefixFrom(client.Addr(), min(client.Bits(), bits)).Masked().String()
}

// Contains reports whether one of the networks contains an address.
func Contains(networks []netip.Prefix, address netip.Addr) bool {
	address = address.Unmap().WithZone("")
	return slices.ContainsFunc(networks, func(network netip.Prefix) bool { return network.Contains(address) })
}
