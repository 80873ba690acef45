package portal

import (
	"cmp"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
	"portal/models/record"
)

const exportPath = activityPath + "/export"

const (
	// exportBatch is the number of activities in one query.
	exportBatch = 200
	// exportWriteTimeout limits the time that the client takes to receive one batch.
	exportWriteTimeout = 30 * time.Second
	maxExports         = 2 // of one user at the same time
)

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

// exports limits the exports that run for a user at the same time.
type exports struct {
	mu      sync.Mutex
	running map[uuid.UUID]int // by user
}

// Run calls f, which is an export of a user. If two of them are running, Run returns a 429 instead.
func (e *exports) Run(user uuid.UUID, f func() error) error {
	if e.add(user, 1) > maxExports {
		e.add(user, -1)
		// By then, one that its client does not read has ended.
		return problem.TooManyExports(exportWriteTimeout)
	}
	defer e.add(user, -1)
	return f()
}

func (e *exports) add(user uuid.UUID, n int) (running int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running[user] += n; e.running[user] == 0 {
		delete(e.running, user)
	}
	return e.running[user]
}

// readExport calls f, which reads a batch, in a slot and with the database's time limit.
func (s *site) readExport(c *gin.Context, f func() error) (err error) {
	s.withDeadline(c, func() { err = s.actions.RunWhenFree(c.Request.Context(), f) })
	return err
}

// unsafeInFileNames matches what an operating system may refuse in the name of a file.
var unsafeInFileNames = regexp.MustCompile(`[\pC\\/:*?"<>|]+`)

// startCSV sends the header of a CSV file about a subject and returns the file's first line. The
// line begins with a byte order mark, because spreadsheets take a file without it for another
// encoding.
func (s *site) startCSV(c *gin.Context, subject string, columns []string) (line string) {
	name := fmt.Sprintf("%s-%s.csv", unsafeInFileNames.ReplaceAllString(subject, "-"), s.Now().UTC().Format(time.DateOnly))
	c.Header("Cache-Control", "no-store")
	c.Header("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	c.Header("Content-Type", "text/csv; charset=utf-8; header=present")
	c.Status(http.StatusOK)
	return "\ufeff" + csvLine(columns)
}

// sendCSV sends some lines. Because an export may take longer than the server's write timeout for a
// whole response, each call has a timeout of its own. Not every writer supports one.
func sendCSV(c *gin.Context, lines string) error {
	_ = http.NewResponseController(c.Writer).SetWriteDeadline(time.Now().Add(exportWriteTimeout))
	_, err := c.Writer.WriteString(lines)
	c.Writer.Flush()
	return err
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

// csvLine returns a line of quoted cells.
func csvLine(cells []string) string {
	quoted := make([]string, 0, len(cells))
	for _, cell := range cells {
		quoted = append(quoted, `"`+strings.ReplaceAll(escapeFormula(cell), `"`, `""`)+`"`)
	}
	return strings.Join(quoted, ",") + "\r\n"
}

// escapeFormula puts an apostrophe before a cell that a spreadsheet would read as a formula,
// because labels are user input. Some spreadsheets also accept the fullwidth signs.
func escapeFormula(cell string) string {
	if first, _ := utf8.DecodeRuneInString(strings.TrimLeft(cell, " ")); strings.ContainsRune("=+-@＝＋－＠\t\r\n", first) {
		return "'" + cell
	}
	return cell
}
