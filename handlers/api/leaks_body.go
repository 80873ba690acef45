package api

import (
	"bytes"
	"container/list"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/middleware"
	"portal/handlers/problem"
	"portal/models/keys"
	"portal/models/value"
)

const (
	maxPublicBody  = 64 << 10 // of a report without credentials
	maxScannerBody = 1 << 20
	// smallLeakBody is how many bytes of a body may take the time of a request. The rest must
	// arrive within largeLeakTime.
	smallLeakBody = 64 << 10
	largeLeakTime = 3 * time.Second
	// maxLeakBodies is how many bytes of bodies are in memory, in public reports and in those
	// of the scanner. A client that sends slowly holds only what it has sent.
	maxLeakBodies = 32 << 20
	// maxLeakBodiesOfAddress is how many bytes of them one address has sent. The scanner may
	// send many reports together, and behind a proxy that the portal does not know all of them
	// have one address. It has a limit too, because a body must be read before its signature is
	// checked, so that anyone can send one.
	maxLeakBodiesOfAddress = 16 << 20
)

// readLeaks returns a body of any type. After using the body, the caller must call release. The
// error is a 415 for a content coding, a 413, a 400 for an incomplete body, or a 503 if too many
// bodies are in memory.
func readLeaks(c *gin.Context, held *leakBodies) (body []byte, release func(), err error) {
	if err := middleware.CheckCoding(c); err != nil {
		return nil, func() {}, err
	}
	if c.Request.ContentLength > held.limit {
		return nil, func() {}, problem.PayloadTooLarge(held.limit)
	}
	reader := &heldReader{
		Reader: http.MaxBytesReader(c.Writer, c.Request.Body, held.limit), held: held, address: addressID(middleware.ClientOf(c)),
		setDeadline: http.NewResponseController(c.Writer).SetReadDeadline,
	}
	body, err = io.ReadAll(reader)
	_, tooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case tooLarge:
		err = problem.PayloadTooLarge(held.limit)
	case err != nil && !errors.Is(err, value.ErrBusy):
		err = problem.InvalidRequest("The request body is incomplete.")
	}
	return body, reader.release, err
}

// leakBodies bounds the bytes of bodies in memory, all of them and those of each address. At a
// bound, an incomplete body ends: of those beyond smallLeakBody, or else of all, the one without
// progress for the longest time.
type leakBodies struct {
	limit int64 // of one body

	mu  sync.Mutex
	all int64
	of  map[uuid.UUID]int64
	// Of *heldReader whose body is incomplete, the longest without progress first.
	incomplete list.List
}

// add counts n bytes that the reader has read, and reports whether it may go on.
func (b *leakBodies) add(r *heldReader, n int64, complete bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.ended {
		return false
	}
	b.count(r, n)
	b.forget(r)
	for b.all > maxLeakBodies || b.of[r.address] > maxLeakBodiesOfAddress {
		victim := b.victim(r)
		if victim == nil {
			return false
		}
		b.end(victim)
	}
	if !complete {
		r.element = b.incomplete.PushBack(r)
	}
	return true
}

// victim returns the body that ends for the one of r, or nil if there is none.
func (b *leakBodies) victim(r *heldReader) (victim *heldReader) {
	for e := b.incomplete.Front(); e != nil; e = e.Next() {
		other := e.Value.(*heldReader)
		if b.all <= maxLeakBodies && other.address != r.address {
			continue
		}
		if other.own > smallLeakBody {
			return other
		}
		if victim == nil {
			victim = other
		}
	}
	return victim
}

func (b *leakBodies) end(r *heldReader) {
	r.ended = true
	b.count(r, -r.own)
	b.forget(r)
	_ = r.setDeadline(time.Now()) // ends its Read
}

func (b *leakBodies) forget(r *heldReader) {
	if r.element != nil {
		b.incomplete.Remove(r.element)
		r.element = nil
	}
}

// count adds n bytes, or removes them if n is negative.
func (b *leakBodies) count(r *heldReader, n int64) {
	if b.of == nil {
		b.of = map[uuid.UUID]int64{}
	}
	b.all += n
	r.own += n
	if b.of[r.address] += n; b.of[r.address] == 0 {
		delete(b.of, r.address)
	}
}

// heldReader counts the bytes that it has read, until they are released.
type heldReader struct {
	io.Reader

	held        *leakBodies
	address     uuid.UUID
	setDeadline func(time.Time) error // of reading from the client
	read        int64
	late        bool // it has less time since it read smallLeakBody

	// The mutex of held guards these.
	own     int64
	element *list.Element
	ended   bool // for others
}

var errLeaksBusy = problem.Unavailable(fmt.Errorf("%w send reports of leaked keys", value.ErrBusy))

// Read implements [io.Reader].
func (r *heldReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.read += int64(n)
	if !r.held.add(r, int64(n), err != nil) {
		return n, errLeaksBusy
	}
	switch {
	case err != nil && r.late:
		_ = r.setDeadline(time.Time{}) // nothing else is read before the response
	case err == nil && !r.late && r.read > smallLeakBody:
		r.late = true
		_ = r.setDeadline(time.Now().Add(largeLeakTime))
	}
	return n, err
}

// release releases the bytes. Further calls do nothing.
func (r *heldReader) release() {
	r.held.mu.Lock()
	defer r.held.mu.Unlock()
	r.held.forget(r)
	r.held.count(r, -r.own)
}

const (
	maxLeaks       = 1000 // texts in the report of the scanner
	maxPublicLeaks = 100  // texts, and fields, in a report without credentials
)

// reportedLeak is one entry in the report of the scanner.
type reportedLeak struct {
	keys.LeakedText

	kind string // the scanner's name for keys of this portal
}

// parseScannerReport returns the entries of a report that is a list of objects with type, token and
// url, or a 400 for any other body. It skips entries without a token, because the keys of the
// others must be revoked. It stops at the first entry that is too many, so that a body
// cannot use a multiple of its own memory.
func parseScannerReport(body []byte) (leaks []reportedLeak, err error) {
	invalid := problem.InvalidRequest(fmt.Sprintf(
		`The request body is not a list of at most %d reports. Send [{"type": "...", "token": "nas_...", "url": "..."}].`, maxLeaks))
	decoder := json.NewDecoder(bytes.NewReader(withoutMark(body)))
	if start, err := decoder.Token(); err != nil || start != json.Delim('[') || !utf8.Valid(body) {
		return nil, invalid
	}
	for decoder.More() {
		var entry any
		if err := decoder.Decode(&entry); err != nil || len(leaks) == maxLeaks {
			return nil, invalid
		}
		fields, _ := entry.(map[string]any)
		token, ok := fields["token"].(string)
		if !ok {
			continue
		}
		kind, _ := fields["type"].(string)
		where, _ := fields["url"].(string)
		leaks = append(leaks, reportedLeak{keys.NewLeakedText(token, where), kind})
	}
	if !ends(decoder) {
		return nil, invalid
	}
	return leaks, nil
}

// ends reports whether a list or an object ends, and the body with it.
func ends(decoder *json.Decoder) bool {
	if _, err := decoder.Token(); err != nil {
		return false
	}
	_, err := decoder.Token()
	return errors.Is(err, io.EOF)
}

// parsePublicLeaks returns the texts of a report without credentials, or a 400. Because anyone can
// send a report, it stops at the first text or field above the limit, and at one that is no text.
func parsePublicLeaks(body []byte) ([]keys.LeakedText, error) {
	const example = `{"keys": ["nas_..."]}`
	noObject := problem.InvalidRequest(fmt.Sprintf("The request body is not exactly one JSON object of at most %d fields. Send %s.", maxPublicLeaks, example))
	noKeys := problem.InvalidRequest(fmt.Sprintf("The field keys must be a list of 1 to %d strings, with at most %[1]d keys in them. Send %[2]s.", maxPublicLeaks, example))
	decoder := json.NewDecoder(bytes.NewReader(withoutMark(body)))
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') || !utf8.Valid(body) {
		return nil, noObject
	}
	var leaks []reportedLeak
	var ignored json.RawMessage
	for fields := 0; decoder.More(); fields++ {
		name, err := decoder.Token()
		if err != nil || fields == maxPublicLeaks {
			return nil, noObject
		}
		if name != "keys" {
			if err := decoder.Decode(&ignored); err != nil {
				return nil, noObject
			}
			continue
		}
		if leaks = parseLeakedKeys(decoder); leaks == nil {
			return nil, noKeys
		}
	}
	if !ends(decoder) {
		return nil, noObject
	}
	if leaks == nil {
		return nil, noKeys
	}
	texts, _ := distinct(leaks)
	return texts, nil
}

// parseLeakedKeys returns the keys and other texts of a list of strings, 1 to maxPublicLeaks, or
// nil for anything else.
func parseLeakedKeys(decoder *json.Decoder) (leaks []reportedLeak) {
	if start, err := decoder.Token(); err != nil || start != json.Delim('[') {
		return nil
	}
	for decoder.More() {
		key, err := decoder.Token()
		text, ok := key.(string)
		if err != nil || !ok {
			return nil
		}
		for _, leaked := range keys.LeakedTexts(text) {
			leaks = append(leaks, reportedLeak{LeakedText: leaked})
		}
		if len(leaks) > maxPublicLeaks {
			return nil
		}
	}
	if _, err := decoder.Token(); err != nil { // the end of the list
		return nil
	}
	return leaks
}

// distinct returns the first entry of each text, and its kind.
func distinct(leaks []reportedLeak) (texts []keys.LeakedText, kinds []string) {
	seen := map[[sha256.Size]byte]bool{}
	for _, leak := range leaks {
		if !seen[leak.Hash()] {
			seen[leak.Hash()] = true
			texts, kinds = append(texts, leak.LeakedText), append(kinds, leak.kind)
		}
	}
	return texts, kinds
}
