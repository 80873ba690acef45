package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"portal/models/database"
)

// doubts returns a sentence for each setting that is valid but may be unintended.
func (s settings) doubts() []string {
	all := slices.Clone(s.telemetry)
	for i, line := range all {
		all[i] = line + "; no traces are sent"
	}
	all = append(all, s.certificateDoubts()...)
	for _, row := range table(new(settings)) {
		if value, _ := variable(row.name); isQuoted(value) {
			all = append(all, row.name+" is in quotes, which are a part of the value; remove them unless they are meant")
		}
	}
	if path, _ := database.SQLitePath(s.database.url); strings.HasPrefix(path, "~/") {
		all = append(all, "DATABASE_URL: ~ is not expanded, so the database is in a directory with this name; write the whole path")
	} else if before, parameters, _ := strings.Cut(path, "?"); strings.Contains(parameters, "=") {
		all = append(all, fmt.Sprintf("DATABASE_URL: what begins at the ? is a part of the name of the file, after %s; remove it", filepath.Base(before)))
	}
	if s.signInLimit != defaultSignInLimit {
		all = append(all, fmt.Sprintf("PORTAL_TEST_SIGN_IN_LIMIT weakens the protection of passwords with a limit of %d; set it only in tests", s.signInLimit))
	}
	if limit, files := connectionLimit(); limit < maxConnections {
		all = append(all, fmt.Sprintf("the limit of open files, %d, is low and bounds the connections to %d; raise it with ulimit -n or LimitNOFILE",
			files, limit))
	}
	plain := s.baseURL != nil && s.baseURL.Scheme == "http"
	if plain && !isLocal(s.baseURL) {
		all = append(all, "PORTAL_BASE_URL is plain http: anyone on the network between can read passwords, sessions and API keys; use https with a proxy in front")
	}
	if s.sessionIdle > s.sessionMax {
		all = append(all, fmt.Sprintf("PORTAL_SESSION_IDLE, %s, is above PORTAL_SESSION_MAX, %s, so every session ends by the maximum; lower the first or raise the second",
			short(s.sessionIdle), short(s.sessionMax)))
	}
	if s.secret == "" && othersMayRead(s.database.directory) {
		all = append(all, fmt.Sprintf("other users of this machine may read %s; run: chmod 600 %[1]s", absolute(filepath.Join(s.database.directory, secretFile))))
	}
	switch {
	case !s.passwordsOff || s.provider != nil:
	case s.operatorToken == "":
		all = append(all, "PORTAL_PASSWORD_SIGN_IN is off and there are no OpenID Connect provider and no sign-in links; only users with a passkey can sign in")
	default:
		all = append(all, "PORTAL_PASSWORD_SIGN_IN is off and there is no OpenID Connect provider; users need a sign-in link or a passkey")
	}
	return all
}

// certificateDoubts names the variables of certificates that have no effect: those for traces,
// because the portal does not use the client of OpenTelemetry, and those with a file that Go cannot
// open and leaves out.
func (s settings) certificateDoubts() (doubts []string) {
	for _, suffix := range []string{"CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"} {
		for _, name := range []string{"OTEL_EXPORTER_OTLP_" + suffix, "OTEL_EXPORTER_OTLP_TRACES_" + suffix} {
			if s.spans != nil && os.Getenv(name) != "" {
				doubts = append(doubts, name+" is not used; name the certificates of your own authority in SSL_CERT_FILE")
			}
		}
	}
	for _, name := range []string{"SSL_CERT_FILE", "SSL_CERT_DIR"} {
		for _, path := range filepath.SplitList(os.Getenv(name)) {
			file, err := os.Open(path) //nolint:gosec // the operator names the file
			if err != nil {
				doubts = append(doubts, fmt.Sprintf("%s: %s; correct the path, or let the user of the portal read it", name, err))
			}
			_ = file.Close()
		}
	}
	return doubts
}
