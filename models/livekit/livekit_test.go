package livekit_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"portal/models/livekit"
	"portal/models/modelstest/livekitserver"
)

// serve returns a LiveKit server with this handler, below this path.
func serve(t *testing.T, path string, handler http.HandlerFunc) *livekit.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	u, err := url.Parse("ws" + strings.TrimPrefix(server.URL, "http") + path)
	if err != nil {
		t.Fatal(err)
	}
	return livekit.New(livekit.Options{URL: u, APIKey: livekitserver.APIKey, APISecret: livekitserver.APISecret})
}

func TestExpiredParticipantGetsNoToken(t *testing.T) {
	t.Parallel()
	server := livekit.New(livekit.Options{URL: &url.URL{}, APIKey: livekitserver.APIKey, APISecret: livekitserver.APISecret})
	token, err := server.ParticipantToken(livekit.Participant{Identity: "late", AgentID: uuid.New(), KeyID: uuid.New(), ExpiresAt: time.Now()})
	if err == nil || token != "" {
		t.Errorf("token %q, error %v", token, err)
	}
}

func TestRequestsHaveTokensOfAMinute(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", "/", "/voice", "/voice/"} {
		var requested, authorization string
		server := serve(t, path, func(w http.ResponseWriter, r *http.Request) {
			requested, authorization = r.Method+" "+r.URL.Path, r.Header.Get("Authorization")
			_, _ = io.WriteString(w, "{}")
		})
		if rooms, err := livekitserver.Rooms(t.Context(), server); err != nil || len(rooms) != 0 {
			t.Fatalf("%d rooms, error %v", len(rooms), err)
		}
		if want := "POST " + strings.TrimSuffix(path, "/") + "/twirp/livekit.RoomService/ListRooms"; requested != want {
			t.Errorf("got %s, want %s", requested, want)
		}
		claims := jwt.MapClaims{}
		_, err := jwt.NewParser(jwt.WithValidMethods([]string{"HS256"}), jwt.WithExpirationRequired()).
			ParseWithClaims(strings.TrimPrefix(authorization, "Bearer "), claims, func(*jwt.Token) (any, error) {
				return []byte(livekitserver.APISecret), nil
			})
		if err != nil {
			t.Fatal(err)
		}
		if expires, _ := claims.GetExpirationTime(); time.Until(expires.Time) > time.Minute {
			t.Errorf("the token expires at %s", expires)
		}
		delete(claims, "exp")
		delete(claims, "nbf")
		want := jwt.MapClaims{"iss": livekitserver.APIKey, "video": map[string]any{"roomList": true}}
		if !reflect.DeepEqual(claims, want) {
			t.Errorf("got  %v\nwant %v", claims, want)
		}
	}
}

// A server may close a connection while a request on it is under way.
func TestRequestsAreRepeatedOnANewConnection(t *testing.T) {
	t.Parallel()
	var used sync.Map // connections
	server := serve(t, "", func(w http.ResponseWriter, r *http.Request) {
		if _, again := used.LoadOrStore(r.RemoteAddr, true); again {
			panic(http.ErrAbortHandler) // closes the connection
		}
		_, _ = io.WriteString(w, "{}")
	})
	for range 3 {
		if _, err := livekitserver.Rooms(t.Context(), server); err != nil {
			t.Error(err)
		}
	}
	if _, err := server.EndRoom(t.Context(), "a room"); err != nil {
		t.Error(err)
	}
}

func TestBadResponses(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/elsewhere" {
				t.Error("the redirect was followed")
			}
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		},
		"a long response": func(w http.ResponseWriter, _ *http.Request) {
			block := make([]byte, 1<<20)
			for range 128 {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
			t.Error("the whole response was read")
		},
		"another page": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<h1>It works!</h1>") },
		"no such page": http.NotFound,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serve(t, "", handler)
			if rooms, err := livekitserver.Rooms(t.Context(), server); err == nil {
				t.Errorf("%d rooms", len(rooms))
			} else {
				t.Log(err)
			}
			if ended, err := server.EndRoom(t.Context(), "lobby"); err == nil {
				t.Errorf("ended: %t", ended)
			}
		})
	}
}

func TestMissingRoomIsNoError(t *testing.T) {
	t.Parallel()
	server, err := livekitserver.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	if err := server.CreateRoom(t.Context(), "lobby"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if ended, err := server.Portal().EndRoom(t.Context(), "lobby"); err != nil || ended {
			t.Errorf("ended: %t, error %v", ended, err)
		}
	}
}

// Protobuf's JSON has integers of 64 bits as text, and readers also accept a number. A list without
// elements may be null or missing.
func TestRoomsInTheFormsOfJSON(t *testing.T) {
	t.Parallel()
	name := `"name":"0198c2f4-7a31-7c6e-9d52-3f8be6a1c004_0198c2f4-9b00-7d11-8a3c-6c1de2f90a22_VECTOR"`
	for list, want := range map[string]int{
		`{"rooms":[{` + name + `,"creation_time":"1763899190","creation_time_ms":"1763899190123"}]}`: 1,
		`{"rooms":[{` + name + `,"creation_time":1763899190,"creation_time_ms":1763899190000}]}`:     1,
		`{"rooms":[{` + name + `,"creation_time":1763899190,"creation_time_ms":null}]}`:              1,
		`{"rooms":null}`: 0,
		`{}`:             0,
	} {
		server := serve(t, "", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, list) })
		rooms, err := livekitserver.Rooms(t.Context(), server)
		if err != nil || len(rooms) != want || want == 1 && rooms[0].CreatedAt.Unix() != 1763899190 {
			t.Errorf("%s: %+v, %v", list, rooms, err)
		}
	}
}
