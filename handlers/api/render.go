package api

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"portal/handlers/middleware"
	"portal/handlers/problem"
)

// handler writes a response or returns an error.
type handler func(*gin.Context) error

// handle adapts a handler and renders its error.
func handle(h handler) gin.HandlerFunc {
	return func(c *gin.Context) {
		if err := h(c); err != nil {
			Render(c, err)
		}
	}
}

// errorBody is the body of every error: exactly these two fields.
type errorBody struct {
	Error string `json:"error"`
	Code  string `json:"code"`
}

// Render writes err as the response, and the cause of a 5xx to the log only.
func Render(c *gin.Context, err error) {
	p := problem.From(err)
	if p.Status >= http.StatusInternalServerError {
		_ = c.Error(err) // for the log
	}
	middleware.SetCode(c, p.Code)
	c.Header("Cache-Control", "no-store")
	if p.Reason != "" {
		c.Header("X-Error-Reason", p.Reason)
	}
	if seconds := p.RetryAfterSeconds(); seconds != "" {
		c.Header("Retry-After", seconds)
	}
	// HTML escaping would make <API_KEY> unreadable in a terminal.
	c.AbortWithStatusPureJSON(p.Status, errorBody{Error: p.Message, Code: p.Code})
}

// send sends the body, or returns the error if there is one.
func send(c *gin.Context, status int, body any, err error) error {
	if err == nil {
		c.PureJSON(status, body)
	}
	return err
}

// bodiesOf returns the bodies of the items of a list, never nil.
func bodiesOf[T, B any](items []T, body func(T) B) []B {
	bodies := make([]B, 0, len(items))
	for _, item := range items {
		bodies = append(bodies, body(item))
	}
	return bodies
}

// putStatus returns the status of the response to a PUT.
func putStatus(created bool) int {
	if created {
		return http.StatusCreated
	}
	return http.StatusOK
}

// setChallenge sets the header that every 401 has (RFC 6750, section 3).
func setChallenge(c *gin.Context, sentCredentials bool) {
	challenge := `Bearer realm="api"`
	if sentCredentials {
		challenge = `Bearer realm="api", error="invalid_token"`
	}
	c.Header("WWW-Authenticate", challenge)
}
