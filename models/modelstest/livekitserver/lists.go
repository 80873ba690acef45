package livekitserver

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"

	"portal/models/livekit"
)

// Lists is a server that only lists rooms. A test writes the lists, so that they are exact.
type Lists struct {
	server   *httptest.Server
	requests atomic.Int64
	list     atomic.Pointer[[]byte]
}

// NewLists returns a server without rooms. The caller must close it.
func NewLists() *Lists {
	l := &Lists{}
	l.Set(nil)
	l.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		l.requests.Add(1)
		_, _ = w.Write(*l.list.Load())
	}))
	return l
}

// Close stops the server.
func (l *Lists) Close() { l.server.Close() }

// Portal returns the server as the portal uses it.
func (l *Lists) Portal() *livekit.Server {
	return portal(&url.URL{Scheme: "ws", Host: strings.TrimPrefix(l.server.URL, "http://")})
}

// Set sets the rooms of the lists from now on, with the number of their visitors.
func (l *Lists) Set(visitors map[livekit.Room]int) {
	rooms := []map[string]any{}
	for room, n := range visitors {
		rooms = append(rooms, map[string]any{
			"sid": room.ID, "name": room.Name, "num_participants": n,
			"creation_time":    strconv.FormatInt(room.CreatedAt.Unix(), 10),
			"creation_time_ms": strconv.FormatInt(room.CreatedAt.UnixMilli(), 10),
		})
	}
	list, err := json.Marshal(map[string]any{"rooms": rooms})
	if err != nil {
		panic(err) // only strings and numbers
	}
	l.list.Store(&list)
}

// Requests returns the number of requests so far.
func (l *Lists) Requests() int64 { return l.requests.Load() }
