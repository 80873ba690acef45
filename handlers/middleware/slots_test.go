package middleware_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"portal/handlers/middleware"
	"portal/handlers/problem"
)

func TestFullSlotsRefuseCallsOrLetThemWait(t *testing.T) {
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

	holding, release := make(chan struct{}), make(chan struct{})
	go func() {
		_ = slots.Run(func() error { close(holding); <-release; return nil })
	}()
	<-holding
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if p := problem.From(slots.RunWhenFree(ended, func() error { return nil })); p.Status != http.StatusServiceUnavailable {
		t.Errorf("after the deadline, a full set of slots returns %+v", p)
	}
	go close(release)
	if got := slots.RunWhenFree(t.Context(), func() error { return want }); !errors.Is(got, want) {
		t.Errorf("after a wait, got %v", got)
	}
}
