package middleware_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"

	"github.com/gin-gonic/gin"
)

func newEngine(chain ...gin.HandlerFunc) *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.Use(chain...)
	return engine
}

func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, r)
	return answer
}

func logTo(w io.Writer) *slog.Logger { return slog.New(slog.NewJSONHandler(w, nil)) }
