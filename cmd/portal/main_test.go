package main

import (
	"os"
	"testing"

	"portal/models/modelstest"
)

// actAsPortal is the environment variable that makes the test binary act as the portal.
const actAsPortal = "TEST_BINARY_IS_PORTAL"

func TestMain(m *testing.M) {
	if os.Getenv(actAsPortal) != "" {
		main()
		return
	}
	modelstest.Main(m)
}
