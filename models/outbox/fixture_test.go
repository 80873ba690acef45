package outbox_test

import (
	"testing"

	"portal/models"
	"portal/models/modelstest"
	"portal/models/value"
)

// fixture is that of the test kit, with what the tests of this package share.
type fixture struct{ *modelstest.Fixture }

type customer = modelstest.Customer

const password = modelstest.Password

var (
	must       = modelstest.Must
	errOf      = modelstest.ErrOf
	checkError = modelstest.CheckError
	form       = modelstest.Form
	restricted = modelstest.Restricted
	newID      = value.NewID
)

// eachDatabase runs a test on SQLite and on PostgreSQL, in parallel with other tests.
func eachDatabase(t *testing.T, run func(t *testing.T, f *fixture)) {
	t.Helper()
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		run(t, &fixture{Fixture: modelstest.NewFixture(t, url, models.Options{})})
	})
}

func TestMain(m *testing.M) { modelstest.Main(m) }
