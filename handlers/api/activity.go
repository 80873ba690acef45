package api

import (
	"context"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/models/keys"
	"portal/models/record"
)

type operatorActivity struct {
	record.ActivityElement

	AccountID uuid.UUID `json:"accountId"`
}

// readActivity returns the page of activities that the query parameters select, the oldest first.
func readActivity(s *site, activity *record.ActivityLog, c *gin.Context, params *reportQuery, accountID uuid.UUID, waited time.Duration) ([]record.Activity, string, error) {
	page := record.ActivityReport{
		AccountID: accountID, After: params.id("after"), From: params.time("from"), Until: params.time("to"), Limit: params.limit(),
	}
	if params.err != nil {
		return nil, "", params.err
	}
	activities, err := query(s, c, waited, func(ctx context.Context) ([]record.Activity, error) {
		return activity.Report(ctx, page)
	})
	next := ""
	if len(activities) > 0 {
		next = activities[len(activities)-1].ID.String()
	}
	return activities, next, err
}

// listActivity returns a page of the activity of the account of the caller.
func (cs *customers) listActivity(c *gin.Context, caller keys.Principal) error {
	params := &reportQuery{raw: c.Request.URL.RawQuery}
	activities, next, err := readActivity(cs.site, cs.activity, c, params, caller.AccountID, caller.Waited())
	if err != nil {
		return err
	}
	return sendReport(c, "activities", bodiesOf(activities, record.Activity.Element), next)
}

// listActivity returns a page of the activity of all accounts, or of one.
func (o *operators) listActivity(c *gin.Context) error {
	params := &reportQuery{raw: c.Request.URL.RawQuery}
	activities, next, err := readActivity(o.site, o.store.Activity, c, params, params.id("accountId"), 0)
	if err != nil {
		return err
	}
	body := func(a record.Activity) operatorActivity { return operatorActivity{a.Element(), a.AccountID} }
	return sendReport(c, "activities", bodiesOf(activities, body), next)
}
