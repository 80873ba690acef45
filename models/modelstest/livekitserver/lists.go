package livekitserver

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"portal/models/livekit"
)

// Rooms returns the rooms that a server lists.
func Rooms(ctx context.Context, server *livekit.Server) (rooms []livekit.Room, err error) {
	err = server.EachRoom(ctx, func(room livekit.Room) error {
		rooms = append(rooms, room)
		return nil
	})
	return rooms, err
}

// Lists is a server that only lists rooms. A test writes the lists, so that they are exact.
type Lists struct {
	server   *httptest.Server
	requests atomic.Int64
	list     atomic.Pointer[[]byte]
	ended    sync.Map    // names of rooms
	broken   atomic.Bool // the lists
}

// NewLists returns a server without rooms. The caller must close it.
func NewLists() *Lists {
	l := &Lists{}
	l.Set(nil)
	l.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/ListRooms") {
			l.requests.Add(1)
			if l.broken.Load() {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			_, _ = w.Write(*l.list.Load())
			return
		}
		var request struct{ Room string }
		_ = json.NewDecoder(r.Body).Decode(&request)
		l.ended.Store(request.Room, true)
		_, _ = io.WriteString(w, "{}")
	}))
	return l
}

// Break lets all lists fail from now on.
func (l *Lists) Break() { l.broken.Store(true) }

// Ended reports whether the portal has ended the room with this name.
func (l *Lists) Ended(name string) bool {
	_, ended := l.ended.Load(name)
	return ended
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
			"enabled_codecs":   codecs,
		})
	}
	list, err := json.Marshal(map[string]any{"rooms": rooms})
	if err != nil {
		panic(err) // only strings and numbers
	}
	l.list.Store(&list)
}

// codecs are in each room of LiveKit's lists.
var codecs = func() (codecs []map[string]string) {
	for _, name := range []string{"video/VP8", "video/H264", "video/VP9", "video/AV1", "video/H265", "video/rtx", "audio/red", "audio/opus", "audio/PCMU", "audio/PCMA", "video/ulpfec", "video/flexfec", "audio/G722", "audio/CN"} {
		codecs = append(codecs, map[string]string{"mime": name, "fmtp_line": ""})
	}
	return codecs
}()

// Requests returns the number of lists so far.
func (l *Lists) Requests() int64 { return l.requests.Load() }
