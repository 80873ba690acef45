package middleware

import (
	"errors"
	"io"
	"net/http"
	"time"
)

const (
	// A response waits arrivalTime for the rest of a body of at most maxArrival bytes. Most
	// clients have sent it, and keep their connections.
	arrivalTime = 20 * time.Millisecond
	maxArrival  = 64 << 10
	// lingerTime is how long a connection stays open after such a response, because the client
	// may lose the response if the connection ends while it sends.
	lingerTime = 500 * time.Millisecond
)

// EndUnread ends the connection of a request whose response is written before next has read its
// body, so that a refused client need not send it. Otherwise net/http reads up to 256 KiB of it
// first, and waits until its ReadTimeout for a client that has announced a body and sends none.
func EndUnread(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 {
			next.ServeHTTP(w, r)
			return
		}
		// A copy, because net/http goes by the type of its own body.
		r = r.WithContext(r.Context())
		response := &unreadResponse{ResponseWriter: w, request: r, body: requestBody{ReadCloser: r.Body}}
		r.Body = &response.body
		next.ServeHTTP(response, r)
		if !response.body.complete() {
			// An error means that there is no open connection.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(lingerTime))
		}
	})
}

// requestBody remembers how the reading of a body has ended.
type requestBody struct {
	io.ReadCloser
	err error // nil: it has not
}

// Read implements [io.Reader].
func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.err = err
	}
	return n, err
}

func (b *requestBody) complete() bool { return errors.Is(b.err, io.EOF) }

// unreadResponse is the response to a request with a body.
type unreadResponse struct {
	http.ResponseWriter

	request *http.Request
	body    requestBody
}

// WriteHeader implements [http.ResponseWriter].
func (w *unreadResponse) WriteHeader(status int) {
	if status >= http.StatusOK && w.Header().Get("Connection") != "close" && !w.arrived() {
		w.Header().Set("Connection", "close")
	}
	w.ResponseWriter.WriteHeader(status)
}

// arrived reads the rest of the body, and reports whether the body is complete.
func (w *unreadResponse) arrived() bool {
	short := 0 < w.request.ContentLength && w.request.ContentLength <= maxArrival
	if short && w.body.err == nil && w.request.Header.Get("Expect") == "" {
		if err := http.NewResponseController(w.ResponseWriter).SetReadDeadline(time.Now().Add(arrivalTime)); err != nil {
			return false
		}
		_, _ = io.Copy(io.Discard, &w.body) // the body remembers its error
	}
	return w.body.complete()
}

// Flush implements [http.Flusher].
func (w *unreadResponse) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Unwrap returns the writer for [http.ResponseController].
func (w *unreadResponse) Unwrap() http.ResponseWriter { return w.ResponseWriter }
