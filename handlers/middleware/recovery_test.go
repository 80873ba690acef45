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
	"portal/handlers/problem"
	"portal/models/modelstest"
)

func TestPanicIsA500WithoutItsCause(t *testing.T) {
	var log bytes.Buffer
	engine := newEngine(middleware.RequestID(), middleware.AccessLog(logTo(&log)), recovery(&log))
	engine.GET("/", func(*gin.Context) { panic("out of cheese") })
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.Header.Set("Cookie", "session=confidential")
	answer := serve(engine, r)
	if answer.Code != http.StatusInternalServerError || strings.Contains(answer.Body.String(), "cheese") {
		t.Errorf("response: %d %s", answer.Code, answer.Body)
	}
	id := answer.Header().Get("X-Request-Id")
	for _, want := range []string{"out of cheese", "recovery_test.go", `"request_id":"` + id, `"status":500`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in the log: %s", want, log.String())
		}
	}
	if strings.Contains(log.String(), "confidential") {
		t.Errorf("the log contains a cookie: %s", log.String())
	}
}

func TestPanicDuringTheResponseAbortsTheConnection(t *testing.T) {
	engine := newEngine(recovery(io.Discard))
	engine.GET("/", func(c *gin.Context) {
		c.String(http.StatusOK, "half an ")
		c.Writer.Flush()
		panic("out of cheese")
	})
	server := httptest.NewServer(engine)
	t.Cleanup(server.Close)
	answer, err := server.Client().Get(server.URL)
	modelstest.Must(t, err)
	defer func() { _ = answer.Body.Close() }()
	if content, err := io.ReadAll(answer.Body); err == nil {
		t.Errorf("the client cannot see that the response is incomplete: %q", content)
	}
}

func recovery(log io.Writer) gin.HandlerFunc {
	return middleware.Recovery(logTo(log), func(c *gin.Context, err error) {
		p := problem.From(err)
		c.String(p.Status, p.Message)
	})
}
