package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"portal/handlers/api"
	"portal/handlers/portal/identity"
	"portal/models/database"
	"portal/models/keyset"
	"portal/models/livekit"
	"portal/models/secret"
	"portal/models/widget"
)

const (
	// checkTimeout limits each check. They run at the same time, so the command takes little
	// longer.
	checkTimeout = 10 * time.Second
	// pageTimeout limits each request of the check of the portal's own addresses.
	pageTimeout = 2 * time.Second
	// maxPage is the limit of a response in bytes.
	maxPage = 1 << 20
)

// The grades of a finding.
const (
	gradeOK      = "ok"
	gradeWarning = "warning"
	gradeFailed  = "failed"
	gradeOff     = "off" // not configured
)

// finding is a line of what a check has found. If something is wrong, the text says what to do. It
// contains no secret.
type finding struct{ grade, subject, text string }

func found(grade, subject, format string, args ...any) finding {
	return finding{grade: grade, subject: subject, text: fmt.Sprintf(format, args...)}
}

// check looks at one subject, and changes nothing.
type check struct {
	subject string
	run     func(context.Context) []finding
}

type checkCommand struct{}

// Help says what the lines mean.
func (checkCommand) Help() string {
	return "Each line begins with ok, warning or failed, and says what to do. The status is 1 if something failed, and 2 if the settings are wrong. " +
		"The command changes nothing and takes at most 15 seconds. What is not configured is not asked."
}

// Run prints what the checks find.
func (checkCommand) Run(ctx context.Context, t terminal) error {
	s, err := readSettings()
	if err != nil {
		return err
	}
	var failed []string
	write := func(lines ...finding) error {
		for _, line := range lines {
			if line.grade == gradeFailed && !slices.Contains(failed, line.subject) {
				failed = append(failed, line.subject)
			}
			text := strings.Join(strings.Fields(line.text), " ") // messages of drivers may have several lines
			if _, err := fmt.Fprintf(t.out, "%-8s %s: %s\n", line.grade, line.subject, text); err != nil {
				return err
			}
		}
		return nil
	}
	if err := write(s.checkSettings()...); err != nil {
		return err
	}
	neighbors, off := s.neighbors()
	checks := append([]check{{"database", s.checkDatabase}}, neighbors...)
	checks = append(checks, check{"PORTAL_ADDR", s.checkPortal})
	if s.baseURL == nil {
		off = append(off, "PORTAL_BASE_URL")
	}
	for _, answer := range runChecks(ctx, checks) {
		if err := write(<-answer...); err != nil {
			return err
		}
	}
	if len(off) > 0 {
		if err := write(found(gradeOff, "not configured", "%s", strings.Join(off, ", "))); err != nil {
			return err
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("failed: %s", strings.Join(failed, ", "))
	}
	return nil
}

// runChecks runs checks at the same time. Each channel gets the findings of one, within
// checkTimeout: a driver can block for longer than a context allows.
func runChecks(ctx context.Context, checks []check) (answers []chan []finding) {
	for _, one := range checks {
		answer := make(chan []finding, 1)
		answers = append(answers, answer)
		go func() {
			ctx, cancel := context.WithTimeout(ctx, checkTimeout)
			defer cancel()
			done := make(chan []finding, 1)
			go func() { done <- one.run(ctx) }()
			select {
			case findings := <-done:
				answer <- findings
			case <-ctx.Done():
				answer <- []finding{found(gradeFailed, one.subject, "no answer within %s; check its address, and the firewalls between", short(checkTimeout))}
			}
		}()
	}
	return answers
}

// warnOfNeighbors logs a warning for each neighbor that does not answer, or refuses what the
// settings say.
func (s settings) warnOfNeighbors(ctx context.Context, logger *slog.Logger) {
	neighbors, _ := s.neighbors()
	for _, answer := range runChecks(ctx, neighbors) {
		for _, line := range <-answer {
			if line.grade != gradeOK && ctx.Err() == nil {
				logger.WarnContext(ctx, "a server that the portal uses does not answer, or refuses the settings",
					slog.String("server", line.subject), slog.String("cause", line.text))
			}
		}
	}
}

// checkSettings returns the doubts about valid settings.
func (s settings) checkSettings() (lines []finding) {
	for _, doubt := range s.doubts() {
		lines = append(lines, found(gradeWarning, "settings", "%s", doubt))
	}
	if len(lines) == 0 {
		lines = append(lines, found(gradeOK, "settings", "valid"))
	}
	return lines
}

// neighbors returns the checks of the servers of others that the portal uses, but for the
// database, and the names of those that are not configured.
func (s settings) neighbors() (checks []check, off []string) {
	for _, neighbor := range []struct {
		check

		configured bool
	}{
		{check{"LiveKit", s.checkLiveKit}, s.liveKit != nil},
		{check{"OpenID provider", s.checkProvider}, s.provider != nil},
		{check{"SMTP", s.checkMail}, s.mailFrom != nil},
	} {
		if neighbor.configured {
			checks = append(checks, neighbor.check)
		} else {
			off = append(off, neighbor.subject)
		}
	}
	return checks, off
}

func (s settings) checkLiveKit(ctx context.Context) []finding {
	const subject = "LiveKit"
	err := s.liveKit.Check(ctx)
	switch {
	case errors.Is(err, livekit.ErrRefused):
		return []finding{found(gradeFailed, subject, "%s: %s", s.liveKit.URL(), livekit.ErrRefused)}
	case err != nil:
		return []finding{found(gradeFailed, subject, "%s: %s; check PORTAL_LIVEKIT_URL", s.liveKit.URL(), cause(err))}
	}
	return []finding{found(gradeOK, subject, "%s answers and takes PORTAL_LIVEKIT_API_KEY", s.liveKit.URL())}
}

func (s settings) checkProvider(ctx context.Context) []finding {
	const subject = "OpenID provider"
	config := *s.provider
	config.Now = time.Now
	keys, err := identity.New(config).Check(ctx)
	if err != nil {
		inner := errors.Unwrap(err)
		what := strings.TrimSuffix(err.Error(), inner.Error())
		return []finding{found(gradeFailed, subject, "%s%.300s; check PORTAL_OIDC_ISSUER, which must be exactly as in the provider's metadata", what, cause(inner))}
	}
	return []finding{found(gradeOK, subject, "%s publishes its metadata, and %d keys that the portal can use", s.provider.Issuer, keys)}
}

func (s settings) checkMail(ctx context.Context) []finding {
	const subject = "SMTP"
	baseURL := ""
	if s.baseURL != nil {
		baseURL = s.baseURL.String()
	}
	version, err := s.smtp.Check(ctx, baseURL, s.mailFrom)
	if err != nil {
		return []finding{found(gradeFailed, subject, "%s: %s; check PORTAL_SMTP_URL", s.smtp.Address(), cause(err))}
	}
	signedIn := "is used without a sign-in"
	if s.smtp.SignsIn() {
		signedIn = "takes the user and the password"
	}
	return []finding{found(gradeOK, subject, "%s answers, with %s, and %s", s.smtp.Address(), cmp.Or(version, "no TLS"), signedIn)}
}

// checkDatabase says whether the portal can use its database. It creates neither the SQLite file
// nor the secret beside it.
func (s settings) checkDatabase(ctx context.Context) []finding {
	const subject = "database"
	name := database.Name(s.database.url)
	facts, err := database.Inspect(ctx, s.database.url)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !s.database.isPostgres():
		if err := writableAncestor(s.database.directory); err != nil {
			return []finding{found(gradeFailed, subject, "%s cannot be created: %s; change its owner, or correct DATABASE_URL", name, err)}
		}
		return []finding{found(gradeWarning, subject, "%s does not exist yet; portal serve or portal migrate creates it", name)}
	case errors.Is(err, context.DeadlineExceeded):
		return []finding{found(gradeFailed, subject, "%s does not answer in time; check its server, the firewalls between, and DATABASE_URL", name)}
	case err != nil:
		text := err.Error()
		if !strings.Contains(text, "DATABASE_URL") && !strings.Contains(text, "createdb") {
			text += "; start the server, or correct DATABASE_URL"
		}
		return []finding{found(gradeFailed, subject, "%s", text)}
	}
	lines := []finding{found(gradeOK, subject, "%s, %s, encoding %s", facts.Server, name, facts.Encoding)}
	if s.database.isPostgres() {
		lines = append(lines, checkServer(facts)...)
	} else {
		lines = append(lines, s.checkFile()...)
	}
	lines = append(lines, checkSchema(facts))
	if s.secret == "" {
		lines = append(lines, s.checkSecret(facts.Schema != ""))
	}
	return lines
}

// checkServer says what is wrong with a PostgreSQL server, its clock and the rights of the role.
func checkServer(f database.Facts) (lines []finding) {
	if f.Major < database.OldestPostgres {
		lines = append(lines, found(gradeWarning, "database", "%s is older than %d, the oldest version that the portal supports; upgrade the server",
			f.Server, database.OldestPostgres))
	}
	ahead, clock := f.ClockAhead.Round(10*time.Millisecond), "ahead of"
	if ahead < 0 {
		clock = "behind"
	}
	clock = fmt.Sprintf("this machine is %s %s the database", ahead.Abs(), clock)
	if ahead.Abs() > database.MaxClockSkew {
		lines = append(lines, found(gradeWarning, "clock", "%s; synchronize both, for example with chrony", clock))
	} else {
		lines = append(lines, found(gradeOK, "clock", "%s", clock))
	}
	return append(lines, checkRights(f)...)
}

func checkRights(f database.Facts) (lines []finding) {
	const subject = "rights"
	grade, need := gradeFailed, "which the portal needs"
	if f.Schema != "" && f.Pending == 0 {
		grade, need = gradeWarning, "which the next upgrade needs"
	}
	owner := fmt.Sprintf("the role %s must own the portal's tables: as their owner or a superuser, ALTER TABLE ... OWNER TO %s", f.Role, f.Role)
	switch {
	case f.SchemaName == "":
		lines = append(lines, found(gradeFailed, subject, "the search_path of the role %s names no schema that it may use; correct it, or CREATE SCHEMA public", f.Role))
	case !f.NewTables:
		lines = append(lines, found(grade, subject, "the role %s may not create tables in the schema %s, %s: as a superuser, GRANT CREATE ON SCHEMA %s TO %s, or make it the owner of the database",
			f.Role, f.SchemaName, need, f.SchemaName, f.Role))
	}
	switch {
	case len(f.Denied) > 0:
		lines = append(lines, found(gradeFailed, subject, "the role %s may not read and write %d tables, such as %s; %s", f.Role, len(f.Denied), f.Denied[0], owner))
	case len(f.NotOwned) > 0:
		lines = append(lines, found(grade, subject, "the role %s may not change %d tables, such as %s, %s; %s", f.Role, len(f.NotOwned), f.NotOwned[0], need, owner))
	}
	if len(lines) == 0 {
		lines = append(lines, found(gradeOK, subject, "the role %s may do what the portal needs in the schema %s", f.Role, f.SchemaName))
	}
	return lines
}

// checkSchema says whether the schema is that of this program.
func checkSchema(f database.Facts) finding {
	const subject = "schema"
	switch {
	case slices.Contains(f.Denied, "applied_migrations"):
		return found(gradeFailed, subject, "unknown, because the role %s may not read the table applied_migrations", f.Role)
	case f.Schema == "":
		return found(gradeWarning, subject, "the portal's tables do not exist yet; portal serve or portal migrate creates them")
	case f.Newer:
		return found(gradeWarning, subject, "version %s is of a newer portal than this one, %s; install the newer one here too", f.Schema, version)
	case f.Pending > 0:
		return found(gradeWarning, subject, "version %s is older than this portal, %s; portal serve or portal migrate makes the %d changes", f.Schema, version, f.Pending)
	}
	return found(gradeOK, subject, "version %s, up to date", f.Schema)
}

const writable = 2 // W_OK of access(2)

// checkFile returns a finding if the SQLite file, or its directory, cannot be written to.
func (s settings) checkFile() (lines []finding) {
	path, _ := database.SQLitePath(s.database.url)
	for _, needed := range []string{path, s.database.directory} {
		if err := syscall.Access(needed, writable); err != nil {
			lines = append(lines, found(gradeFailed, "rights", "%s cannot be written to: %s; run the command as the portal's user, or change the owner", needed, err))
		}
	}
	return lines
}

// writableAncestor returns an error unless a directory exists and can be written to, or can be
// created.
func writableAncestor(directory string) error {
	for {
		err := syscall.Access(directory, writable)
		parent := filepath.Dir(directory)
		if !errors.Is(err, fs.ErrNotExist) || parent == directory {
			if err != nil {
				return fmt.Errorf("%s: %w", directory, err)
			}
			return nil
		}
		directory = parent
	}
}

// checkSecret says whether the secret beside a SQLite file can be used.
func (s settings) checkSecret(used bool) finding {
	const subject = "secret"
	path := filepath.Join(s.database.directory, secretFile)
	_, err := readSecret(path)
	switch {
	case err == nil:
		return found(gradeOK, subject, "%s; keep a copy", path)
	case errors.Is(err, fs.ErrNotExist) && !used:
		return found(gradeOK, subject, "the first start generates %s", path)
	case errors.Is(err, fs.ErrNotExist):
		return found(gradeWarning, subject, "%s is missing; restore it from your copy, because the next start generates another one, which signs everyone out", path)
	}
	return found(gradeFailed, subject, "%s", err)
}

// checkPortal asks the portal at PORTAL_ADDR and at PORTAL_BASE_URL. Before it is started, neither
// answers, which is a warning.
func (s settings) checkPortal(ctx context.Context) (lines []finding) {
	ours := s.publicKeys()
	client := &http.Client{Transport: &http.Transport{}, CheckRedirect: notFollowed} // without a proxy
	running := false
	if _, port, _ := net.SplitHostPort(s.addr); port != "0" {
		const subject = "PORTAL_ADDR"
		address := "http://" + dialAddress(s.addr)
		err := askPortal(ctx, client, address, ours)
		refused := errors.Is(err, syscall.ECONNREFUSED)
		running = !refused
		switch {
		case err == nil:
			lines = append(lines, found(gradeOK, subject, "the portal at %s is ready", address))
		case refused:
			lines = append(lines, found(gradeWarning, subject, "no portal answers at %s; start it", address))
		default:
			lines = append(lines, found(gradeFailed, subject, "%s %s", address, err))
		}
	}
	if s.baseURL == nil {
		return lines
	}
	const subject = "PORTAL_BASE_URL"
	client = &http.Client{CheckRedirect: notFollowed}
	err := askPortal(ctx, client, s.baseURL.String(), ours)
	_, away := errors.AsType[*awayError](err)
	switch {
	case err == nil:
		lines = append(lines, found(gradeOK, subject, "%s answers, and publishes the keys of this portal", s.baseURL))
	case away && !running:
		lines = append(lines, found(gradeWarning, subject, "%s %s; start the portal and its proxy", s.baseURL, err))
	default:
		lines = append(lines, found(gradeFailed, subject, "%s %s; check its name, and the proxy in front of the portal", s.baseURL, err))
	}
	return lines
}

func notFollowed(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// publicKeys returns the identifiers of the keys that the portal publishes, or nil if there is no
// secret yet.
func (s settings) publicKeys() (ids []string) {
	current := s.secret
	if current == "" {
		current, _ = readSecret(filepath.Join(s.database.directory, secretFile))
	}
	if current == "" {
		return nil
	}
	keyring, err := secret.NewKeyring(current, s.secretPrevious)
	if err != nil {
		return nil
	}
	for _, key := range widget.NewTokens(keyring, "", s.widgetTokenTTL, nil, s.widgetTokenAlg...).JWKS().Keys {
		ids = append(ids, key.KeyID)
	}
	return ids
}

// awayError means that no server answers at an address, or a proxy or a portal that is not ready.
type awayError struct{ cause error }

func (e *awayError) Error() string { return "is not ready: " + cause(e.cause) }

func (e *awayError) Unwrap() error { return e.cause }

// askPortal returns an error unless a portal answers at a URL, is ready, and publishes these keys.
func askPortal(ctx context.Context, client *http.Client, base string, keys []string) error {
	ready, _, err := get(ctx, client, base+api.ReadinessPath) //nolint:bodyclose // get closes it
	if err != nil {
		return &awayError{err}
	}
	switch ready.StatusCode {
	case http.StatusOK:
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return &awayError{errors.New("the status is " + ready.Status)}
	case http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		to, err := ready.Location()
		if err != nil {
			return err
		}
		return fmt.Errorf("redirects to %s://%s, which is the address to set if users open that", to.Scheme, to.Host)
	default:
		return fmt.Errorf("answers %s, so another program answers there", ready.Status)
	}
	response, body, err := get(ctx, client, base+api.SigningKeysPath) //nolint:bodyclose // get closes it
	if err != nil {
		return &awayError{err}
	}
	set, err := keyset.Parse(body)
	if response.StatusCode != http.StatusOK || err != nil {
		return fmt.Errorf("publishes no keys at %s, so another program answers there", api.SigningKeysPath)
	}
	published := set.ByID()
	for _, id := range keys {
		if len(published[id]) == 0 {
			return errors.New("publishes other keys than those of PORTAL_SECRET and PORTAL_WIDGET_TOKEN_ALG: another portal answers there, or it was started with other settings")
		}
	}
	return nil
}

// get requests a page and returns the response and its body.
func get(ctx context.Context, client *http.Client, address string) (response *http.Response, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, nil, err
	}
	if response, err = client.Do(request); err != nil {
		return nil, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err = io.ReadAll(io.LimitReader(response.Body, maxPage))
	return response, body, err
}

// dialAddress returns the address at which clients on the same host reach a portal that listens on
// addr.
func dialAddress(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case err == nil && ip == netip.IPv4Unspecified():
		host = "127.0.0.1" // works without an entry for localhost
	case host == "" || err == nil && ip.IsUnspecified():
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}
