package mailer

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/mail"
	"net/netip"
	"net/textproto"
	"net/url"
	"strconv"
	"time"

	gomail "github.com/wneessen/go-mail"
)

// stepTimeout limits the dial and each mail on its connection, and is shorter than the lease of a
// claimed mail.
const stepTimeout = 30 * time.Second

// defaultPorts are the ports of the schemes of a server's URL.
var defaultPorts = map[string]string{"smtp": "587", "smtps": "465"}

// Server is an SMTP server that accepts mails for delivery. It holds a password, so it has no
// exported fields and is not printed.
type Server struct {
	options func() (host string, options []gomail.Option)
}

// ParseServer parses a URL such as smtp://user:password@mail.example.com:587. The scheme smtp
// requires STARTTLS, except on a loopback address or with ?tls=off. The scheme smtps uses TLS from
// the start. No error contains the URL.
func ParseServer(value string) (Server, error) {
	u, err := url.Parse(value)
	if err != nil || defaultPorts[u.Scheme] == "" || u.Hostname() == "" || u.Path != "" && u.Path != "/" || u.Fragment != "" {
		return Server{}, errors.New("invalid SMTP URL; use smtp://user:password@mail.example.com:587 " +
			"or smtps://user:password@mail.example.com, with special characters percent-encoded, such as in the password " +
			"@ as %40, / as %2F and % as %25")
	}
	plain := u.Scheme == "smtp" && u.RawQuery == "tls=off"
	if u.RawQuery != "" && !plain {
		return Server{}, errors.New("the only parameter of an SMTP URL is ?tls=off, and only with the scheme smtp; percent-encode special characters in the user and the password")
	}
	port, err := strconv.Atoi(cmp.Or(u.Port(), defaultPorts[u.Scheme]))
	if err != nil || port < 1 || port > 65535 {
		return Server{}, errors.New("invalid port in the SMTP URL")
	}
	password, _ := u.User.Password()
	user := u.User.Username()
	if (user == "") != (password == "") {
		return Server{}, errors.New("the SMTP URL must have both a user and a password, or neither; percent-encode special characters")
	}
	loopback := isLoopback(u.Hostname())
	if user != "" && plain && !loopback {
		return Server{}, errors.New("the SMTP URL must not turn TLS off, because it has a password")
	}
	return Server{func() (string, []gomail.Option) {
		options := []gomail.Option{
			gomail.WithPort(port), gomail.WithTimeout(stepTimeout), encryption(u, plain),
			gomail.WithTLSConfig(&tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12}),
		}
		if user != "" {
			options = append(options, gomail.WithUsername(user), gomail.WithPassword(password))
			method := gomail.SMTPAuthAutoDiscover
			if loopback && u.Scheme == "smtp" {
				// It refuses to send a password without TLS, except to this
				// machine.
				method = gomail.SMTPAuthPlain
			}
			options = append(options, gomail.WithSMTPAuth(method))
		}
		return u.Hostname(), options
	}}, nil
}

// encryption returns the option for TLS.
func encryption(u *url.URL, plain bool) gomail.Option {
	switch {
	case u.Scheme == "smtps":
		return gomail.WithSSL()
	case plain:
		return gomail.WithTLSPolicy(gomail.NoTLS)
	case isLoopback(u.Hostname()):
		return gomail.WithTLSPolicy(gomail.TLSOpportunistic)
	default:
		return gomail.WithTLSPolicy(gomail.TLSMandatory)
	}
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// ParseSender parses the address of the sender, with or without a name.
func ParseSender(value string) (*mail.Address, error) {
	sender, err := mail.ParseAddress(value)
	if err != nil {
		return nil, errors.New("invalid email address; use portal@example.com or Portal <portal@example.com>")
	}
	return sender, nil
}

// deliver hands one mail over to the server, and returns nil only after the server has accepted it.
// After the end of ctx, deliver does not start to send the mail.
func (s Server) deliver(ctx context.Context, message *gomail.Msg) error {
	host, options := s.options()
	client, err := gomail.NewClient(host, options...)
	if err != nil {
		return fmt.Errorf("configure the SMTP client: %w", err)
	}
	connection, err := client.DialToSMTPClientWithContext(ctx)
	if err == nil {
		defer func() { _ = client.CloseWithSMTPClient(connection) }()
		err = ctx.Err()
	}
	if err != nil {
		return &deliveryError{stage: "connect", cause: err}
	}
	err = client.SendWithSMTPClient(connection, message)
	if err == nil || message.IsDelivered() {
		return nil // a later error does not undo the acceptance
	}
	return sendError(err)
}

// deliveryError says why the server has not accepted a mail. Its text contains no email address,
// because servers repeat addresses in their responses.
type deliveryError struct {
	stage     string
	code      int  // of the server's response; 0 without a response
	permanent bool // a retry would get the same response
	cause     error
}

func (e *deliveryError) Error() string {
	if e.code != 0 {
		return fmt.Sprintf("%s: the SMTP server responded %d", e.stage, e.code)
	}
	if response, ok := errors.AsType[*textproto.Error](e.cause); ok {
		return fmt.Sprintf("%s: the SMTP server responded %d", e.stage, response.Code)
	}
	return fmt.Sprintf("%s: %v", e.stage, e.cause)
}

// sendError returns the error of a mail on an open connection.
func sendError(err error) error {
	failed, ok := errors.AsType[*gomail.SendError](err)
	if !ok {
		return &deliveryError{stage: "send", cause: errors.New("the connection failed")}
	}
	e := &deliveryError{code: failed.ErrorCode(), cause: errors.New("the connection failed")}
	refused := e.code >= 500 && e.code <= 599
	switch failed.Reason {
	case gomail.ErrSMTPRcptTo:
		e.stage, e.permanent = "recipient", refused
	case gomail.ErrSMTPData, gomail.ErrSMTPDataClose, gomail.ErrWriteContent:
		e.stage, e.permanent = "content", refused
	case gomail.ErrSMTPMailFrom:
		e.stage = "sender" // an operator can correct PORTAL_MAIL_FROM
	default:
		e.stage = "send"
	}
	return e
}
