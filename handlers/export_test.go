package handlers

import "github.com/gin-gonic/gin"

// Routes are all that the handler of New answers to.
func Routes(d Deps) (gin.RoutesInfo, error) {
	engine, err := newRouter(d)
	if err != nil {
		return nil, err
	}
	return engine.Routes(), nil
}
