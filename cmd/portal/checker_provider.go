package main

import (
	"net"
	"net/url"
	"strings"

	"portal/handlers/portal/identity"
)

// provider returns the OpenID Connect provider of the configuration, or nil if there is none. Its
// messages do not contain the client secret.
func (c *checker) provider(given *config) *identity.Config {
	trust := c.choice("PORTAL_OIDC_TRUST_EMAIL", given.OIDCTrustEmail, "true", "false")
	claims := c.choice("PORTAL_OIDC_ACCOUNTS", given.OIDCAccounts, "claims", "off")
	if !c.together("PORTAL_OIDC_ISSUER", given.OIDCIssuer, "PORTAL_OIDC_CLIENT_ID", given.OIDCClientID,
		"PORTAL_OIDC_CLIENT_SECRET", given.OIDCClientSecret, "PORTAL_OIDC_NAME", given.OIDCName) {
		if trust {
			c.add("PORTAL_OIDC_TRUST_EMAIL", "has no effect without PORTAL_OIDC_ISSUER; set the other PORTAL_OIDC variables or unset it")
		}
		if claims {
			c.add("PORTAL_OIDC_ACCOUNTS", "has no effect without PORTAL_OIDC_ISSUER; set the other PORTAL_OIDC variables or unset it")
		}
		return nil
	}
	found := &identity.Config{ClientID: given.OIDCClientID, ClientSecret: given.OIDCClientSecret, TrustEmail: trust, Claims: claims}
	if given.OIDCIssuer != "" {
		found.Issuer = c.issuer("PORTAL_OIDC_ISSUER", given.OIDCIssuer)
	}
	if given.OIDCName != "" {
		found.Name = c.productName("PORTAL_OIDC_NAME", given.OIDCName)
	}
	c.ascii("PORTAL_OIDC_CLIENT_ID", given.OIDCClientID)
	c.ascii("PORTAL_OIDC_CLIENT_SECRET", given.OIDCClientSecret)
	return found
}

// ascii checks the credentials of a client at the provider (RFC 6749, appendix A).
func (c *checker) ascii(name, value string) {
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
		c.add(name, "must have only printable ASCII characters")
	}
}

// issuer checks the issuer of an OpenID Connect provider: an https URL without query and fragment.
// On a loopback address it may be http. The value is compared with the provider's, so it is not
// changed. Because it may contain a password, the message does not contain it.
func (c *checker) issuer(name, value string) string {
	u := serverURL(value, "?# \\", "https", "http")
	if u == nil || u.Scheme == "http" && u.Hostname() != "localhost" && !isLoopback(u) {
		c.add(name, "invalid issuer; write the provider's https URL without query, exactly as in its metadata, "+
			"such as https://login.example.com/realms/staff")
	}
	return value
}

// keysURL checks the URL of a provider's public keys: https, or http for a loopback IP address
// (not the name localhost). An empty value is valid. The message does not contain the URL, because
// it may contain a password.
func (c *checker) keysURL(name, value string) string {
	if value == "" {
		return ""
	}
	u := serverURL(value, "# \\", "https", "http")
	if u == nil || u.Scheme == "http" && !isLoopback(u) {
		c.add(name, "invalid URL; write the https URL of the provider's public keys, such as "+
			"https://api.github.com/meta/public_keys/secret_scanning")
	}
	return value
}

// isLoopback reports whether a URL's host is a loopback IP address.
func isLoopback(u *url.URL) bool { return net.ParseIP(u.Hostname()).IsLoopback() }

// choice reports whether the value is yes. Any value but yes and no is an error.
func (c *checker) choice(name, value, yes, no string) bool {
	if value != yes && value != no {
		c.add(name, "invalid value %q; write %s or %s", value, yes, no)
	}
	return value == yes
}
