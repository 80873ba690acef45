package main

import (
	"maps"
	"strings"
	"testing"
)

func TestMetricsWithoutLabelsAreRead(t *testing.T) {
	got, err := parseMetrics(strings.NewReader("# HELP go_goroutines Number of goroutines.\n# TYPE go_goroutines gauge\n" +
		"go_goroutines 27\nprocess_resident_memory_bytes 1.5e+06\nportal_build_info{version=\"a b\"} 1\n"))
	want := map[string]float64{"go_goroutines": 27, "process_resident_memory_bytes": 1.5e6}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := parseMetrics(strings.NewReader("go_goroutines many\n")); err == nil {
		t.Error("a value that is no number is accepted")
	}
}
