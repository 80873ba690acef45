package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"unicode/utf8"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
	"portal/models"
)

// maxBody is the largest request body, in bytes.
const maxBody = 16 << 10

const (
	jsonType = "application/json"
	formType = "application/x-www-form-urlencoded"

	responseType = "application/json; charset=utf-8" // as Gin's PureJSON sets it
)

// readBody returns the body of a request with the Content-Type mediaType, with any parameters. It
// returns a 415 for another type, a 413 for a body over maxBody, and a 400 for a truncated body.
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
	length := c.Request.ContentLength
	if length > maxBody {
		return nil, problem.PayloadTooLarge(maxBody)
	}
	var body []byte
	var err error
	if length >= 0 {
		body = make([]byte, length)
		_, err = io.ReadFull(c.Request.Body, body)
	} else {
		body, err = io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, maxBody))
	}
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return nil, problem.PayloadTooLarge(maxBody)
	}
	if err != nil {
		return nil, problem.InvalidRequest("The request body is incomplete.")
	}
	return body, nil
}

// readAgentID returns the agentId of the body. It returns the errors of [readObject], and a 400 for
// a missing or malformed id.
func readAgentID(c *gin.Context) (uuid.UUID, error) {
	body, err := readBody(c, jsonType)
	if err != nil {
		return uuid.Nil, err
	}
	if id, ok := usualAgentID(body); ok {
		return id, nil
	}
	object, err := parseObject(body, `{"agentId": "<uuid>"}`)
	if err != nil {
		return uuid.Nil, err
	}
	return object.id("agentId")
}

// usualAgentID returns the id of a body that is {"agentId":"<uuid>"}, with or without a space after
// the colon, as encoders write it. BenchmarkReadAgentID compares it with [parseObject], which reads
// all other bodies.
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
}

// readObject returns a body that is exactly one JSON object. It returns the errors of [readBody],
// and a 400 with the example for any other body.
func readObject(c *gin.Context, example string) (object, error) {
	body, err := readBody(c, jsonType)
	if err != nil {
		return object{}, err
	}
	return parseObject(body, example)
}

func parseObject(body []byte, example string) (object, error) {
	o := object{example: example}
	err := json.Unmarshal(body, &o.fields)
	if _, unsuitable := errors.AsType[*json.UnmarshalTypeError](err); unsuitable && o.fields != nil {
		err = nil // a number, in any field, that does not fit into a float64
	}
	// encoding/json replaces invalid UTF-8 instead of refusing it.
	if err != nil || o.fields == nil || !utf8.Valid(body) {
		return object{}, problem.InvalidRequest("The request body is not exactly one JSON object. Send " + example + ".")
	}
	return o, nil
}

func (o object) has(name string) bool {
	_, present := o.fields[name]
	return present
}

// text returns a field that must be a string.
func (o object) text(name string) (string, error) {
	value, present := o.fields[name]
	if !present {
		return "", problem.InvalidRequest("The field " + name + " is missing (its name is case-sensitive). Send " + o.example + ".")
	}
	text, ok := value.(string)
	if !ok {
		return "", problem.InvalidRequest("The field " + name + " is not a string.")
	}
	return text, nil
}

// id returns a field that must be a UUID.
func (o object) id(name string) (uuid.UUID, error) {
	text, err := o.text(name)
	if err != nil {
		return uuid.Nil, err
	}
	id, ok := models.ParseID(text)
	if !ok {
		return uuid.Nil, problem.InvalidRequest("The field " + name + " is not a UUID of 36 characters, such as 0198c2f4-7a31-7c6e-9d52-3f8be6a1c004.")
	}
	return id, nil
}

// truth returns a field that must be true or false, or nil if it is missing.
func (o object) truth(name string) (*bool, error) {
	value, present := o.fields[name]
	if !present {
		return nil, nil //nolint:nilnil // a missing field is valid
	}
	truth, ok := value.(bool)
	if !ok {
		return nil, problem.InvalidRequest("The field " + name + " is neither true nor false.")
	}
	return &truth, nil
}

// readToken returns the form field token (RFC 7662, section 2.1). It returns the errors of
// [readBody], and a 400 unless the form has exactly one token that is not empty.
func readToken(c *gin.Context) (string, error) {
	body, err := readBody(c, formType)
	if err != nil {
		return "", err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return "", problem.InvalidRequest("The request body is not a valid form. Send token=<widget token>.")
	}
	tokens := form["token"]
	if len(tokens) != 1 || tokens[0] == "" {
		return "", problem.InvalidRequest("The form field token must occur exactly once and contain the widget token. Send token=<widget token>.")
	}
	return tokens[0], nil
}
