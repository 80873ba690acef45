package webhooks_test

import (
	"testing"

	"portal/models/modelstest"
)

type fixture = modelstest.Fixture

var (
	eachDatabase = modelstest.EachDatabase
	must         = modelstest.Must
	checkError   = modelstest.CheckError
)

func TestMain(m *testing.M) { modelstest.Main(m) }
