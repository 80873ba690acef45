package agents_test

import (
	"testing"

	"portal/models"
	"portal/models/modelstest"
	"portal/models/value"
)

// fixture is that of the test kit, with what the tests of this package share.
type fixture struct{ *modelstest.Fixture }

type customer = modelstest.Customer

var (
	must         = modelstest.Must
	errOf        = modelstest.ErrOf
	checkError   = modelstest.CheckError
	checkErrors  = modelstest.CheckErrors
	checkInvalid = modelstest.CheckInvalid
	newID        = value.NewID
)

func newFixture(t *testing.T, url string, options models.Options) *fixture {
	t.Helper()
	return &fixture{Fixture: modelstest.NewFixture(t, url, options)}
}

// eachDatabase runs a test on SQLite and on PostgreSQL, in parallel with other tests.
func eachDatabase(t *testing.T, run func(t *testing.T, f *fixture)) {
	t.Helper()
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) { run(t, newFixture(t, url, models.Options{})) })
}

func TestMain(m *testing.M) { modelstest.Main(m) }
