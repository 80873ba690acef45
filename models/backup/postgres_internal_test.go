package backup

import (
	"slices"
	"testing"

	"portal/models/modelstest"
)

// The portal connects with verify-full and without sslrootcert, so its backup must connect too.
func TestPostgresProgramsTrustTheCertificatesOfTheSystem(t *testing.T) {
	t.Setenv("SSL_CERT_FILE", "postgres.go")
	for parameters, want := range map[string]bool{
		"?sslmode=verify-full": true, "?sslmode=verify-ca": true, "?sslmode=require": false, "": false, "?sslmode=verify-full&sslrootcert=system": false,
	} {
		environment := modelstest.Value(postgresEnvironment("postgres://portal@db.example.com/portal" + parameters))(t)
		if got := slices.Contains(environment, "PGSSLROOTCERT=postgres.go"); got != want {
			t.Errorf("%s: %q", parameters, environment)
		}
	}
}
