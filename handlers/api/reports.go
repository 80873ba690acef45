package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/middleware"
	"portal/handlers/problem"
	"portal/models/keys"
	"portal/models/value"
)

const (
	// The default and the maximum number of elements on a page of a report.
	reportPage    = 100
	maxReportPage = 1000

	// maxReports limits how many reports of an account run at once. More wait for up to
	// reportWait.
	maxReports = 2
	reportWait = time.Second

	lines = "application/x-ndjson"
)

// reportRate is the limit of an account's reports, whatever the number of its keys.
var reportRate = middleware.RateLimit{PerSecond: 10, Burst: 100}

func (cs *customers) report(h keyedHandler) keyedHandler {
	return func(c *gin.Context, caller keys.Principal) error {
		if err := cs.ofReports.limit(c, caller.AccountID); err != nil {
			return err
		}
		return middleware.Respond(c, func(f func() error) error {
			return cs.reports.Run(c.Request.Context(), caller.AccountID, f)
		}, func() error { return h(c, caller) })
	}
}

// reportQuery reads the query parameters of a report. Its error is a 400 for the first one that is
// malformed or repeated.
type reportQuery struct {
	raw string
	err error
}

// value returns the value of a parameter, or "" if it is missing.
func (q *reportQuery) value(name string) string {
	values := queryValues(q.raw, name)
	switch {
	case len(values) == 0:
		return ""
	case len(values) > 1 || values[0] == "":
		q.refuse(name, "given once, with a value")
	}
	return values[0]
}

func (q *reportQuery) refuse(name, want string) {
	if q.err == nil {
		q.err = problem.InvalidRequest(fmt.Sprintf("The query parameter %s is not %s.", name, want))
	}
}

func (q *reportQuery) limit() int {
	text := q.value("limit")
	if text == "" {
		return reportPage
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > maxReportPage {
		q.refuse("limit", fmt.Sprintf("a number from 1 to %d", maxReportPage))
	}
	return limit
}

// time returns a time (RFC 3339), or the zero time if the parameter is missing. For a year before
// 1970 it returns 1970: nothing is older, and PostgreSQL has no year 0.
func (q *reportQuery) time(name string) time.Time {
	text := q.value(name)
	if text == "" {
		return time.Time{}
	}
	at, err := parseTime(text)
	if err != nil {
		want := "a time such as 2026-11-22T09:30:00Z"
		if _, err := parseTime(strings.Replace(text, " ", "+", 1)); err == nil {
			want += ". In a URL, + is a space: write %2B"
		}
		q.refuse(name, want)
	}
	if epoch := time.Unix(0, 0); at.Before(epoch) {
		at = epoch
	}
	return at.UTC()
}

func (q *reportQuery) id(name string) uuid.UUID {
	text := q.value(name)
	if text == "" {
		return uuid.Nil
	}
	id, ok := value.ParseID(text)
	if !ok || id == uuid.Nil {
		q.refuse(name, "a UUID of 36 characters")
	}
	return id
}

// sendReport sends a page of a report: as JSON, with its elements under the name, or one a line if
// the client asks for that. The place after the last element is next, or "" if the page is empty;
// then the page repeats the one that was asked for.
func sendReport[E any](c *gin.Context, name string, elements []E, next string) error {
	if next == "" {
		if values := queryValues(c.Request.URL.RawQuery, "after"); len(values) > 0 {
			next = values[0]
		}
	}
	c.Header("Vary", "Accept")
	if !acceptsLines(middleware.AcceptedBy(c.Request)) {
		body := map[string]any{name: elements, "next": nil}
		if next != "" {
			body["next"] = next
		}
		return send(c, http.StatusOK, body, nil)
	}
	if next != "" {
		query := c.Request.URL.Query()
		query.Set("after", next)
		c.Header("Link", "<"+(&url.URL{Path: c.Request.URL.Path, RawQuery: query.Encode()}).String()+`>; rel="next"`)
	}
	var body bytes.Buffer
	encoder := json.NewEncoder(&body) // ends each element with a line break
	encoder.SetEscapeHTML(false)
	for _, element := range elements {
		if err := encoder.Encode(element); err != nil {
			return err
		}
	}
	c.Data(http.StatusOK, lines, body.Bytes())
	return nil
}

// acceptsLines reports whether the client asks for one element a line: it must name the type, and
// accept it at least as much as JSON.
func acceptsLines(accepted middleware.Accepted) bool {
	asLines, named := accepted.Quality(lines)
	asJSON, _ := accepted.Quality(jsonType)
	return named && asLines > 0 && asLines >= asJSON
}
