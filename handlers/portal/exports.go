package portal

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
)

const (
	// exportBatch is the number of rows that one query reads.
	exportBatch = 200
	// exportWriteTimeout limits the time that the client takes to receive one batch.
	exportWriteTimeout = 30 * time.Second
	maxExports         = 2 // of one user at the same time
)

// exports limits the exports that run for a user at the same time.
type exports struct {
	mu      sync.Mutex
	running map[uuid.UUID]int // by user
}

// Run calls f, which is an export of a user. If two of them are running, Run returns a 429 instead.
func (e *exports) Run(user uuid.UUID, f func() error) error {
	if e.add(user, 1) > maxExports {
		e.add(user, -1)
		// By then, an export whose client does not read it has ended.
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

// exportBatches sends a CSV file with one batch of rows in memory at a time. Each call of read
// returns the next batch.
func exportBatches[T any](
	s *site, c *gin.Context, subject string, columns []string, cells func(T) []string, read func(context.Context) ([]T, error),
) error {
	next := func() (rows []T, err error) {
		err = s.readExport(c, func() error {
			rows, err = read(c.Request.Context())
			return err
		})
		return rows, err
	}
	rows, err := next()
	if err != nil {
		return err
	}
	lines := s.startCSV(c, subject, columns)
	for {
		for _, row := range rows {
			lines += csvLine(cells(row))
		}
		if sendCSV(c, lines) != nil || len(rows) < exportBatch {
			return nil // the client disconnected, or has everything
		}
		lines = ""
		if rows, err = next(); err != nil {
			breakOff(c, err)
		}
	}
}

// breakOff logs the error and breaks the connection, so that the client does not accept an
// incomplete file.
func breakOff(c *gin.Context, err error) {
	_ = c.Error(err)
	panic(http.ErrAbortHandler)
}

// unsafeInFileNames matches what an operating system may refuse in the name of a file.
var unsafeInFileNames = regexp.MustCompile(`[\pC\\/:*?"<>|]+`)

// startCSV sends the header of a CSV file about a subject and returns the file's first line. The
// line begins with a byte order mark, because spreadsheets take a file without it for another
// encoding.
func (s *site) startCSV(c *gin.Context, subject string, columns []string) (line string) {
	name := fmt.Sprintf("%s-%s.csv", unsafeInFileNames.ReplaceAllString(subject, "-"), s.now().UTC().Format(time.DateOnly))
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
