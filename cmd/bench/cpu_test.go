package main

import (
	"testing"
	"time"
)

func TestProcessStatusIsParsedForAnyProgramName(t *testing.T) {
	p, err := parseProcess("42 (a) S (b) S 7 42 42 0 -1 4194560 1 2 3 4 150 50 30 20 20 0 5 0\n")
	if err != nil || p != (processTimes{parent: 7, own: 2 * time.Second, reaped: 500 * time.Millisecond}) {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := parseProcess("42 (a) S 7"); err == nil {
		t.Error("a short line is accepted")
	}
}
