package portal

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"portal/models/record"
)

const exportPath = activityPath + "/export"

// exportColumns are the column names in the first line.
var exportColumns = []string{"time", "actor", "action", "label", "subject_id", "address", "key", "former_label", "replaced_key", "count", "detail"}

// export sends the account's activities as CSV (RFC 4180), newest first, with one batch in memory
// at a time.
func (p *activityPages) export(c *gin.Context) error {
	view, err := newActivityView(c.Request.URL.Query())
	if err != nil {
		return err
	}
	view.Limit = exportBatch
	activities, err := p.exportedBatch(c, view.ActivityPage)
	if err != nil {
		return err
	}
	lines := p.startCSV(c, "activity", exportColumns)
	for {
		for _, activity := range activities {
			lines += exportLine(activity)
		}
		if sendCSV(c, lines) != nil || len(activities) < exportBatch {
			return nil // the client disconnected, or has everything
		}
		lines, view.Before = "", activities[len(activities)-1].Position
		if activities, err = p.exportedBatch(c, view.ActivityPage); err != nil {
			_ = c.Error(err)
			// Break the connection, so that the client does not accept an incomplete
			// file.
			panic(http.ErrAbortHandler)
		}
	}
}

func (p *activityPages) exportedBatch(c *gin.Context, wanted record.ActivityPage) (activities []record.Activity, err error) {
	err = p.readExport(c, func() error {
		activities, err = p.activity.List(c.Request.Context(), sessionFrom(c).AccountID, wanted)
		return err
	})
	return activities, err
}

func exportLine(activity record.Activity) string {
	subject := ""
	if activity.SubjectID != nil {
		subject = activity.SubjectID.String()
	}
	return csvLine([]string{
		activity.At.UTC().Format(time.RFC3339), activity.NamedActor(), string(activity.Action),
		activity.Label, subject, activity.Address,
		activity.MaskedKey(), activity.FormerLabel, activity.MaskedReplaced(), strconv.FormatInt(activity.Count+activity.Repeats, 10),
		cmp.Or(activity.Detail, activity.Leak().String()), // a leak has no other detail
	})
}
