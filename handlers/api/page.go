package api

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
	"portal/models"
)

// readPage returns the page that the query parameters limit and after select, or a 400 if one of
// them is invalid or repeated. Without the parameter, the limit is fallback. The maximum is most.
func readPage(c *gin.Context, fallback, most int) (models.Page, error) {
	page := models.Page{Limit: fallback}
	query := c.Request.URL.RawQuery
	if values := queryValues(query, "limit"); len(values) > 0 {
		limit, err := strconv.Atoi(values[0])
		if len(values) > 1 || err != nil || limit < 1 || limit > most {
			return page, problem.InvalidRequest(fmt.Sprintf("The query parameter limit is not a number from 1 to %d.", most))
		}
		page.Limit = limit
	}
	if values := queryValues(query, "after"); len(values) > 0 {
		id, ok := models.ParseID(values[0])
		if len(values) > 1 || !ok || id == uuid.Nil {
			return page, problem.InvalidRequest("The query parameter after is not an id. Send the value of next from the previous page.")
		}
		page.After = id
	}
	return page, nil
}

// queryValues returns the values of a query parameter. A malformed value is empty. Unlike
// url.ParseQuery it does not drop malformed pairs, so that no check is skipped because of them.
func queryValues(query, name string) (values []string) {
	for pair := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(pair, "=")
		if key, err := url.QueryUnescape(key); err != nil || key != name {
			continue
		}
		value, err := url.QueryUnescape(value)
		if err != nil {
			value = ""
		}
		values = append(values, value)
	}
	return values
}
