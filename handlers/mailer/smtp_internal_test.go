package mailer

import (
	"bytes"
	"net"
	"net/mail"
	"net/textproto"
	"testing"

	"portal/models/record"
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

// Recipients see the sender's name as the operator has written it.
func TestNameOfTheSender(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"portal@example.com":                          "Voice",
		"<portal@example.com>":                        "Voice",
		"Acme <portal@example.com>":                   "Acme",
		`"Acme, Inc." <portal@example.com>`:           "Acme, Inc.",
		"Acme, Inc. <portal@example.com>":             "Acme, Inc.",
		"Acme: Voice <portal@example.com>":            "Acme: Voice",
		`"Acme \"Voice\" \\ Co" <portal@example.com>`: `Acme "Voice" \ Co`,
		"=?UTF-8?Q?=C3=84cme?= <portal@example.com>":  "Äcme",
		"Äcme, 日本 <portal@example.com>":               "Äcme, 日本",
	} {
		sender, err := ParseSender(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		m, err := New(Config{From: sender, Product: "Voice", BaseURL: "https://portal.example.com"})
		if err != nil {
			t.Fatal(err)
		}
		message, err := m.message(record.Mail{Kind: record.ActionPasswordReset, Recipient: "ada@example.com"}, "")
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var sent bytes.Buffer
		if _, err := message.WriteTo(&sent); err != nil {
			t.Fatal(err)
		}
		read, err := mail.ReadMessage(&sent)
		if err != nil {
			t.Fatal(err)
		}
		from, err := read.Header.AddressList("From")
		if err != nil || len(from) != 1 || from[0].Name != want || from[0].Address != "portal@example.com" {
			t.Errorf("%s: %+v, %v", text, from, err)
		}
	}
	for _, text := range []string{"", "Acme", "Acme, Inc. <portal>", "Acme <a@example.com>, Bob <b@example.com>", "a@example.com, b@example.com"} {
		if sender, err := ParseSender(text); err == nil {
			t.Errorf("%s: %+v", text, sender)
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
