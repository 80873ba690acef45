package api

import (
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
)

var errStopping = errors.New("the server is stopping")

// showHealth returns 200 while the process lives.
func (s *site) showHealth(c *gin.Context) error {
	c.Header("Cache-Control", "no-store")
	c.PureJSON(http.StatusOK, map[string]string{"status": "ok"})
	return nil
}

// showReadiness returns 200 while the database answers what a token request asks, otherwise 503.
// Once the server begins to stop, it also returns 503, so that proxies send their requests
// elsewhere.
func (s *site) showReadiness(c *gin.Context) error {
	select {
	case <-s.Stopping:
		return problem.Unavailable(errStopping)
	default:
	}
	ctx, cancel := s.withTimeout(c, 0)
	defer cancel()
	if err := s.Store.API.Ready(ctx); err != nil {
		return err
	}
	return s.showHealth(c)
}
