package middleware_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"portal/handlers/middleware"
	"portal/models/modelstest"
)

func TestHeadIsHandledAsGetAndLoggedAsHead(t *testing.T) {
	var log bytes.Buffer
	engine := newEngine(middleware.AccessLog(logTo(&log)))
	engine.GET("/", func(c *gin.Context) { c.String(http.StatusOK, "hello") })
	server := httptest.NewServer(middleware.AsGet(engine, func(string) bool { return false }))
	t.Cleanup(server.Close)

	answer, err := server.Client().Head(server.URL)
	modelstest.Must(t, err)
	defer func() { _ = answer.Body.Close() }()
	content, err := io.ReadAll(answer.Body)
	if err != nil || len(content) > 0 || answer.StatusCode != http.StatusOK || answer.ContentLength != int64(len("hello")) {
		t.Errorf("status %d, length %d, body %q, %v", answer.StatusCode, answer.ContentLength, content, err)
	}
	server.Close() // the line is written by now
	if !strings.Contains(log.String(), `"method":"HEAD"`) {
		t.Errorf("log: %s", log.String())
	}
}

func TestAnyMethodIsHandledAsGetAndLoggedAsItself(t *testing.T) {
	var log bytes.Buffer
	engine := newEngine(middleware.AccessLog(logTo(&log)))
	engine.GET("/any", func(c *gin.Context) { c.Status(http.StatusNoContent) })
	engine.GET("/other", func(c *gin.Context) { c.Status(http.StatusNoContent) })
	handler := middleware.AsGet(engine, func(path string) bool { return path == "/any" })
	for method, logged := range map[string]string{
		http.MethodGet: "GET", http.MethodHead: "HEAD", http.MethodPost: "POST", http.MethodOptions: "OPTIONS",
		http.MethodConnect: "CONNECT", http.MethodTrace: "TRACE", "PROPFIND": "other", "get": "other",
	} {
		log.Reset()
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(method, "/any", http.NoBody))
		if answer.Code != http.StatusNoContent || !strings.Contains(log.String(), `"method":"`+logged+`"`) {
			t.Errorf("%s: status %d, log %s", method, answer.Code, log.String())
		}
	}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/other", http.NoBody))
	if answer.Code != http.StatusNotFound {
		t.Errorf("another path: status %d", answer.Code)
	}
}

func TestAllowListsHeadBesideGet(t *testing.T) {
	engine := newEngine()
	engine.HandleMethodNotAllowed = true
	engine.NoMethod(middleware.AllowHead(), func(c *gin.Context) { c.Status(http.StatusMethodNotAllowed) })
	engine.GET("/page", func(*gin.Context) {})
	engine.POST("/form", func(*gin.Context) {})
	for path, allow := range map[string]string{"/page": "GET, HEAD", "/form": "POST"} {
		answer := serve(engine, httptest.NewRequest(http.MethodPut, path, http.NoBody))
		if got := answer.Header().Get("Allow"); got != allow {
			t.Errorf("%s: Allow %q, want %q", path, got, allow)
		}
	}
}
