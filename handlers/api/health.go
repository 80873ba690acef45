package api

import (
	"net/http"

	"github.com/gin-gonic/gin"
)

type healthBody struct {
	Status string `json:"status"`
}

// showHealth answers while the process lives.
func (a *API) showHealth(c *gin.Context) error {
	return healthy(c)
}

// showReadiness answers 200 only while the database does.
func (a *API) showReadiness(c *gin.Context) error {
	ctx, cancel := databaseContext(c, 0)
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
