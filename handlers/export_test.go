package handlers

import "github.com/gin-gonic/gin"

// Routes returns the routes of the handler that New returns.
func Routes(d Deps) (gin.RoutesInfo, error) {
	engine, err := newRouter(d)
	if err != nil {
		return nil, err
	}
	return engine.Routes(), nil
}
