package mailer

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/mail"
	"net/netip"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"

	"portal/models/value"
)

// stepTimeout limits the dial and each mail on its connection, and is shorter than the lease of a
// claimed mail.
const stepTimeout = 30 * time.Second

// endTimeout limits the end of a dialog, which some servers do not respond to. It is shorter than
// stopTimeout, so that a mail that was sent is recorded at a stop.
const endTimeout = time.Second

// defaultPorts are the ports of the schemes of a server's URL.
var defaultPorts = map[string]string{"smtp": "587", "smtps": "465"}

// Server is an SMTP server that accepts mails for delivery. It holds a password, so it has no
// exported fields and is not printed.
type Server struct {
	target func() target
	// accepted is the index in mechanisms of the one that the server has accepted last.
	accepted *atomic.Int32
}

// target is where and how a server is reached.
type target struct {
	host, address  string
	encryption     encryption
	user, password string // both empty: no sign-in
}

// encryption says when a connection uses TLS.
type encryption int

const (
	startTLS          encryption = iota // by the command STARTTLS, which the server must offer
	startTLSIfOffered                   // by STARTTLS if the server offers it
	fromStart
	never
)

// ParseServer parses a URL such as smtp://user:password@mail.example.com:587. The scheme smtp
// requires STARTTLS, except on a loopback address or with ?tls=off. The scheme smtps uses TLS from
// the start. No error contains the URL.
func ParseServer(value string) (Server, error) {
	u, err := url.Parse(value)
	valid := err == nil && defaultPorts[u.Scheme] != "" && u.Hostname() != ""
	if !valid || strings.TrimPrefix(u.Path, "/") != "" || u.Fragment != "" {
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
	t := target{
		host: u.Hostname(), address: net.JoinHostPort(u.Hostname(), strconv.Itoa(port)), user: user, password: password,
	}
	switch {
	case u.Scheme == "smtps":
		t.encryption = fromStart
	case plain:
		t.encryption = never
	case loopback:
		t.encryption = startTLSIfOffered
	default:
		t.encryption = startTLS
	}
	return Server{func() target { return t }, &atomic.Int32{}}, nil
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// ParseSender parses the address of the sender, with or without a name. The returned one has its
// domain in ASCII.
func ParseSender(text string) (*mail.Address, error) {
	sender, err := mail.ParseAddress(text)
	if name, address, ok := strings.Cut(text, "<"); err != nil && ok {
		// A name that has a comma, for example, should be in quotes.
		if sender, err = mail.ParseAddress("<" + address); err == nil {
			sender.Name = strings.TrimSpace(name)
		}
	}
	if err != nil {
		return nil, errors.New("invalid email address; use portal@example.com or Portal <portal@example.com>")
	}
	sender.Address = value.MailAddress(sender.Address)
	return sender, nil
}

// clientName returns the name by which the portal introduces itself to a server: the host of its
// base URL or the domain of the sender, whichever is a full name, or "" if none is. Servers refuse
// mails from the name of a container, which has no domain.
func clientName(baseURL string, sender *mail.Address) string {
	host := ""
	if u, err := url.Parse(baseURL); err == nil {
		host = u.Hostname()
	}
	_, domain, _ := strings.Cut(sender.Address, "@")
	for _, name := range []string{host, domain} {
		name = strings.TrimSuffix(name, ".")
		if _, err := netip.ParseAddr(name); err != nil && fullName.MatchString(name) {
			return name
		}
	}
	return ""
}

// fullName matches names of hosts with a domain. Some servers refuse underscores.
var fullName = regexp.MustCompile(`^(?i:[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+(?i:[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)$`)

// addressLiteral returns an address in the form that introduces a client without a name (RFC 5321,
// section 4.1.3).
func addressLiteral(address net.Addr) string {
	ip := netip.AddrPort{}
	if tcp, ok := address.(*net.TCPAddr); ok {
		ip = tcp.AddrPort()
	}
	if ip.Addr().Unmap().Is4() {
		return "[" + ip.Addr().Unmap().String() + "]"
	}
	return "[IPv6:" + ip.Addr().WithZone("").String() + "]"
}

// Address returns the host and the port of the server.
func (s Server) Address() string { return s.target().address }

// SignsIn reports whether the portal signs in to the server.
func (s Server) SignsIn() bool { return s.target().user != "" }

// Check connects as for a mail of a portal with this base URL and sender, signs in, and sends
// nothing. It returns the version of TLS, or "" without TLS.
func (s Server) Check(ctx context.Context, baseURL string, sender *mail.Address) (tlsVersion string, err error) {
	client, err := s.connect(ctx, clientName(baseURL, sender))
	if err != nil {
		return "", &deliveryError{stage: "connect", cause: err}
	}
	defer end(client)
	if state, ok := client.TLSConnectionState(); ok {
		tlsVersion = tls.VersionName(state.Version)
	}
	return tlsVersion, nil
}

// deliver hands one mail over to the server, and returns nil only after the server has accepted it.
// It introduces itself by name. After the end of ctx, deliver does not start to send the mail.
func (s Server) deliver(ctx context.Context, name string, message *gomail.Msg) error {
	client, err := s.connect(ctx, name)
	if err == nil {
		defer end(client)
		if err = ctx.Err(); err == nil {
			err = client.UpdateDeadline(stepTimeout)
		}
	}
	if err != nil {
		return &deliveryError{stage: "connect", cause: err}
	}
	return send(client, message)
}

// dialog is a connection on which the portal has introduced itself by a name.
type dialog struct {
	*smtp.Client

	name string
}

func end(client dialog) {
	if client.UpdateDeadline(endTimeout) != nil || client.Quit() != nil {
		_ = client.Close()
	}
}

// send hands one mail over on an open connection.
func send(client dialog, message *gomail.Msg) error {
	sender, err := message.GetSender(false)
	if err != nil {
		return &deliveryError{stage: "sender", cause: err}
	}
	recipients, err := message.GetRecipients()
	if err != nil {
		return &deliveryError{stage: "recipient", cause: err}
	}
	if err := begin(client, sender, recipients); err != nil {
		return &deliveryError{stage: "sender", cause: err} // an operator can correct PORTAL_MAIL_FROM
	}
	for _, recipient := range recipients {
		if err := client.Rcpt(recipient); err != nil {
			return refusedAt("recipient", err)
		}
	}
	content, err := client.Data()
	if err == nil {
		if _, err = message.WriteTo(content); err == nil {
			err = content.Close()
		} else {
			_ = client.Close() // any further command would end the content
		}
	}
	if err != nil {
		return refusedAt("content", err)
	}
	return nil
}

// begin begins a mail from the sender. It asks for SMTPUTF8 only if an address needs it, because a
// server bounces such a mail if the next one does not offer it. The content is ASCII otherwise.
func begin(client dialog, sender string, recipients []string) error {
	line := "MAIL FROM:" + sender
	if strings.ContainsFunc(sender+strings.Join(recipients, ""), func(r rune) bool { return r > unicode.MaxASCII }) {
		offered, _, err := extension(client, "SMTPUTF8")
		if err != nil {
			return err
		}
		if offered {
			line += " SMTPUTF8"
		}
	}
	code, text, err := command(client, line)
	if err == nil && code != 250 {
		err = &textproto.Error{Code: code, Msg: text}
	}
	return err
}

// refusedAt returns the error of a mail that the server has refused at a stage.
func refusedAt(stage string, cause error) error {
	response, ok := errors.AsType[*textproto.Error](cause)
	return &deliveryError{stage: stage, cause: cause, permanent: ok && isAboutMailbox(response, stage == "recipient")}
}

// connect opens a connection and signs in.
func (s Server) connect(ctx context.Context, name string) (dialog, error) {
	t := s.target()
	client, offer, err := t.dial(ctx, name)
	if err != nil || t.user == "" {
		return client, err
	}
	left, err := s.offered(offer)
	var refused refusals
	first := true // on this connection
	for err == nil && len(left) > 0 {
		err = t.signIn(client, left[0])
		response, isRefusal := errors.AsType[*textproto.Error](err)
		isRefusal = isRefusal && response.Code >= 500 && response.Code != 503
		switch {
		case err == nil:
			s.accepted.Store(int32(slices.Index(mechanisms, left[0]))) //nolint:gosec // one of two
			return client, nil
		case isRefusal:
			refused = append(refused, refusal{left[0], response})
			left, first, err = left[1:], false, nil
		case !first:
			// The server allows a single command AUTH on a connection.
			_ = client.Close()
			if client, _, err = t.dial(ctx, name); err != nil {
				return client, err
			}
			first = true
		}
	}
	end(client)
	if err == nil {
		err = refused
	}
	return client, err
}

// dial opens a connection with TLS, as the encryption requires, and returns the mechanisms that the
// server offers. Without a name it introduces itself by its address.
func (t target) dial(ctx context.Context, name string) (client dialog, offer string, err error) {
	dialer := net.Dialer{Timeout: stepTimeout}
	connection, err := dialer.DialContext(ctx, "tcp", t.address)
	if err != nil {
		return client, "", err
	}
	if err := connection.SetDeadline(time.Now().Add(stepTimeout)); err != nil {
		_ = connection.Close()
		return client, "", err
	}
	client.name = cmp.Or(name, addressLiteral(connection.LocalAddr()))
	config := &tls.Config{ServerName: t.host, MinVersion: tls.VersionTLS12}
	if t.encryption == fromStart {
		connection = tls.Client(connection, config)
	}
	client.Client, err = smtp.NewClient(connection, t.host) // closes the connection after an error
	if err != nil {
		return client, "", err
	}
	if err = client.Hello(client.name); err == nil {
		err = t.startTLS(client, config)
	}
	if err == nil && t.user != "" {
		_, offer, err = extension(client, "AUTH")
	}
	if err != nil {
		_ = client.Close()
	}
	return client, offer, err
}

// startTLS begins TLS on a connection without it, unless the encryption says otherwise.
func (t target) startTLS(client dialog, config *tls.Config) error {
	if t.encryption == fromStart || t.encryption == never {
		return nil
	}
	offered, _, err := extension(client, "STARTTLS")
	switch {
	case err != nil:
		return err
	case offered:
		err := client.StartTLS(config)
		if response, refused := errors.AsType[*textproto.Error](err); refused && response.Code == 454 && t.encryption == startTLSIfOffered {
			return nil // a server without a certificate (RFC 3207, section 4)
		}
		return err
	case t.encryption == startTLS:
		return errors.New("the SMTP server does not offer STARTTLS")
	default:
		return nil
	}
}

// extension reports whether the server offers an extension, and with which parameters. The client
// finds neither keywords in small letters nor AUTH=, the form of old servers. So if it finds none,
// extension asks the server once more.
func extension(client dialog, keyword string) (offered bool, parameters string, err error) {
	if offered, parameters = client.Extension(keyword); offered {
		return true, parameters, nil
	}
	_, response, err := command(client, "EHLO "+client.name)
	for line := range strings.Lines(response) {
		word, rest, _ := strings.Cut(strings.Replace(strings.TrimSpace(line), "=", " ", 1), " ")
		if strings.EqualFold(word, keyword) {
			return true, rest, err
		}
	}
	return false, "", err
}

// mechanisms are the ways to sign in, in order. Both send the password itself, under TLS or to this
// machine. CRAM-MD5 and NTLM are not among them, because servers offer them without being able to
// check them.
var mechanisms = []string{"PLAIN", "LOGIN"}

// offered returns the mechanisms of a server's offer that the portal can use, first the one that
// the server has accepted last.
func (s Server) offered(offer string) ([]string, error) {
	last := int(s.accepted.Load())
	var offered []string
	for i := range mechanisms {
		mechanism := mechanisms[(last+i)%len(mechanisms)]
		if slices.ContainsFunc(strings.Fields(offer), func(o string) bool { return strings.EqualFold(o, mechanism) }) {
			offered = append(offered, mechanism)
		}
	}
	switch {
	case offer == "":
		return nil, errors.New("the SMTP server does not offer AUTH, so it takes no user and no password")
	case len(offered) == 0:
		return nil, fmt.Errorf("the SMTP server offers AUTH %.100s, and the portal can use %s", offer, strings.Join(mechanisms, " and "))
	}
	return offered, nil
}

// signIn signs in by a mechanism. If the server refuses, the error is a [textproto.Error]. Unlike
// the method of the client, it does not end the connection then.
func (t target) signIn(client dialog, mechanism string) error {
	encode := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	lines := []string{"AUTH PLAIN " + encode("\x00"+t.user+"\x00"+t.password)}
	if mechanism == "LOGIN" {
		lines = []string{"AUTH LOGIN", encode(t.user), encode(t.password)}
	}
	for {
		code, text, err := command(client, lines[0])
		lines = lines[1:]
		switch {
		case err != nil:
			return err
		case code == 235:
			return nil
		case code == 334 && len(lines) == 0:
			lines = []string{"*"} // ends the exchange; the server responds 501
		case code != 334:
			return &textproto.Error{Code: code, Msg: text}
		}
	}
}

// command sends a line and returns the response.
func command(client dialog, line string) (code int, text string, err error) {
	id, err := client.Text.Cmd("%s", line)
	if err != nil {
		return 0, "", err
	}
	client.Text.StartResponse(id)
	defer client.Text.EndResponse(id)
	return client.Text.ReadResponse(0)
}

// refusals are the responses of a server that has refused the password in each way that it offers.
type refusals []refusal

type refusal struct {
	mechanism string
	response  *textproto.Error
}

func (r refusals) Error() string {
	var texts []string
	for _, one := range r {
		texts = append(texts, codes(one.response)+" to AUTH "+one.mechanism)
	}
	return "the SMTP server responded " + strings.Join(texts, ", and ")
}

// deliveryError says why the server has not accepted a mail. Its text contains no email address,
// because servers repeat addresses in their responses.
type deliveryError struct {
	stage     string
	permanent bool // a retry would get the same response
	cause     error
}

func (e *deliveryError) Error() string {
	if response, ok := errors.AsType[*textproto.Error](e.cause); ok {
		return fmt.Sprintf("%s: the SMTP server responded %s", e.stage, codes(response))
	}
	if _, ok := errors.AsType[textproto.ProtocolError](e.cause); ok {
		return e.stage + ": the SMTP server responded in another protocol"
	}
	if errors.Is(e.cause, io.EOF) {
		return e.stage + ": the SMTP server closed the connection"
	}
	return fmt.Sprintf("%s: %v", e.stage, e.cause)
}

// Unwrap returns the cause.
func (e *deliveryError) Unwrap() error { return e.cause }

// codes returns the code of a response and its enhanced code if it has one.
func codes(response *textproto.Error) string {
	return strings.TrimSpace(strconv.Itoa(response.Code) + " " + enhancedCode(response))
}

// enhanced matches an enhanced code (RFC 3463) at the beginning of a text, or in the form of qmail.
var enhanced = regexp.MustCompile(`(?:^|\(#)([245]\.\d{1,3}\.\d{1,3})\b`)

// enhancedCode returns the enhanced code of a response, or "".
func enhancedCode(response *textproto.Error) string {
	if match := enhanced.FindStringSubmatch(response.Msg); match != nil {
		return match[1]
	}
	return ""
}

// isAboutMailbox reports whether a response says that the recipient's mailbox gets no mail. All
// other responses can be about the portal, its address or a limit, and an operator or time corrects
// them: also 5.1.0, 5.1.7 and 5.1.8, with which servers refuse the sender, and 5.2.2, a full
// mailbox. Without an enhanced code, only 553 to a recipient is clear, because servers respond 550
// to a client that must not send to others, too.
func isAboutMailbox(response *textproto.Error, toRecipient bool) bool {
	if response.Code < 500 {
		return false
	}
	switch enhancedCode(response) {
	case "5.1.1", "5.1.2", "5.1.3", "5.1.4", "5.1.5", "5.1.6", "5.1.10", "5.2.0", "5.2.1", "5.2.3", "5.2.4":
		return true
	case "":
		return toRecipient && response.Code == 553
	default:
		return false
	}
}
