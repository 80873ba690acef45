package templates_test

import (
	"testing"

	"portal/templates"
)

func TestCountHasThousandsSeparators(t *testing.T) {
	for n, want := range map[templates.Count]string{
		0: "0", 999: "999", 1204: "1,204", 100000: "100,000", 1234567: "1,234,567", -999: "-999", -1000: "-1,000",
	} {
		if got := n.String(); got != want {
			t.Errorf("Count(%d) = %q, want %q", int64(n), got, want)
		}
	}
}
