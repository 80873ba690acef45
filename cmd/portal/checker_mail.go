package main

import (
	"net/mail"

	"portal/handlers/mailer"
)

// mail parses the SMTP server and the sender, which are both set or both empty. The messages do not
// contain the URL, because it may contain a password.
func (c *checker) mail(server, from string) (mailer.Server, *mail.Address) {
	if server == "" && from == "" {
		return mailer.Server{}, nil
	}
	parsed, err := mailer.ParseServer(server)
	if server == "" {
		c.add("PORTAL_SMTP_URL", "required with PORTAL_MAIL_FROM; set both or neither")
	} else if err != nil {
		c.add("PORTAL_SMTP_URL", "%s", err)
	}
	sender, err := mailer.ParseSender(from)
	if from == "" {
		c.add("PORTAL_MAIL_FROM", "required with PORTAL_SMTP_URL; set both or neither")
	} else if err != nil {
		c.add("PORTAL_MAIL_FROM", "%s", err)
	}
	return parsed, sender
}
