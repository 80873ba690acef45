package people_test

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
	must         = modelstest.Must
	errOf        = modelstest.ErrOf
	eventually   = modelstest.Eventually
	checkError   = modelstest.CheckError
	checkErrors  = modelstest.CheckErrors
	checkInvalid = modelstest.CheckInvalid
	form         = modelstest.Form
	newID        = value.NewID
)

func newFixture(t *testing.T, url string, options models.Options) *fixture {
	t.Helper()
	return &fixture{Fixture: modelstest.NewFixture(t, url, options)}
}

// eachDatabase is [modelstest.EachDatabase] with the fixture of this package.
func eachDatabase(t *testing.T, run func(t *testing.T, f *fixture)) {
	t.Helper()
	modelstest.EachDatabase(t, func(t *testing.T, f *modelstest.Fixture) { run(t, &fixture{f}) })
}

func TestMain(m *testing.M) { modelstest.Main(m) }
