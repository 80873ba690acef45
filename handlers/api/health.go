package api

import (
	"net/http"

	"github.com/gin-gonic/gin"
)

type healthBody struct {
	Status string `json:"status"`
}

// showHealth returns 200 while the process lives.
func (a *API) showHealth(c *gin.Context) error {
	return healthy(c)
}

// showReadiness returns 200 while the database answers, otherwise 503.
func (a *API) showReadiness(c *gin.Context) error {
	ctx, cancel := withTimeout(c, 0)
	defer cancel()
	if err := a.store.Ping(ctx); err != nil {
		return err
	}
	return healthy(c)
}

func healthy(c *gin.Context) error {
	c.Header("Cache-Control", "no-store")
	c.PureJSON(http.StatusOK, healthBody{Status: "ok"})
	return nil
}
