// Package livekitserver runs LiveKit servers for tests. The Makefile builds the program.
package livekitserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/coder/websocket"
	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"portal/models/livekit"
	"portal/models/modelstest/subprocess"
)

// The API key of every server, and its secret.
const (
	APIKey    = "APIofTheTests"
	APISecret = "a LiveKit secret of the tests, 40 bytes"
)

// startTimeout allows for a slow machine.
const startTimeout = time.Minute

// program is the path from the repository's root.
const program = "bin/tools/livekit-server"

// Server is a LiveKit server on the loopback interface. Its rooms are in its memory.
type Server struct {
	URL *url.URL

	child  *subprocess.Child
	output bytes.Buffer
}

// Start starts a server on a free port, which sends its events to these URLs. The caller must call
// Stop.
func Start(ctx context.Context, webhooks ...string) (*Server, error) {
	port, err := subprocess.FreePort()
	if err != nil {
		return nil, err
	}
	return StartOn(ctx, port, webhooks...)
}

// StartOn is [Start] with a port, which it uses for TCP and for UDP.
func StartOn(ctx context.Context, port int, webhooks ...string) (*Server, error) {
	root, err := subprocess.Above(program)
	if err != nil {
		return nil, errors.New(program + " is missing: run `make " + program + "` at the root of the repository")
	}
	config, err := json.Marshal(map[string]any{
		"port": port, "bind_addresses": []string{"127.0.0.1"},
		"rtc": map[string]any{
			"tcp_port": 0, "udp_port": port, "node_ip": "127.0.0.1", "enable_loopback_candidate": true,
			"interfaces": map[string]any{"includes": []string{"lo"}},
			"ips":        map[string]any{"includes": []string{"127.0.0.0/8"}},
		},
		"keys":    map[string]string{APIKey: APISecret},
		"webhook": map[string]any{"api_key": APIKey, "urls": webhooks},
		"logging": map[string]string{"level": "warn"},
		// A slow machine must not refuse rooms.
		"limit": map[string]any{"num_tracks": -1},
	})
	if err != nil {
		return nil, err
	}
	s := &Server{URL: &url.URL{Scheme: "ws", Host: fmt.Sprintf("127.0.0.1:%d", port)}}
	// The program outlives the context of one test.
	command := exec.Command(filepath.Join(root, program)) //nolint:gosec // built by the Makefile; Stop kills it
	command.Env = append(os.Environ(), "LIVEKIT_CONFIG="+string(config))
	command.Stdout, command.Stderr = &s.output, &s.output
	if s.child, err = subprocess.Start(command); err != nil {
		return nil, fmt.Errorf("start LiveKit: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ready := func(ctx context.Context) error { return subprocess.CheckOK(ctx, "http://"+s.URL.Host) }
	if err := s.child.AwaitReady(ctx, ready); err != nil {
		s.child.Kill()
		return nil, fmt.Errorf("LiveKit: %w\n%s", err, s.output.String())
	}
	return s, nil
}

// Stop kills the server. A graceful stop would wait for its participants.
func (s *Server) Stop() { s.child.Kill() }

// Portal returns the server as the portal uses it.
func (s *Server) Portal() *livekit.Server { return portal(s.URL) }

func portal(address *url.URL) *livekit.Server {
	return livekit.New(livekit.Options{URL: address, APIKey: APIKey, APISecret: APISecret})
}

// CreateRoom creates a room, like a browser that joins it.
func (s *Server) CreateRoom(ctx context.Context, name string) error {
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"iss": APIKey, "exp": time.Now().Add(time.Minute).Unix(), "video": map[string]bool{"roomCreate": true},
	}).SignedString([]byte(APISecret))
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]string{"name": name})
	if err != nil {
		return err
	}
	address := "http://" + s.URL.Host + "/twirp/livekit.RoomService/CreateRoom"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("create room: %s", response.Status)
	}
	return nil
}

// Call is a visitor's connection to a room.
type Call struct {
	Leave func() error

	server *Server
	token  string
	ended  chan struct{}
}

// Join opens a call: a visitor joins a new room with the portal's token. The call goes on until the
// visitor leaves or is disconnected.
func (s *Server) Join(ctx context.Context, agentID, keyID uuid.UUID) (*Call, error) {
	token, err := s.Portal().ParticipantToken(livekit.Participant{
		Identity: uuid.NewString(), AgentID: agentID, KeyID: keyID, ExpiresAt: time.Now().Add(time.Minute),
	})
	if err != nil {
		return nil, err
	}
	return s.join(ctx, token)
}

// Again opens the call again with its token.
func (c *Call) Again(ctx context.Context) (*Call, error) { return c.server.join(ctx, c.token) }

// Open reports whether the visitor is in the call.
func (c *Call) Open() bool {
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

func (s *Server) join(ctx context.Context, token string) (*Call, error) {
	conn, _, err := websocket.Dial(ctx, s.URL.String()+"/rtc?protocol=9&access_token="+token, nil) //nolint:bodyclose // Dial closes it
	if err != nil {
		return nil, fmt.Errorf("join a room: %w", err)
	}
	conn.SetReadLimit(-1)
	// The first message says that the visitor has joined.
	if _, _, err := conn.Read(ctx); err != nil {
		return nil, errors.Join(err, conn.CloseNow())
	}
	call := &Call{Leave: conn.CloseNow, server: s, token: token, ended: make(chan struct{})}
	go func() {
		for err == nil { // until the server ends the call
			_, _, err = conn.Read(context.WithoutCancel(ctx))
		}
		close(call.ended)
	}()
	return call, nil
}
