package middleware

import (
	"context"
	"log/slog"
	"net/netip"
	"sync/atomic"

	"github.com/gin-gonic/gin"
)

// WarnOfForwarders logs a warning for the first request with an X-Forwarded-For header from a peer
// that is in none of these networks. It is probably a proxy that the settings do not name, so that
// all clients behind it have one address.
func WarnOfForwarders(trusted []netip.Prefix, logger *slog.Logger) gin.HandlerFunc {
	var warned atomic.Bool
	return func(c *gin.Context) {
		if len(c.Request.Header["X-Forwarded-For"]) > 0 && !warned.Load() {
			peer := c.RemoteIP()
			if !isTrusted(peer, trusted) && warned.CompareAndSwap(false, true) {
				logger.LogAttrs(context.WithoutCancel(c.Request.Context()), slog.LevelWarn,
					"a peer that is not in PORTAL_TRUSTED_PROXIES sends X-Forwarded-For, which is ignored; if it is your proxy, add its network",
					slog.String("peer", peer))
			}
		}
		c.Next()
	}
}

func isTrusted(peer string, trusted []netip.Prefix) bool {
	address, err := netip.ParseAddr(peer)
	for _, network := range trusted {
		if err == nil && network.Contains(address.Unmap()) {
			return true
		}
	}
	return false
}
