package outbox_test

import (
	"testing"

	"portal/models/modelstest"
	"portal/models/value"
)

type fixture = modelstest.Fixture

type customer = modelstest.Customer

const password = modelstest.Password

var (
	eachDatabase = modelstest.EachDatabase
	must         = modelstest.Must
	errOf        = modelstest.ErrOf
	checkError   = modelstest.CheckError
	form         = modelstest.Form
	restricted   = modelstest.Restricted
	newID        = value.NewID
)

func TestMain(m *testing.M) { modelstest.Main(m) }
