package api

import (
	"context"

	"github.com/gin-gonic/gin"

	"portal/models"
)

// listUsage returns a page of the usage of the keys of the account of the caller, by day.
func (cs *customers) listUsage(c *gin.Context, caller models.Principal) error {
	params := &reportQuery{raw: c.Request.URL.RawQuery}
	page := models.DayPage{
		KeyID: params.id("keyId"), From: params.time("from"), Until: params.time("to"), Limit: params.limit(),
	}
	if after := params.value("after"); after != "" {
		place, ok := models.ParseDayPlace(after)
		if page.After = place; !ok {
			params.refuse("after", "the value of next from an earlier page")
		}
	}
	if params.err != nil {
		return params.err
	}
	days, err := query(cs.site, c, caller.Waited(), func(ctx context.Context) ([]models.KeyDay, error) {
		return cs.Store.Keys.Days(ctx, caller.AccountID, page)
	})
	if err != nil {
		return err
	}
	next := ""
	if len(days) > 0 {
		next = days[len(days)-1].Place().String()
	}
	return sendReport(c, "usage", bodiesOf(days, models.KeyDay.Element), next)
}
