package record_test

import (
	"testing"

	"portal/models/modelstest"
	"portal/models/value"
)

type fixture = modelstest.Fixture

var (
	eachDatabase = modelstest.EachDatabase
	must         = modelstest.Must
	errOf        = modelstest.ErrOf
	eventually   = modelstest.Eventually
	checkInvalid = modelstest.CheckInvalid
	form         = modelstest.Form
	restricted   = modelstest.Restricted
	newID        = value.NewID
)

func TestMain(m *testing.M) { modelstest.Main(m) }
