package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"portal/handlers/middleware"
	"portal/handlers/problem"
)

func TestRequestIDIsUniqueAndNotChosenByTheClient(t *testing.T) {
	engine := newEngine(middleware.RequestID())
	var seen string
	engine.GET("/", func(c *gin.Context) { seen = middleware.RequestIDOf(c) })
	ids := map[string]bool{}
	for range 3 {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Header.Set("X-Request-Id", "mine")
		id := serve(engine, r).Header().Get("X-Request-Id")
		if id == "" || id == "mine" || ids[id] || id != seen {
			t.Errorf("id %q, the handler saw %q", id, seen)
		}
		ids[id] = true
	}
}

func TestAccessLogHasOneLinePerRequestWithoutInput(t *testing.T) {
	var log bytes.Buffer
	engine := newEngine(middleware.RequestID(), middleware.FindClient(nil), middleware.AccessLog(logTo(&log)))
	engine.POST("/things/:id", func(c *gin.Context) { c.Status(http.StatusNoContent) })
	account, key := uuid.New(), uuid.New()
	engine.GET("/broken", func(c *gin.Context) {
		middleware.SetCaller(c, middleware.Caller{Account: account, Key: key})
		_ = c.Error(errors.New("the disk is full"))
		c.Status(http.StatusInternalServerError)
	})
	send := func(method, path string) map[string]any {
		log.Reset()
		r := httptest.NewRequest(method, path, strings.NewReader("confidential"))
		r.Header.Set("Authorization", "Bearer confidential")
		r.Header.Set("Cookie", "session=confidential")
		answer := serve(engine, r)
		if strings.Contains(strings.ToLower(log.String()), "confidential") || strings.Count(log.String(), "\n") != 1 {
			t.Errorf("log: %s", log.String())
		}
		var line map[string]any
		if err := json.Unmarshal(log.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if line["request_id"] != answer.Header().Get("X-Request-Id") || line["client"] != "192.0.2.1" || line["duration_ns"] == nil {
			t.Errorf("line %v", line)
		}
		return line
	}

	for _, want := range []struct {
		method, path                string
		logged, route, level, cause string
		status                      float64
	}{
		{http.MethodPost, "/things/confidential?q=confidential", "POST", "/things/:id", "INFO", "", http.StatusNoContent},
		{http.MethodGet, "/confidential", "GET", "unmatched", "INFO", "", http.StatusNotFound},
		{"CONFIDENTIAL", "/confidential", "other", "unmatched", "INFO", "", http.StatusNotFound},
		{http.MethodGet, "/broken", "GET", "/broken", "ERROR", "the disk is full", http.StatusInternalServerError},
	} {
		line := send(want.method, want.path)
		got := want
		got.logged, _ = line["method"].(string)
		got.route, _ = line["route"].(string)
		got.level, _ = line["level"].(string)
		got.status, _ = line["status"].(float64)
		got.cause, _ = line["cause"].(string)
		if got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		_, hasUser := line["user_id"]
		if known := want.path == "/broken"; hasUser || known && (line["account_id"] != account.String() || line["key_id"] != key.String()) {
			t.Errorf("the caller is %v", line)
		}
	}
}

func TestClientThatDisconnectsIsLoggedAs499(t *testing.T) {
	var log bytes.Buffer
	registry := prometheus.NewRegistry()
	engine := newEngine(middleware.AccessLog(logTo(&log)), metrics(t, registry), deadline(time.Minute))
	engine.GET("/", func(c *gin.Context) {
		<-c.Request.Context().Done()
		p := problem.From(c.Request.Context().Err())
		_ = c.Error(p)
		c.Status(p.Status)
	})
	ctx, leave := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, leave)
	serve(engine, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody))

	if line := log.String(); !strings.Contains(line, `"status":499`) || !strings.Contains(line, `"level":"INFO"`) {
		t.Errorf("log: %s", line)
	}
	expectSamples(t, registry, `portal_http_requests_total{code="",method="GET",route="/",status="499"} 1`)
}

func TestMissedDeadlineIsLoggedAs503(t *testing.T) {
	var log bytes.Buffer
	engine := newEngine(middleware.AccessLog(logTo(&log)), deadline(time.Millisecond))
	engine.GET("/", func(c *gin.Context) {
		<-c.Request.Context().Done()
		if !errors.Is(c.Request.Context().Err(), context.DeadlineExceeded) {
			t.Errorf("ended by %v", c.Request.Context().Err())
		}
		c.Status(http.StatusServiceUnavailable)
	})
	serve(engine, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	if line := log.String(); !strings.Contains(line, `"status":503`) || !strings.Contains(line, `"level":"ERROR"`) {
		t.Errorf("log: %s", line)
	}
}

func TestRefusedRequestIsAWarning(t *testing.T) {
	var log bytes.Buffer
	full := middleware.NewSlots(0)
	engine := newEngine(middleware.RequestID(), middleware.FindClient(nil), middleware.AccessLog(logTo(&log)))
	engine.GET("/:key", func(c *gin.Context) {
		_ = c.Error(full.Run(func() error { return nil }))
		c.Status(http.StatusServiceUnavailable)
	})
	serve(engine, httptest.NewRequest(http.MethodGet, "/confidential", http.NoBody))
	for _, want := range []string{
		`"level":"WARN","msg":"request refused"`, `"cause":"too many requests use the database"`, `"route":"/:key"`, `"request_id":"`, `"status":503`,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in %s", want, log.String())
		}
	}
}

func deadline(d time.Duration) gin.HandlerFunc {
	return func(c *gin.Context) {
		ctx, cancel := context.WithTimeout(c.Request.Context(), d)
		defer cancel()
		c.Request = c.Request.WithContext(ctx)
		c.Next()
	}
}
