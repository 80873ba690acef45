package api

import (
	"fmt"
	"strconv"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
	"portal/models"
)

// readPage returns the page that the query parameters limit and after select, or a 400. The limit
// is fallback unless it is set, and at most most.
func readPage(c *gin.Context, fallback, most int) (models.Page, error) {
	page := models.Page{Limit: fallback}
	if value, set := c.GetQuery("limit"); set {
		limit, err := strconv.Atoi(value)
		if err != nil || limit < 1 || limit > most {
			return page, problem.InvalidRequest(fmt.Sprintf("The query parameter limit is not a number from 1 to %d.", most))
		}
		page.Limit = limit
	}
	if value, set := c.GetQuery("after"); set {
		id, ok := models.ParseID(value)
		if !ok || id == uuid.Nil {
			return page, problem.InvalidRequest("The query parameter after is not an id. Send the value of next from the previous page.")
		}
		page.After = id
	}
	return page, nil
}
