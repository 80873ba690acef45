package models_test

import (
	"testing"

	"portal/models/modelstest"
)

func TestMain(m *testing.M) { modelstest.Main(m) }
