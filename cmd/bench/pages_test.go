package main

import (
	"os"
	"testing"
	"time"
)

func TestDurationsOfPagesAreReadFromTheAccessLog(t *testing.T) {
	log, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = log.WriteString(`{"msg":"request","method":"GET","route":"/agents","status":200,"duration_ns":2000000}
{"msg":"request","method":"POST","route":"/api/widget/token","status":200,"duration_ns":9000000}
{"msg":"request","method":"GET","route":"/agents","status":200,"duration_ns":4000000}
`)
	if err != nil {
		t.Fatal(err)
	}
	took := map[string]*histogram{}
	if err := (&server{log: log}).readDurations(took); err != nil {
		t.Fatal(err)
	}
	if h := took["/agents"]; len(took) != 1 || h.total != 2 || h.percentile(1).Round(100*time.Microsecond) != 4*time.Millisecond {
		t.Errorf("got %v", took)
	}
}
