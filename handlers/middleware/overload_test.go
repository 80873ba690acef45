package middleware_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"portal/handlers/middleware"
	"portal/handlers/problem"
)

// An overloaded server refuses the group that has more running requests, and no probe.
func TestOverloadRefusesTheGroupThatCausesIt(t *testing.T) {
	engine := gin.New()
	engine.Use(middleware.Overload(
		func(r *http.Request) bool { return r.Header.Get("Overloaded") != "" },
		func(path string) bool { return strings.HasPrefix(path, "/api/") },
		func(c *gin.Context, err error) { c.AbortWithStatus(problem.From(err).Status) },
	))
	running, end := make(chan struct{}), make(chan struct{})
	engine.GET("/*path", func(c *gin.Context) {
		if c.Param("path") == "/api/slow" {
			running <- struct{}{}
			<-end
		}
	})
	get := func(path, overloaded string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
		r.Header.Set("Overloaded", overloaded)
		w := httptest.NewRecorder()
		engine.ServeHTTP(w, r)
		return w
	}
	done := make(chan struct{})
	go func() {
		get("/api/slow", "")
		close(done)
	}()
	<-running
	for path, want := range map[string]int{
		"/api/agents": http.StatusServiceUnavailable, "/login": http.StatusOK, "/healthz": http.StatusOK, "/readyz": http.StatusOK,
	} {
		if w := get(path, "yes"); w.Code != want || w.Header().Get("Connection") != "close" {
			t.Errorf("%s: status %d, headers %v, want %d", path, w.Code, w.Header(), want)
		}
		if w := get(path, ""); w.Code != http.StatusOK || w.Header().Get("Connection") != "" {
			t.Errorf("%s on a server that is not overloaded: status %d", path, w.Code)
		}
	}
	close(end)
	<-done
}

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
