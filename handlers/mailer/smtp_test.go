package mailer_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/smtp"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"portal/handlers/mailer"
	"portal/handlers/mailer/mailertest"
	"portal/models/modelstest"
)

// trusted signs the certificates that the process trusts. A process reads its authorities once, so
// all tests have the same one.
var trusted authority

func TestMain(m *testing.M) {
	if err := trustAuthority(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	modelstest.Main(m)
}

// trustAuthority makes the process trust a new authority, as the operators' guide says.
func trustAuthority() (err error) {
	if trusted, err = newAuthority(); err != nil {
		return err
	}
	directory, err := os.MkdirTemp("", "portal-mailer-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	file := filepath.Join(directory, "authority.pem")
	if err := os.WriteFile(file, trusted.pem(), 0o600); err != nil {
		return err
	}
	if err := os.Setenv("SSL_CERT_FILE", file); err != nil {
		return err
	}
	_, err = x509.SystemCertPool() // reads the file
	return err
}

// authority is a certificate authority.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority() (authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Authority of the tests"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return authority{}, err
	}
	certificate, err := x509.ParseCertificate(der)
	return authority{certificate, key}, err
}

func (a authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// sign returns a file with a certificate for a host, and its key.
func (a authority) sign(t *testing.T, host string) string {
	t.Helper()
	key := modelstest.Value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: a.certificate.NotBefore, NotAfter: a.certificate.NotAfter,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	modelstest.Must(t, err)
	secret := modelstest.Value(x509.MarshalPKCS8PrivateKey(key))(t)
	file := filepath.Join(t.TempDir(), "server.pem")
	modelstest.Must(t, os.WriteFile(file, append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})...), 0o600))
	return file
}

// remote reaches this machine and is no loopback address, so that the mailer treats it like
// another machine.
const remote = "0.0.0.0"

// transport is how a server is reached.
type transport struct {
	scheme      string // of the URL
	certificate string // file; empty: the server has no TLS
	fromStart   bool   // the server uses TLS from the start
}

// send queues a mail and sends it to a new server, which requires a password.
func (s *system) send(t *testing.T, to transport, host string) (server *mailertest.Server, failures func() uint64) {
	t.Helper()
	arguments := []string{"--password", "a secret"}
	if to.certificate != "" {
		arguments = append(arguments, "--certificate", to.certificate)
	}
	if to.fromStart {
		arguments = append(arguments, "--smtps")
	}
	server = mailertest.Start(t, arguments...)
	s.queue(t, "ada@example.com")
	m, _ := s.run(t, s.Store, to.scheme+"://portal:a%20secret@"+host+":"+server.Port)
	return server, func() uint64 { return m.Stats().Failed }
}

// To this machine, a password may be sent without TLS.
func TestPasswordIsSent(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		transport
		host string
	}{
		"STARTTLS":     {transport{scheme: "smtp", certificate: trusted.sign(t, remote)}, remote},
		"smtps":        {transport{scheme: "smtps", certificate: trusted.sign(t, remote), fromStart: true}, remote},
		"this machine": {transport{scheme: "smtp"}, "127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, _ := newSystem(t, modelstest.SQLiteURL(t)).send(t, test.transport, test.host)
			if mail := server.Await(1)[0]; mail.TLS != (test.certificate != "") || mail.User != "portal" {
				t.Errorf("TLS %t, user %q", mail.TLS, mail.User)
			}
		})
	}
}

// A server on this machine may offer STARTTLS and have no certificate.
func TestServerOfThisMachineThatRefusesSTARTTLS(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]mailer.Stats{"127.0.0.1": {Sent: 1}, remote: {Failed: 1}} {
		server := mailertest.Start(t, "--no-starttls")
		s := newSystem(t, modelstest.SQLiteURL(t))
		s.queue(t, "ada@example.com")
		m, stop := s.run(t, s.Store, "smtp://"+host+":"+server.Port)
		eventually(t, "an attempt ends", func() bool { return m.Stats() != (mailer.Stats{}) })
		stop()
		if m.Stats() != want {
			t.Errorf("%s: %+v, the log has %s", host, m.Stats(), s.log)
		}
	}
}

// A server without a valid certificate gets neither the password nor the mail, and the mail waits.
func TestPasswordIsNotSentToAnUnknownServer(t *testing.T) {
	t.Parallel()
	unknown := modelstest.Value(newAuthority())(t)
	for name, test := range map[string]struct {
		transport
		host, cause string
	}{
		"STARTTLS, unknown authority":         {transport{scheme: "smtp", certificate: unknown.sign(t, remote)}, remote, "certificate signed by unknown authority"},
		"STARTTLS, another name":              {transport{scheme: "smtp", certificate: trusted.sign(t, "mail.example.com")}, remote, "certificate"},
		"STARTTLS, another name, own machine": {transport{scheme: "smtp", certificate: trusted.sign(t, "mail.example.com")}, "127.0.0.1", "certificate"},
		"smtps, unknown authority":            {transport{scheme: "smtps", certificate: unknown.sign(t, remote), fromStart: true}, remote, "certificate signed by unknown authority"},
		"smtps, another name":                 {transport{scheme: "smtps", certificate: trusted.sign(t, "mail.example.com"), fromStart: true}, remote, "certificate"},
		"smtps, no TLS":                       {transport{scheme: "smtps"}, remote, "tls"},
		"no STARTTLS":                         {transport{scheme: "smtp"}, remote, "STARTTLS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSystem(t, modelstest.SQLiteURL(t))
			server, failures := s.send(t, test.transport, test.host)
			eventually(t, "an attempt fails", func() bool { return failures() > 0 })
			if server.Passwords() != 0 || len(server.Mails()) != 0 || s.waiting(t) != 1 {
				t.Errorf("%d passwords and %d mails were sent, %d wait", server.Passwords(), len(server.Mails()), s.waiting(t))
			}
			line := s.log.LineWith("a mail was not sent and will be tried again")
			if !strings.Contains(line, "connect: ") || !strings.Contains(line, test.cause) || strings.Contains(line, "secret") {
				t.Errorf("the log has %s, want %q", line, test.cause)
			}
		})
	}
}

// A server gets the password by PLAIN or LOGIN, whatever else it offers. If it refuses one, it gets
// the other in the same connection, or in another one if it has ended the first. The next mail
// begins with what the server has accepted.
func TestMechanismsAreTriedInOrder(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name      string
		offered   string
		accepted  string
		arguments []string
		tried     []string // for two mails
	}{
		{name: "hashed passwords", offered: "CRAM-MD5 DIGEST-MD5 PLAIN LOGIN", accepted: "PLAIN LOGIN", tried: []string{"PLAIN", "PLAIN"}},
		{name: "NTLM", offered: "GSSAPI NTLM LOGIN", accepted: "LOGIN", tried: []string{"LOGIN", "LOGIN"}},
		{name: "small letters", offered: "LOGIN", accepted: "LOGIN", arguments: []string{"--small"}, tried: []string{"LOGIN", "LOGIN"}},
		{name: "as before RFC 2554", offered: "PLAIN", accepted: "PLAIN", arguments: []string{"--announce", "AUTH="}, tried: []string{"PLAIN", "PLAIN"}},
		{name: "PLAIN is refused", offered: "LOGIN PLAIN", accepted: "LOGIN", tried: []string{"PLAIN", "LOGIN", "LOGIN"}},
		{
			name: "a refusal ends the connection", offered: "LOGIN PLAIN", accepted: "LOGIN", arguments: []string{"--hang-up"},
			tried: []string{"PLAIN", "LOGIN", "LOGIN"},
		},
	} {
		for _, to := range []struct {
			host      string
			arguments []string
		}{
			{host: remote, arguments: []string{"--certificate", trusted.sign(t, remote)}},
			{host: "127.0.0.1"},
		} {
			if to.host == remote && len(test.tried) < 3 {
				continue // of one mechanism each, as without TLS
			}
			t.Run(test.name+", "+to.host, func(t *testing.T) {
				t.Parallel()
				s := newSystem(t, modelstest.SQLiteURL(t))
				arguments := slices.Concat(to.arguments, test.arguments,
					[]string{"--password", "a secret", "--offer", test.offered, "--accept", test.accepted})
				server := mailertest.Start(t, arguments...)
				for _, email := range []string{"ada@example.com", "bob@example.com"} {
					s.queue(t, email)
				}
				s.run(t, s.Store, "smtp://portal:a%20secret@"+to.host+":"+server.Port)
				if user := server.Await(2)[1].User; user != "portal" || !slices.Equal(server.Mechanisms(), test.tried) {
					t.Errorf("user %q, tried %q, want %q", user, server.Mechanisms(), test.tried)
				}
			})
		}
	}
}

// A server that takes the password in no way that the portal knows never gets it.
func TestUnknownMechanismsAreNotTried(t *testing.T) {
	t.Parallel()
	s := newSystem(t, modelstest.SQLiteURL(t))
	server := mailertest.Start(t, "--password", "a secret", "--offer", "CRAM-MD5 NTLM")
	s.queue(t, "ada@example.com")
	m, _ := s.run(t, s.Store, "smtp://portal:a%20secret@127.0.0.1:"+server.Port)
	eventually(t, "an attempt fails", func() bool { return m.Stats().Failed > 0 })
	line := s.log.LineWith("a mail was not sent and will be tried again")
	if !strings.Contains(line, "offers AUTH CRAM-MD5 NTLM, and the portal can use PLAIN and LOGIN") || len(server.Mechanisms()) > 0 {
		t.Errorf("tried %q, the log has %s", server.Mechanisms(), line)
	}
}

// A server that refuses the password gets no mail, and the log does not have the password.
func TestRefusedPassword(t *testing.T) {
	t.Parallel()
	s := newSystem(t, modelstest.SQLiteURL(t))
	server := mailertest.Start(t, "--password", "another secret", "--certificate", trusted.sign(t, remote))
	s.queue(t, "ada@example.com")
	m, _ := s.run(t, s.Store, "smtp://portal:a%20secret@"+remote+":"+server.Port)
	eventually(t, "an attempt fails", func() bool { return m.Stats().Failed > 0 })
	line := s.log.LineWith("a mail was not sent and will be tried again")
	if !strings.Contains(line, "connect: the SMTP server responded 535 5.7.8 to AUTH PLAIN, and 535 5.7.8 to AUTH LOGIN") || strings.Contains(s.log.String(), "secret") || s.waiting(t) != 1 {
		t.Errorf("%d mails wait, the log has %s", s.waiting(t), line)
	}
}

// Real servers take a mail, refuse a mailbox for good, and refuse to relay, which the portal takes
// for a mistake of its operator's.
func TestMailServersOfDebian(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		return // the servers are for Linux
	}
	for name, responses := range map[string][]string{
		"postfix":   {"status=sent", "recipient: the SMTP server responded 550 5.1.1", "recipient: the SMTP server responded 554 5.7.1"},
		"opensmtpd": {"result=Ok", "recipient: the SMTP server responded 524 5.2.4", `recipient: the SMTP server responded 550"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := mailertest.StartDebian(t, name)
			s := newSystem(t, modelstest.SQLiteURL(t))
			for _, email := range []string{"ada@example.com", "nobody@example.com", "bob@elsewhere.example"} {
				s.queue(t, email)
			}
			m, _ := s.run(t, s.Store, "smtp://127.0.0.1:"+server.Port)
			eventually(t, "all mails are tried", func() bool {
				stats := m.Stats()
				return stats.Sent+stats.Failed+stats.Dropped == 3
			})
			if m.Stats() != (mailer.Stats{Sent: 1, Failed: 1, Dropped: 1}) {
				t.Errorf("%+v", m.Stats())
			}
			eventually(t, "the mail is delivered", func() bool { return strings.Contains(server.Log.String(), responses[0]) })
			for event, response := range map[string]string{
				"a mail was dropped": responses[1], "a mail was not sent and will be tried again": responses[2],
			} {
				if line := s.log.LineWith(event); !strings.Contains(line, response) {
					t.Errorf("the log has %s, want %s", line, response)
				}
			}
		})
	}
}

// The name of a container does not introduce a client to Postfix.
func TestPostfixRefusesTheNameOfAContainer(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		return // the server is for Linux
	}
	server := mailertest.StartDebian(t, "postfix")
	client := modelstest.Value(smtp.Dial("127.0.0.1:" + server.Port))(t)
	modelstest.Must(t, client.Hello("15b0717dc4c2"))
	modelstest.Must(t, client.Mail("portal@example.com"))
	if err := client.Rcpt("ada@example.com"); err == nil || !strings.Contains(err.Error(), "5.5.2") {
		t.Errorf("the server responded %v", err)
	}
	modelstest.Must(t, client.Quit())
}
