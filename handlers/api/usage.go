package api

import (
	"context"
	"time"

	"github.com/gin-gonic/gin"

	"portal/models/keys"
)

// sendUsage sends the page of the usage of keys by day that the query parameters select.
func (s *site) sendUsage(
	c *gin.Context, waited time.Duration, list func(context.Context, keys.DayPage) ([]keys.KeyDay, error),
) error {
	params := &reportQuery{raw: c.Request.URL.RawQuery}
	page := keys.DayPage{
		KeyID: params.id("keyId"), From: params.time("from"), Until: params.time("to"), Limit: params.limit(),
	}
	if after := params.value("after"); after != "" {
		place, ok := keys.ParseDayPlace(after)
		if page.After = place; !ok {
			params.refuse("after", "the value of next from an earlier page")
		}
	}
	if params.err != nil {
		return params.err
	}
	days, err := query(s, c, waited, func(ctx context.Context) ([]keys.KeyDay, error) {
		return list(ctx, page)
	})
	if err != nil {
		return err
	}
	next := ""
	if len(days) > 0 {
		next = days[len(days)-1].Place().String()
	}
	return sendReport(c, "usage", bodiesOf(days, keys.KeyDay.Element), next)
}

// listUsage returns a page of the usage of the keys of the account of the caller.
func (cs *customers) listUsage(c *gin.Context, caller keys.Principal) error {
	return cs.sendUsage(c, caller.Waited(), func(ctx context.Context, page keys.DayPage) ([]keys.KeyDay, error) {
		return cs.usage.Days(ctx, caller.AccountID, page)
	})
}

// listUsage returns a page of the usage of an account's keys.
func (o *operators) listUsage(c *gin.Context) error {
	id, err := accountID(c)
	if err != nil {
		return err
	}
	return o.sendUsage(c, 0, func(ctx context.Context, page keys.DayPage) ([]keys.KeyDay, error) {
		if _, err := o.store.Accounts.Find(ctx, id); err != nil {
			return nil, err
		}
		return o.store.Usage.Days(ctx, id, page)
	})
}
