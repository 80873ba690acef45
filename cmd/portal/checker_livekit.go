package main

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"portal/models/livekit"
	"portal/models/secret"
)

// maxLiveKitName is the maximum length of LiveKit's API key and agent name in bytes.
const maxLiveKitName = 128

// liveKit returns the LiveKit server, or nil if none is configured. No message contains a value,
// because users confuse the API key and the secret.
func (c *checker) liveKit(address, apiKey, apiSecret, agentName string) *livekit.Server {
	before := len(c.errors)
	if !c.together("PORTAL_LIVEKIT_URL", address, "PORTAL_LIVEKIT_API_KEY", apiKey, "PORTAL_LIVEKIT_API_SECRET", apiSecret) {
		if agentName != "" {
			c.add("PORTAL_LIVEKIT_AGENT_NAME", "needs PORTAL_LIVEKIT_URL, PORTAL_LIVEKIT_API_KEY and PORTAL_LIVEKIT_API_SECRET; set them or unset it")
		}
		return nil
	}
	u := c.webSocket("PORTAL_LIVEKIT_URL", address)
	c.liveKitName("PORTAL_LIVEKIT_API_KEY", apiKey)
	c.liveKitName("PORTAL_LIVEKIT_AGENT_NAME", agentName)
	if apiSecret != "" && len(apiSecret) < secret.MinLength {
		c.add("PORTAL_LIVEKIT_API_SECRET", "too short: %d bytes, and at least %d are needed; LiveKit signs with it", len(apiSecret), secret.MinLength)
	}
	if len(c.errors) > before {
		return nil
	}
	return livekit.New(livekit.Options{URL: u, APIKey: apiKey, APISecret: apiSecret, AgentName: agentName})
}

// webSocket parses a URL for browsers, without credentials and a query. An empty value is ignored.
func (c *checker) webSocket(name, value string) *url.URL {
	if value == "" {
		return nil
	}
	u := serverURL(value, "?#", "wss", "ws")
	if u == nil {
		c.add(name, "invalid URL; write the scheme wss (or ws), the host and, if it is not the default, "+
			"the port, such as wss://livekit.example.com")
	}
	return u
}

// liveKitName checks a name that stands in LiveKit tokens. An empty value is ignored.
func (c *checker) liveKitName(name, value string) {
	if len(value) > maxLiveKitName || !utf8.ValidString(value) ||
		strings.ContainsFunc(value, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }) {
		c.add(name, "invalid name; use at most %d bytes without spaces and control characters", maxLiveKitName)
	}
}
