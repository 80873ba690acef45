package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"portal/handlers/problem"
	"portal/models"
)

const maxLeaks = 1000 // texts in the report of a scanner

// reportedLeak is one entry in the report of a scanner.
type reportedLeak struct {
	models.LeakedText

	kind string // the scanner's name for keys of this portal
}

// parseScannerReport returns the entries of a report that is a list of objects with type, token and
// a URL in the field with this name, or a 400 for any other body. It stops at the first entry that
// is too many, so that a body cannot use a multiple of its own memory.
func parseScannerReport(body []byte, urlField string) (leaks []reportedLeak, err error) {
	invalid := problem.InvalidRequest(fmt.Sprintf(
		`The request body is not a list of at most %d reports. Send [{"type": "...", "token": "nas_...", %q: "..."}].`, maxLeaks, urlField))
	decoder := json.NewDecoder(bytes.NewReader(body))
	if start, err := decoder.Token(); err != nil || start != json.Delim('[') || !utf8.Valid(body) {
		return nil, invalid
	}
	for decoder.More() {
		var fields map[string]any
		if err := decoder.Decode(&fields); err != nil || len(leaks) == maxLeaks {
			return nil, invalid
		}
		token, ok := fields["token"].(string)
		if !ok {
			return nil, invalid
		}
		kind, _ := fields["type"].(string)
		where, _ := fields[urlField].(string)
		leaks = append(leaks, reportedLeak{models.NewLeakedText(token, where), kind})
	}
	if _, err := decoder.Token(); err != nil { // the end of the list
		return nil, invalid
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, invalid
	}
	return leaks, nil
}

// distinct returns the first entry of each text, and its kind.
func distinct(leaks []reportedLeak) (texts []models.LeakedText, kinds []string) {
	seen := map[[sha256.Size]byte]bool{}
	for _, leak := range leaks {
		if !seen[leak.Hash()] {
			seen[leak.Hash()] = true
			texts, kinds = append(texts, leak.LeakedText), append(kinds, leak.kind)
		}
	}
	return texts, kinds
}
