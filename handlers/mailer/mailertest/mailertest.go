// Package mailertest runs a real SMTP server for tests.
package mailertest

import (
	"bytes"
	"context"
	_ "embed" // for the server
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"portal/models/modelstest"
	"portal/models/modelstest/subprocess"
)

//go:embed server.py
var server string

// Server is an SMTP server in a process of its own. It refuses mails to refused@, later@ and
// addresses such as rcpt-550-5.7.1@ and data-554@, whose responses begin with these codes. It
// accepts mails to lost@ and then ends the connection without a response.
type Server struct {
	*subprocess.Child

	Port string

	t              testing.TB
	output, errors *modelstest.LogBuffer
}

// Start starts a server with the arguments of server.py. It is killed at the end of the test.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	command := exec.Command(modelstest.Value(python())(t), append([]string{"-c", server}, args...)...) //nolint:gosec,noctx // the server above; Kill ends it
	s := &Server{t: t, output: &modelstest.LogBuffer{}, errors: &modelstest.LogBuffer{}}
	command.Stdout, command.Stderr = s.output, s.errors
	var err error
	if s.Child, err = subprocess.Start(command); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	modelstest.Eventually(t, "the SMTP server listens", func() bool {
		line, _, complete := strings.Cut(s.output.String(), "\n")
		s.Port = line
		select {
		case <-s.Exited():
			t.Fatalf("the SMTP server has exited: %s", s.errors)
		default:
		}
		return complete
	})
	return s
}

// python returns a Python that has aiosmtpd.
var python = sync.OnceValues(func() (string, error) {
	for _, candidate := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(context.Background(), candidate, "-c", "import aiosmtpd").Run() == nil { //nolint:gosec // a constant
			return candidate, nil
		}
	}
	return "", errors.New("no Python with aiosmtpd; install it (Debian: apt-get install python3-aiosmtpd)")
})

// URL returns the URL of the server without TLS.
func (s *Server) URL() string { return "smtp://127.0.0.1:" + s.Port }

// Passwords returns how many passwords the server has received.
func (s *Server) Passwords() int { return strings.Count(s.errors.String(), "password received") }

// Mechanisms returns the mechanisms with which clients have tried to sign in, in order.
func (s *Server) Mechanisms() []string {
	var mechanisms []string
	for line := range strings.Lines(s.errors.String()) {
		if mechanism, ok := strings.CutPrefix(strings.TrimSpace(line), "AUTH "); ok {
			mechanisms = append(mechanisms, mechanism)
		}
	}
	return mechanisms
}

// Mail is a mail that the server has accepted.
type Mail struct {
	From  string   // of the envelope
	To    []string // of the envelope
	TLS   bool
	Hello string // the name by which the client has introduced itself
	User  string // who has signed in to the server
	UTF8  bool   // the client asks for SMTPUTF8

	Header     mail.Header
	Subject    string
	Text, HTML string
	Raw        string

	Picture   []byte // nil: none
	PictureID string
}

// ID returns the Message-ID.
func (m Mail) ID() string { return m.Header.Get("Message-Id") }

// Mails returns the mails that the server has accepted, in order.
func (s *Server) Mails() []Mail {
	s.t.Helper()
	var mails []Mail
	lines := strings.SplitAfter(s.output.String(), "\n")
	for _, line := range lines[1:] {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		var accepted struct {
			Mail

			Data string
		}
		if err := json.Unmarshal([]byte(line), &accepted); err != nil {
			s.t.Fatal(err)
		}
		if err := parse(&accepted.Mail, accepted.Data); err != nil {
			s.t.Fatalf("%v: %s", err, accepted.Data)
		}
		mails = append(mails, accepted.Mail)
	}
	return mails
}

// Await returns the first n mails as soon as the server has accepted them.
func (s *Server) Await(n int) []Mail {
	s.t.Helper()
	modelstest.Eventually(s.t, fmt.Sprintf("%d mails arrive", n), func() bool { return len(s.Mails()) >= n })
	return s.Mails()[:n]
}

// parse sets the header and the two versions of the body.
func parse(m *Mail, data string) error {
	message, err := mail.ReadMessage(strings.NewReader(data))
	if err != nil {
		return err
	}
	m.Raw, m.Header = data, message.Header
	if m.Subject, err = new(mime.WordDecoder).DecodeHeader(message.Header.Get("Subject")); err != nil {
		return err
	}
	return parseParts(m, message.Header.Get("Content-Type"), message.Body)
}

// parseParts reads the parts of a multipart body. A picture is read as the only thing that is no
// text.
func parseParts(m *Mail, contentType string, content io.Reader) error { //nolint:gocognit // a case for each kind of part
	_, parameters, err := mime.ParseMediaType(contentType)
	if err != nil {
		return err
	}
	parts := multipart.NewReader(content, parameters["boundary"])
	for {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		partType := part.Header.Get("Content-Type")
		if strings.HasPrefix(partType, "multipart/") {
			if err := parseParts(m, partType, part); err != nil {
				return err
			}
			continue
		}
		if strings.HasPrefix(partType, "image/") {
			m.PictureID = strings.Trim(part.Header.Get("Content-Id"), "<>")
			if m.Picture, err = io.ReadAll(base64.NewDecoder(base64.StdEncoding, part)); err != nil {
				return err
			}
			continue
		}
		var body bytes.Buffer
		if _, err := io.Copy(&body, quotedprintable.NewReader(part)); err != nil {
			return err
		}
		text := strings.ReplaceAll(body.String(), "\r\n", "\n")
		if strings.HasPrefix(partType, "text/html") {
			m.HTML = text
		} else {
			m.Text = text
		}
	}
}
