package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/middleware"
	"portal/handlers/problem"
	"portal/models/value"
)

// maxBody is the largest request body, in bytes.
const maxBody = 16 << 10

const (
	jsonType = "application/json"
	formType = "application/x-www-form-urlencoded"

	responseType = "application/json; charset=utf-8" // as Gin's PureJSON sets it
)

// readBody returns the body of a request with the Content-Type mediaType, with any parameters, or
// else a 415 for another type or a content coding, a 413 for a body over maxBody, or a 400 for a
// truncated body.
func readBody(c *gin.Context, mediaType string) ([]byte, error) {
	types := c.Request.Header.Values("Content-Type")
	if len(types) != 1 {
		return nil, problem.UnsupportedMediaType(mediaType)
	}
	if types[0] != mediaType {
		sent, _, err := mime.ParseMediaType(types[0])
		if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) || sent != mediaType {
			return nil, problem.UnsupportedMediaType(mediaType)
		}
	}
	return readAll(c, maxBody)
}

// readAll returns the body of a request, or a 415 for a content coding, a 413 for a body over the
// limit, or a 400 for a truncated body.
func readAll(c *gin.Context, limit int64) (body []byte, err error) {
	if err := middleware.CheckCoding(c); err != nil {
		return nil, err
	}
	length := c.Request.ContentLength
	if length > limit {
		return nil, problem.PayloadTooLarge(limit)
	}
	if length >= 0 {
		body = make([]byte, length)
		_, err = io.ReadFull(c.Request.Body, body)
	} else {
		body, err = io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, limit))
	}
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return nil, problem.PayloadTooLarge(limit)
	}
	if err != nil {
		return nil, problem.InvalidRequest("The request body is incomplete.")
	}
	return body, nil
}

// usualAgentID returns the id of a body that is {"agentId":"<uuid>"}, with or without a space after
// the colon, as encoders write it. BenchmarkReadTokenRequest compares it with [parseObject], which
// reads all other bodies.
func usualAgentID(body []byte) (id uuid.UUID, ok bool) {
	rest, begins := bytes.CutPrefix(body, []byte(`{"agentId":`))
	rest, quoted := bytes.CutPrefix(bytes.TrimPrefix(rest, []byte(" ")), []byte(`"`))
	text, ends := bytes.CutSuffix(rest, []byte(`"}`))
	if !begins || !quoted || !ends || len(text) != 36 {
		return uuid.Nil, false
	}
	id, err := uuid.ParseBytes(text)
	return id, err == nil
}

// object is a JSON object. If a name occurs twice, the last value counts.
type object struct {
	// A map, because struct fields would match names in any case.
	fields  map[string]any
	example string // for messages
	err     error  // the first error; the values of fields that are read after it are zero
}

// readObject returns a body that is exactly one JSON object. Its error is one of [readBody], or a
// 400 with the example for any other body.
func readObject(c *gin.Context, example string) *object {
	body, err := readBody(c, jsonType)
	if err != nil {
		return &object{err: err}
	}
	return parseObject(body, example)
}

func parseObject(body []byte, example string) *object {
	body = withoutMark(body)
	o := &object{example: example}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	// The decoder ignores the text after the object, and replaces invalid UTF-8.
	if !json.Valid(body) || !utf8.Valid(body) || decoder.Decode(&o.fields) != nil || o.fields == nil {
		o.refuse("The request body is not exactly one JSON object. Send " + example + ".")
	}
	return o
}

// withoutMark returns JSON without the byte order mark before it, which RFC 8259 lets a reader
// ignore.
func withoutMark(body []byte) []byte { return bytes.TrimPrefix(body, []byte("\ufeff")) }

// refuse sets the error to a 400. An earlier error stays.
func (o *object) refuse(message string) {
	if o.err == nil {
		o.err = problem.InvalidRequest(message)
	}
}

func (o *object) has(name string) bool {
	_, present := o.fields[name]
	return present
}

// null reports whether a field is missing or null.
func (o *object) null(name string) bool { return o.fields[name] == nil }

// text returns a field that must be a string.
func (o *object) text(name string) string {
	text, ok := o.fields[name].(string)
	if !o.has(name) {
		o.refuse("The field " + name + " is missing (its name is case-sensitive). Send " + o.example + ".")
	} else if !ok {
		o.refuse("The field " + name + " is not a string.")
	}
	return text
}

// id returns a field that must be a UUID.
func (o *object) id(name string) uuid.UUID {
	id, ok := value.ParseID(o.text(name))
	if !ok {
		o.refuse("The field " + name + " is not a UUID of 36 characters, such as 0198c2f4-7a31-7c6e-9d52-3f8be6a1c004.")
	}
	return id
}

// optional returns the fields of an object, or nil if the field is missing or null.
func (o *object) optional(name string) map[string]any {
	value := o.fields[name]
	fields, ok := value.(map[string]any)
	if !ok && value != nil {
		o.refuse("The field " + name + " is not an object.")
	}
	return fields
}

// truth returns a field that must be true or false, or nil if it is missing.
func (o *object) truth(name string) *bool {
	if !o.has(name) {
		return nil
	}
	truth, ok := o.fields[name].(bool)
	if !ok {
		o.refuse("The field " + name + " is neither true nor false.")
	}
	return &truth
}

// parseTime parses a time (RFC 3339, which allows small letters too). In UTC its year must have
// four digits: SQLite compares and returns no others.
func parseTime(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, strings.ToUpper(text))
	if err == nil && at.UTC().Year() > 9999 {
		err = errors.New("the year has five digits")
	}
	return at, err
}

// readPage returns the page that the query parameters limit and after select, or a 400 if one of
// them is invalid or repeated. Without the parameter, the limit is fallback. The maximum is most.
func readPage(c *gin.Context, fallback, most int) (value.Page, error) {
	page := value.Page{Limit: fallback}
	query := c.Request.URL.RawQuery
	if values := queryValues(query, "limit"); len(values) > 0 {
		limit, err := strconv.Atoi(values[0])
		if len(values) > 1 || err != nil || limit < 1 || limit > most {
			return page, problem.InvalidRequest(fmt.Sprintf("The query parameter limit is not a number from 1 to %d.", most))
		}
		page.Limit = limit
	}
	if values := queryValues(query, "after"); len(values) > 0 {
		id, ok := value.ParseID(values[0])
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
