package middleware

import (
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/handlers/problem"
)

// A request waits while others of the same id have all slots. It does not wait for those of another
// id, and after the last one nothing is left in memory.
func TestSlotsOfEachID(t *testing.T) {
	t.Parallel()
	slots := NewSlotsOf(2, 50*time.Millisecond, problem.TooManyAtOnce())
	busy, idle := uuid.New(), uuid.New()
	holding, release := make(chan struct{}), make(chan struct{})
	want := errors.New("the result")
	var requests sync.WaitGroup
	for range 2 {
		requests.Go(func() {
			_ = slots.Run(t.Context(), busy, func() error { holding <- struct{}{}; <-release; return nil })
		})
	}
	<-holding
	<-holding
	p := problem.From(slots.Run(t.Context(), busy, func() error { return want }))
	if p.Status != http.StatusTooManyRequests || p.RetryAfter == 0 {
		t.Errorf("without a free slot, it returns %+v", p)
	}
	if got := slots.Run(t.Context(), idle, func() error { return want }); !errors.Is(got, want) {
		t.Errorf("for another id, got %v", got)
	}
	patient := NewSlotsOf(1, time.Hour, problem.TooManyAtOnce())
	requests.Go(func() {
		_ = patient.Run(t.Context(), busy, func() error { holding <- struct{}{}; <-release; return nil })
	})
	<-holding
	go close(release)
	if got := patient.Run(t.Context(), busy, func() error { return want }); !errors.Is(got, want) {
		t.Errorf("after a wait, got %v", got)
	}
	requests.Wait()
	if n := len(slots.byID) + len(patient.byID); n != 0 {
		t.Errorf("%d ids are still in memory", n)
	}
}
