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
)

func TestHeadIsHandledAsGetAndLoggedAsHead(t *testing.T) {
	var log bytes.Buffer
	engine := newEngine(middleware.AccessLog(logTo(&log)))
	engine.GET("/", func(c *gin.Context) { c.String(http.StatusOK, "hello") })
	server := httptest.NewServer(middleware.Head(engine))
	t.Cleanup(server.Close)

	answer, err := server.Client().Head(server.URL)
	if err != nil {
		t.Fatal(err)
	}
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
