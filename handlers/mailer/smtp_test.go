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
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// A server that refuses the password gets no mail, and the log does not have the password.
func TestRefusedPassword(t *testing.T) {
	t.Parallel()
	s := newSystem(t, modelstest.SQLiteURL(t))
	server := mailertest.Start(t, "--password", "another secret", "--certificate", trusted.sign(t, remote))
	s.queue(t, "ada@example.com")
	m, _ := s.run(t, s.Store, "smtp://portal:a%20secret@"+remote+":"+server.Port)
	eventually(t, "an attempt fails", func() bool { return m.Stats().Failed > 0 })
	line := s.log.LineWith("a mail was not sent and will be tried again")
	if !strings.Contains(line, "responded 535") || strings.Contains(s.log.String(), "secret") || s.waiting(t) != 1 {
		t.Errorf("%d mails wait, the log has %s", s.waiting(t), line)
	}
}
