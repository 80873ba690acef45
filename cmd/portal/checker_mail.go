package main

import (
	"net/mail"

	"portal/handlers/mailer"
)

// mail parses the SMTP server and the sender, which are both set or both empty. The messages do not
// contain the URL, because it may contain a password.
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
