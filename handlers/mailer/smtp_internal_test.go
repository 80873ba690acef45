package mailer

import (
	"net"
	"net/textproto"
	"testing"
)

// A mail server accepts a client that introduces itself by the name of a host with a domain. The
// name of a container has none.
func TestClientName(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ baseURL, sender, want string }{
		{"https://portal.example.com", "portal@mail.example.com", "portal.example.com"},
		{"https://portal.example.com.:8443", "portal@mail.example.com", "portal.example.com"},
		{"http://localhost:8080", "portal@mail.example.com", "mail.example.com"},
		{"http://192.0.2.1:8080", "portal@mail.example.com", "mail.example.com"},
		{"http://[2001:db8::1]", "portal@mail.example.com", "mail.example.com"},
		{"http://my_portal.example.com", "portal@mail.example.com", "mail.example.com"},
		{"http://15b0717dc4c2:8080", "portal@localhost", ""},
		{"http://15b0717dc4c2:8080", "Büro <portal@bücher.example>", "xn--bcher-kva.example"},
	} {
		sender, err := ParseSender(test.sender)
		if err != nil {
			t.Fatal(err)
		}
		if got := clientName(test.baseURL, sender); got != test.want {
			t.Errorf("%s, %s: %q, want %q", test.baseURL, test.sender, got, test.want)
		}
	}
	for address, want := range map[string]string{"192.0.2.1": "[192.0.2.1]", "::ffff:192.0.2.1": "[192.0.2.1]", "2001:db8::1": "[IPv6:2001:db8::1]"} {
		if got := addressLiteral(&net.TCPAddr{IP: net.ParseIP(address), Zone: "eth0"}); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}

func TestOnlyARefusedMailboxIsFinal(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		code int
		text string
		at   string // RCPT or DATA
		want bool
	}{
		{550, "5.1.1 <bob@example.com>: User unknown", "RCPT", true},
		{550, "5.1.1 The account does not exist\n5.1.1 Try another one", "RCPT", true},
		{550, "5.1.2 Domain not found", "RCPT", true},
		{550, "5.1.10 Recipient's domain has a null MX", "RCPT", true},
		{553, "5.1.3 Not a valid address", "RCPT", true},
		{550, "5.2.1 Mailbox disabled", "RCPT", true},
		{550, "5.1.1 User unknown", "DATA", true},
		{553, "Mailbox name not allowed", "RCPT", true},
		{550, "sorry, no mailbox here by that name. (#5.1.1)", "RCPT", true},

		{450, "5.1.1 User unknown", "RCPT", false},
		{550, "4.1.1 User unknown", "RCPT", false},
		{504, "5.5.2 <15b0717dc4c2>: Helo command rejected: need fully-qualified hostname", "RCPT", false},
		{550, "5.1.0 <portal@example.com>: Sender address rejected: User unknown", "RCPT", false},
		{550, "5.1.8 <portal@example.com>: Sender address rejected: Domain not found", "RCPT", false},
		{552, "5.2.2 Mailbox full", "RCPT", false},
		{552, "Mailbox full", "RCPT", false},
		{550, "5.4.5 Daily user sending limit exceeded", "DATA", false},
		{554, "5.7.1 Relay access denied", "RCPT", false},
		{553, "5.7.1 Sender address rejected: not owned by user", "RCPT", false},
		{553, "sorry, that domain isn't in my list of allowed rcpthosts (#5.7.1)", "RCPT", false},
		{550, "Invalid recipient", "RCPT", false}, // OpenSMTPD for a client that must not relay
		{553, "Content not allowed", "DATA", false},
		{554, "Transaction failed", "DATA", false},
	} {
		if got := isAboutMailbox(&textproto.Error{Code: test.code, Msg: test.text}, test.at == "RCPT"); got != test.want {
			t.Errorf("%d %s: %t", test.code, test.text, got)
		}
	}
}
