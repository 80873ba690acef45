package webhooks_test

import (
	"testing"

	"portal/models"
	"portal/models/modelstest"
)

// fixture is that of the test kit, with what the tests of this package share.
type fixture struct{ *modelstest.Fixture }

var (
	must       = modelstest.Must
	checkError = modelstest.CheckError
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
