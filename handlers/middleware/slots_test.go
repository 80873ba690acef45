package middleware_test

import (
	"errors"
	"net/http"
	"testing"

	"portal/handlers/middleware"
	"portal/handlers/problem"
)

func TestSlotsRefuseCallsWhenNoneIsFree(t *testing.T) {
	slots, ran := middleware.NewSlots(1), false
	err := slots.Run(func() error {
		return slots.Run(func() error {
			ran = true
			return nil
		})
	})
	p := problem.From(err)
	if ran || p.Status != http.StatusServiceUnavailable || p.Code != problem.CodeUnavailable || p.RetryAfterSeconds() == "" {
		t.Errorf("a full set of slots returns %+v", p)
	}
	want := errors.New("the result")
	if got := slots.Run(func() error { return want }); !errors.Is(got, want) {
		t.Errorf("got %v", got)
	}
}
