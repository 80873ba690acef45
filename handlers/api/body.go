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

// maxBody is the largest request body, in bytes. What is sent here is an id or
// a token.
const maxBody = 16 << 10

const (
	jsonType = "application/json"
	formType = "application/x-www-form-urlencoded"
)

// jsonSpace is what RFC 8259, section 2, allows around any token.
const jsonSpace = " \t\n\r"

// readBody returns the body of a request whose Content-Type is mediaType,
// whatever its parameters. It errs with a 415, a 413, or a 400 when the body
// breaks off, in this order.
func readBody(c *gin.Context, mediaType string) ([]byte, error) {
	types := c.Request.Header.Values("Content-Type")
	if len(types) != 1 {
		return nil, problem.UnsupportedMediaType(mediaType)
	}
	sent, _, err := mime.ParseMediaType(types[0])
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) || sent != mediaType {
		return nil, problem.UnsupportedMediaType(mediaType)
	}
	length := c.Request.ContentLength
	if length > maxBody {
		return nil, problem.PayloadTooLarge(maxBody)
	}
	var body []byte
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
		return nil, problem.InvalidRequest("The request body breaks off before its end.")
	}
	return body, nil
}

// readAgentID returns the agentId of a body that is exactly one JSON object. Of
// a name that is there twice the last value counts; other names are ignored.
// It errs as [readBody] does, and with a 400.
func readAgentID(c *gin.Context) (uuid.UUID, error) {
	body, err := readBody(c, jsonType)
	if err != nil {
		return uuid.Nil, err
	}
	if id, ok := agentIDAlone(body); ok {
		return id, nil
	}
	// A map, since a struct's fields match names in any case. Invalid UTF-8 is
	// refused by hand: the decoder would put other characters in its place.
	var object map[string]json.RawMessage
	if !utf8.Valid(body) || json.Unmarshal(body, &object) != nil || object == nil {
		return uuid.Nil, problem.InvalidRequest(`The request body is not exactly one JSON object. Send {"agentId": "<uuid>"}.`)
	}
	value, present := object["agentId"]
	if !present {
		return uuid.Nil, problem.InvalidRequest(`The field agentId is missing (its name is case-sensitive). Send {"agentId": "<uuid>"}.`)
	}
	var text *string // null leaves it nil
	if json.Unmarshal(value, &text) != nil || text == nil {
		return uuid.Nil, problem.InvalidRequest("The field agentId is not a string.")
	}
	id, ok := models.ParseID(*text)
	if !ok {
		return uuid.Nil, problem.InvalidRequest("The field agentId is not a UUID of 36 characters, such as 0198c2f4-7a31-7c6e-9d52-3f8be6a1c004.")
	}
	return id, nil
}

// agentIDAlone returns the id of a body that is {"agentId":"<uuid>"}, white space
// aside, as nearly all are: the decoder takes ten times as long to say the same.
// It is for the decoder to say what is wrong with any other.
func agentIDAlone(body []byte) (id uuid.UUID, ok bool) {
	rest := body
	for _, token := range []string{"{", `"agentId"`, ":", `"`} {
		if rest, ok = bytes.CutPrefix(bytes.TrimLeft(rest, jsonSpace), []byte(token)); !ok {
			return uuid.Nil, false
		}
	}
	text, rest, closed := bytes.Cut(rest, []byte(`"`))
	id, ok = models.ParseID(string(text))
	return id, ok && closed && string(bytes.Trim(rest, jsonSpace)) == "}"
}

// readToken returns the form field token (RFC 7662, section 2.1). It errs as
// [readBody] does, and with a 400 where the field is missing, empty or there
// more than once.
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
		return "", problem.InvalidRequest("The form field token has to be there once and hold the widget token. Send token=<widget token>.")
	}
	return tokens[0], nil
}
