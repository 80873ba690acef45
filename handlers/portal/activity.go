package portal

import (
	"cmp"
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"portal/models/keys"
	"portal/models/people"
	"portal/models/record"
	"portal/templates"
)

// activityPages are the activity log and its export.
type activityPages struct {
	*site

	activity *record.ActivityLog
	keys     *keys.Keys
	keyUsage *keys.Usage
	people   *people.People
}

// activitiesPerPage is the number of activities on a page.
const activitiesPerPage = 50

// list shows the account's activities, newest first.
func (p *activityPages) list(c *gin.Context) error {
	page, err := p.read(c, c.Request.URL.Query())
	if err != nil {
		return err
	}
	return p.reply(c, reply{fragment: page, page: present(page)})
}

// filter shows the activities that match a form, which is sent with POST because a key that is
// pasted into the search must not reach a URL.
func (p *activityPages) filter(c *gin.Context) error {
	page, err := p.read(c, c.Request.PostForm)
	if err != nil {
		return err
	}
	return p.reply(c, reply{fragment: page, location: page.Newest, address: page.Newest})
}

// read reads the page of the view that the parameters describe.
func (p *activityPages) read(c *gin.Context, parameters url.Values) (page templates.ActivityPage, err error) {
	view, err := newActivityView(parameters)
	if err != nil {
		return page, err
	}
	if view.Before, err = queryID(c, paramBefore); err != nil {
		return page, err
	}
	view.Limit = activitiesPerPage + 1 // to see whether there are older ones
	account, ctx := sessionFrom(c).AccountID, c.Request.Context()
	page = templates.ActivityPage{Paged: view.Before != uuid.Nil, Newest: view.address(activityPath), Export: view.address(exportPath)}
	// Under load, a statement mostly waits, so the two reads run at the same time.
	var activities []record.Activity
	var reads errgroup.Group
	reads.Go(func() (err error) {
		activities, err = p.activity.List(ctx, account, view.ActivityPage)
		return err
	})
	page.Filter, err = p.filterForm(c, view)
	if err := cmp.Or(reads.Wait(), err); err != nil {
		return page, err
	}
	if len(activities) > activitiesPerPage {
		activities = activities[:activitiesPerPage]
		view.query.Set(paramBefore, activities[activitiesPerPage-1].Position.String())
		page.Older = view.address(activityPath)
	}
	items, err := p.items(ctx, account, activities)
	page.Days = templates.ActivityDays(items)
	return page, err
}

// items returns the activities as the page shows them. A revocation also has the number of
// requests with the key that were refused in the last hour.
func (p *activityPages) items(ctx context.Context, accountID uuid.UUID, activities []record.Activity) ([]templates.ActivityItem, error) {
	var revoked []uuid.UUID
	for _, activity := range activities {
		if activity.RevokesKey() {
			revoked = append(revoked, *activity.SubjectID)
		}
	}
	var usage map[uuid.UUID]keys.KeyUsage
	if len(revoked) > 0 {
		var err error
		if usage, err = p.keyUsage.Of(ctx, accountID, lastHour, revoked...); err != nil {
			return nil, err
		}
	}
	now := p.now()
	var items []templates.ActivityItem
	for _, activity := range activities {
		item := templates.ActivityItem{Activity: activity, When: templates.NewMoment(activity.At, now)}
		if item.KeyLastFour != "" {
			item.KeyAddress = activityPath + "?" + url.Values{paramKey: {activity.SubjectID.String()}}.Encode()
		}
		if activity.RevokesKey() {
			_, refusals := usage[*activity.SubjectID].Total()
			item.Refusals = templates.Count(refusals)
		}
		items = append(items, item)
	}
	return items, nil
}

const exportPath = activityPath + "/export"

// exportColumns are the column names in the first line.
var exportColumns = []string{"time", "actor", "action", "label", "subject_id", "address", "key", "former_label", "replaced_key", "count", "detail"}

// export sends the account's activities as CSV (RFC 4180), newest first.
func (p *activityPages) export(c *gin.Context) error {
	view, err := newActivityView(c.Request.URL.Query())
	if err != nil {
		return err
	}
	view.Limit = exportBatch
	return exportBatches(p.site, c, "activity", exportColumns, exportCells, func(ctx context.Context) ([]record.Activity, error) {
		activities, err := p.activity.List(ctx, sessionFrom(c).AccountID, view.ActivityPage)
		if n := len(activities); n > 0 {
			view.Before = activities[n-1].Position
		}
		return activities, err
	})
}

func exportCells(activity record.Activity) []string {
	subject := ""
	if activity.SubjectID != nil {
		subject = activity.SubjectID.String()
	}
	return []string{
		activity.At.UTC().Format(time.RFC3339), activity.NamedActor(), string(activity.Action),
		activity.Label, subject, activity.Address,
		activity.MaskedKey(), activity.FormerLabel, activity.MaskedReplaced(), strconv.FormatInt(activity.Count+activity.Repeats, 10),
		cmp.Or(activity.Detail, activity.Leak().String()), // a leak has no other detail
	}
}
