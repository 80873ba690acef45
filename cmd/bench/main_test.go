package main

import "testing"

func TestOptionsAreChecked(t *testing.T) {
	o, err := parseOptions([]string{"-quick", "-only", "lone,growth"}, t.Output())
	if err != nil || o.rounds != 1 || len(o.only) != 2 {
		t.Errorf("%+v, %v", o, err)
	}
	for _, args := range [][]string{{"-only", "nothing"}, {"-rounds", "0"}, {"-soak", "0"}, {"growth"}, {"-unknown"}} {
		if _, err := parseOptions(args, t.Output()); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
}
