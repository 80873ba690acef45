package main

import (
	"os"
	"testing"

	"portal/models/modelstest"
)

// actAsPortal makes the test binary be the portal, so that tests can run it as a process of its own without a build.
const actAsPortal = "TEST_BINARY_IS_PORTAL"

func TestMain(m *testing.M) {
	if os.Getenv(actAsPortal) != "" {
		main()
		return
	}
	modelstest.Main(m)
}
