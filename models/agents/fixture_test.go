package agents_test

import (
	"testing"

	"portal/models/modelstest"
	"portal/models/value"
)

type fixture = modelstest.Fixture

type customer = modelstest.Customer

var (
	eachDatabase = modelstest.EachDatabase
	must         = modelstest.Must
	errOf        = modelstest.ErrOf
	checkError   = modelstest.CheckError
	checkErrors  = modelstest.CheckErrors
	checkInvalid = modelstest.CheckInvalid
	newID        = value.NewID
)

func TestMain(m *testing.M) { modelstest.Main(m) }
