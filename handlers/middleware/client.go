package middleware

import (
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/gin-gonic/gin"
)

const (
	clientKey    = "middleware.client"
	forwardedFor = "X-Forwarded-For"
)

// Client is where a request comes from.
type Client struct {
	// Address is the client's. It is zero if Peer is a trusted proxy and the entry of
	// X-Forwarded-For that decides is no address.
	Address netip.Addr
	// Peer is the other end of the connection: the client or a proxy.
	Peer netip.Addr
}

// FindClient finds the client of each request for [ClientOf]. Nothing else may read the address of
// a client. Only trusted proxies may name another client than themselves.
func FindClient(trusted []netip.Prefix) gin.HandlerFunc {
	return func(c *gin.Context) {
		client := Client{Peer: peerOf(c.Request.RemoteAddr)}
		client.Address = client.Peer
		if isIn(trusted, client.Peer) {
			if header := c.Request.Header.Values(forwardedFor); len(header) > 0 {
				client.Address = forwardedAddress(strings.Join(header, ","), trusted)
			}
		}
		c.Set(clientKey, client)
	}
}

// WarnOfForwarders logs a warning for the first request with an X-Forwarded-For header from a peer
// that is in none of these networks. It is probably a proxy that the settings do not name, so that
// all clients behind it have one address. [FindClient] must have run.
func WarnOfForwarders(trusted []netip.Prefix, logger *slog.Logger) gin.HandlerFunc {
	var warned atomic.Bool
	return func(c *gin.Context) {
		if len(c.Request.Header[forwardedFor]) == 0 || warned.Load() {
			return
		}
		if peer := ClientOf(c).Peer; !isIn(trusted, peer) && warned.CompareAndSwap(false, true) {
			logger.WarnContext(c.Request.Context(),
				"a peer that is not in PORTAL_TRUSTED_PROXIES sends X-Forwarded-For, which is ignored; if it is your proxy, add its network",
				slog.String("peer", peer.String()))
		}
	}
}

// ClientOf returns the client of a request, which is the zero value if [FindClient] has not run.
func ClientOf(c *gin.Context) Client {
	value, _ := c.Get(clientKey)
	client, _ := value.(Client)
	return client
}

// Nearest returns the client's address or, if that is unknown, the proxy's: for limits.
func (c Client) Nearest() netip.Addr {
	if c.Address.IsValid() {
		return c.Address
	}
	return c.Peer
}

// String returns the text of the nearest address, or "" if there is none.
func (c Client) String() string {
	if nearest := c.Nearest(); nearest.IsValid() {
		return nearest.String()
	}
	return ""
}

// forwardedAddress returns the last address of X-Forwarded-For that is not of a trusted proxy, or
// the first one if all are. If an entry after it is no address, it returns the zero address: each
// proxy appends one entry, and what stands before an unknown one may be invented.
func forwardedAddress(header string, trusted []netip.Prefix) (address netip.Addr) {
	for _, entry := range slices.Backward(strings.Split(header, ",")) {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		if address = parseEntry(entry); !isIn(trusted, address) {
			return address
		}
	}
	return address
}

// parseEntry returns the address of an entry of X-Forwarded-For, which some proxies write with a
// port, in quotes or with a zone, or the zero address.
func parseEntry(entry string) netip.Addr {
	entry = strings.TrimSpace(strings.Trim(entry, `"`))
	host := entry
	if rest, bracketed := strings.CutPrefix(entry, "["); bracketed {
		inner, port, closed := strings.Cut(rest, "]")
		if !closed || port != "" && port[0] != ':' {
			return netip.Addr{}
		}
		host = inner
	} else if strings.Count(entry, ":") == 1 {
		host, _, _ = strings.Cut(entry, ":")
	}
	address, _ := netip.ParseAddr(host)
	return plain(address)
}

// peerOf returns the address in a [net/http.Request.RemoteAddr].
func peerOf(remote string) netip.Addr {
	peer, _ := netip.ParseAddrPort(remote)
	return plain(peer.Addr())
}

// plain returns an address in the form in which networks contain it.
func plain(address netip.Addr) netip.Addr { return address.Unmap().WithZone("") }

func isIn(networks []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(address) })
}
