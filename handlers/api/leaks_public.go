package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
	"portal/models"
)

const (
	// A public report takes at least leakFloor and leakFloorOfKey for each text, so that the
	// time does not show which keys exist.
	leakFloor      = 100 * time.Millisecond
	leakFloorOfKey = 5 * time.Millisecond
	maxPublicLeaks = 100 // texts in a report without credentials
)

// createPublic revokes keys that anyone reports, with the same response for every text.
func (l *leakReports) createPublic(c *gin.Context) error {
	started := time.Now()
	address := c.ClientIP()
	if err := l.limit.limit(c, addressID(address)); err != nil {
		return err
	}
	body, release, err := readLeaks(c, &l.publicBodies)
	defer release()
	if err != nil {
		return err
	}
	texts, err := parsePublicLeaks(body)
	if err != nil {
		return err
	}
	if _, err := l.report(c, texts, models.LeakPublic, address); err != nil {
		return err
	}
	select {
	case <-time.After(time.Until(started.Add(leakFloor + time.Duration(len(texts))*leakFloorOfKey))):
	case <-c.Request.Context().Done():
	}
	c.PureJSON(http.StatusAccepted, struct{}{})
	return nil
}

// parsePublicLeaks returns the texts of a report without credentials, or a 400.
func parsePublicLeaks(body []byte) ([]models.LeakedText, error) {
	const example = `{"keys": ["nas_..."]}`
	// Parsed values would take a multiple of the memory of the body.
	var fields map[string]json.RawMessage
	if !utf8.Valid(body) || json.Unmarshal(body, &fields) != nil || fields == nil {
		return nil, problem.InvalidRequest("The request body is not exactly one JSON object. Send " + example + ".")
	}
	var keys []*string
	err := json.Unmarshal(fields["keys"], &keys)
	if err != nil || len(keys) < 1 || len(keys) > maxPublicLeaks || slices.Contains(keys, nil) {
		return nil, problem.InvalidRequest(fmt.Sprintf("The field keys must be a list of 1 to %d strings. Send %s.", maxPublicLeaks, example))
	}
	leaks := make([]reportedLeak, 0, len(keys))
	for _, key := range keys {
		leaks = append(leaks, reportedLeak{LeakedText: models.NewLeakedText(*key, "")})
	}
	texts, _ := distinct(leaks)
	return texts, nil
}
