package database

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// errPostgresURL does not repeat the URL, which may contain a password.
var errPostgresURL = errors.New("invalid PostgreSQL URL; write postgres://user:password@host:5432/database, with special characters " +
	"percent-encoded, such as in the password @ as %40, / as %2F and % as %25")

var (
	// libpqParameters are parameters of PostgreSQL's client library, not of the server. Most
	// are ignored: the portal sets the encoding, watches its connections, connects to all hosts
	// at once and uses TLS 1.2 at least.
	libpqParameters = []string{
		"client_encoding", "fallback_application_name", "gssdelegation", "gssencmode", "gsslib", "keepalives", "keepalives_count",
		"keepalives_idle", "keepalives_interval", "load_balance_hosts", "ssl_max_protocol_version", "ssl_min_protocol_version",
		"sslcompression", "sslkeylogfile",
	}
	// knownParameters are those with values that the driver checks.
	knownParameters = []string{
		"channel_binding", "connect_timeout", "max_protocol_version", "min_protocol_version", "passfile", "port", "require_auth", "service",
		"servicefile", "sslcert", "sslcertmode", "sslkey", "sslmode", "sslnegotiation", "sslpassword", "sslrootcert", "sslsni", "target_session_attrs",
	}
	// unsupportedParameters are those that it would be wrong to ignore.
	unsupportedParameters = []string{"hostaddr", "requirepeer", "sslcrl", "sslcrldir"}
	// textParameters are those with text in which an @ is common.
	textParameters = []string{
		"application_name", "dbname", "fallback_application_name", "host", "krbspn", "krbsrvname", "options", "passfile", "password",
		"service", "servicefile", "sslcert", "sslkey", "sslpassword", "sslrootcert", "user",
	}
)

// ParsePostgresURL returns the configuration of a connection, whose RuntimeParams are settings of
// the server. No error contains a part of the URL.
func ParsePostgresURL(databaseURL string) (*pgx.ConnConfig, error) {
	if hasMisplacedAt(databaseURL) {
		return nil, errPostgresURL
	}
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		return nil, parameterProblem(databaseURL, err)
	}
	parameters := config.RuntimeParams
	for _, name := range unsupportedParameters {
		if _, found := parameters[name]; found {
			return nil, fmt.Errorf("the portal does not support the parameter %s of PostgreSQL URLs; remove it", name)
		}
	}
	if parameters["gssencmode"] == "require" {
		return nil, errors.New("the portal does not support gssencmode=require in PostgreSQL URLs; encrypt with sslmode")
	}
	if parameters["ssl_min_protocol_version"] == "TLSv1.3" {
		requireTLS13(config.TLSConfig)
		for _, host := range config.Fallbacks {
			requireTLS13(host.TLSConfig)
		}
	}
	if name := cmp.Or(parameters["application_name"], parameters["fallback_application_name"]); name != "" {
		parameters["application_name"] = name
	}
	for _, name := range libpqParameters {
		delete(parameters, name)
	}
	return config, nil
}

// parameterProblem returns an error that names the parameter of a URL that cannot be parsed because
// of it, or [errPostgresURL].
func parameterProblem(databaseURL string, cause error) error {
	u, err := url.Parse(databaseURL)
	if err != nil {
		return errPostgresURL
	}
	reason := "has an invalid value; correct it"
	if file, ok := errors.AsType[*fs.PathError](cause); ok {
		reason = fmt.Sprintf("names a file that cannot be read: %s; correct it or the permissions of the file", file.Err)
	}
	query := u.Query()
	parses := func(without ...string) bool {
		rest := maps.Clone(query)
		for _, name := range without {
			delete(rest, name)
		}
		u.RawQuery = rest.Encode()
		_, err := pgx.ParseConfig(u.String())
		return err == nil
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if slices.Contains(knownParameters, name) && parses(name) {
			return fmt.Errorf("the parameter %s %s", name, reason)
		}
	}
	if query.Has("sslcert") && parses("sslcert", "sslkey") { // one needs the other
		if reason = strings.Replace(reason, "names", "name", 1); strings.HasPrefix(reason, "has") {
			reason = "cannot be used: " + innermost(cause) // about a certificate, not a value
		}
		return fmt.Errorf("the parameters sslcert and sslkey %s", reason)
	}
	return variableProblem()
}

// variableProblem returns [errPostgresURL], with the variables of libpq, which the driver reads
// too.
func variableProblem() error {
	var names []string
	for _, entry := range os.Environ() {
		if name, value, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "PG") && value != "" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return errPostgresURL
	}
	slices.Sort(names)
	return fmt.Errorf("%w; or correct or unset the variables %s", errPostgresURL, strings.Join(names, ", "))
}

func requireTLS13(config *tls.Config) {
	if config != nil {
		config.MinVersion = tls.VersionTLS13
	}
}

// hasMisplacedAt reports whether an @ in a URL can only belong to a password that is not
// percent-encoded. The driver would take a part of that password for the host, the port, the
// database or a parameter.
func hasMisplacedAt(databaseURL string) bool {
	_, location, _ := strings.Cut(databaseURL, "://")
	if end := strings.IndexAny(location, "@/"); end >= 0 && location[end] == '@' {
		location = location[end+1:]
	}
	location, query, _ := strings.Cut(location, "?")
	if strings.Contains(location, "@") {
		return true
	}
	for parameter := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(parameter, "=")
		if strings.Contains(parameter, "@") && !slices.Contains(textParameters, name) {
			return true
		}
	}
	return false
}

func postgresConfig(databaseURL string) (*pgx.ConnConfig, error) {
	config, err := ParsePostgresURL(databaseURL)
	if err != nil {
		return nil, err
	}
	if config.ConnectTimeout == 0 || config.ConnectTimeout == pgxConnectTimeout {
		config.ConnectTimeout = connectTimeout
	}
	// Connect to the primary only. Its standbys are read-only.
	config.ValidateConnect = requirePrimary
	config.DialFunc = (&net.Dialer{KeepAliveConfig: keepAlive}).DialContext
	config.RuntimeParams["application_name"] = cmp.Or(config.RuntimeParams["application_name"], "portal")
	// Bun inlines arguments into the SQL. Preparing each distinct statement would only fill the
	// server's memory.
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	return config, nil
}
