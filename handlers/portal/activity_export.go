package portal

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"portal/models"
)

const exportPath = activityPath + "/export"

const (
	// exportedAtOnce is how many lines of the record are read at once.
	exportedAtOnce = 200
	// exportPatience is how long whoever downloads may take for so many lines.
	exportPatience = 30 * time.Second
)

// exportColumns are the names of the columns, in the first line.
var exportColumns = []string{"time", "actor", "action", "label", "subject_id", "address", "key", "former_label", "replaced_key"}

// exportActivities sends the account's record as CSV (RFC 4180), newest first.
// However long it is, little of it is in memory at any time.
func (p *Portal) exportActivities(c *gin.Context) error {
	kind, err := activityKind(c)
	if err != nil {
		return err
	}
	wanted := models.ActivityPage{Action: kind, Limit: exportedAtOnce}
	activities, err := p.exportedPage(c, wanted)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("activity-%s.csv", p.now().UTC().Format(time.DateOnly))
	c.Header("Cache-Control", "no-store")
	c.Header("Content-Disposition", `attachment; filename="`+name+`"`)
	c.Header("Content-Type", "text/csv; charset=utf-8; header=present")
	c.Status(http.StatusOK)
	lines := csvLine(exportColumns)
	for {
		for _, activity := range activities {
			lines += exportLine(activity)
		}
		// A server that ends answers that take too long must not end this one.
		_ = http.NewResponseController(c.Writer).SetWriteDeadline(time.Now().Add(exportPatience)) // not every writer has one
		if _, err := c.Writer.WriteString(lines); err != nil {
			return nil // whoever asked has left
		}
		c.Writer.Flush()
		if len(activities) < exportedAtOnce {
			return nil
		}
		lines, wanted.Before = "", activities[len(activities)-1].ID
		if activities, err = p.exportedPage(c, wanted); err != nil {
			_ = c.Error(err)
			// What was sent must not be taken for the whole.
			panic(http.ErrAbortHandler)
		}
	}
}

// exportedPage reads a part of the record within the time that the database has.
func (p *Portal) exportedPage(c *gin.Context, wanted models.ActivityPage) ([]models.Activity, error) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), models.Timeout)
	defer cancel()
	return p.store.Activities(ctx, customer(c).AccountID, wanted)
}

func exportLine(activity models.Activity) string {
	subject := ""
	if activity.SubjectID != nil {
		subject = activity.SubjectID.String()
	}
	return csvLine([]string{
		activity.At.UTC().Format(time.RFC3339), activity.ActorName, string(activity.Action),
		activity.Label, subject, activity.Address,
		activity.MaskedKey(), activity.FormerLabel, activity.MaskedReplaced(),
	})
}

// csvLine quotes every cell.
func csvLine(cells []string) string {
	quoted := make([]string, 0, len(cells))
	for _, cell := range cells {
		quoted = append(quoted, `"`+strings.ReplaceAll(inert(cell), `"`, `""`)+`"`)
	}
	return strings.Join(quoted, ",") + "\r\n"
}

// inert keeps a spreadsheet from taking for a formula what somebody has chosen
// as a label or sent as a name: an apostrophe before it makes it text. The signs
// of double width count as well, for some spreadsheets take them for the others.
func inert(cell string) string {
	if first, _ := utf8.DecodeRuneInString(strings.TrimLeft(cell, " ")); strings.ContainsRune("=+-@＝＋－＠\t\r\n", first) {
		return "'" + cell
	}
	return cell
}
