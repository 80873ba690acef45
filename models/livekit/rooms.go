package livekit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

const (
	// serverTokenTTL is the lifetime of the tokens of our own requests.
	serverTokenTTL = time.Minute
	// requestTimeout limits a request whose context allows more.
	requestTimeout = 5 * time.Second
	// maxResponse limits the bytes of a response. A room takes about 700 bytes.
	maxResponse = 64 << 20
	// countDelay is more than the time after which LiveKit's list counts a new participant.
	countDelay = 10 * time.Second
	// maxConnections limits the connections to the server.
	maxConnections = 16
)

// errNotFound means that the server does not have the room or the participant.
var errNotFound = errors.New("not found")

// newClient returns a client with limits that follows no redirects, because the target would get
// the token.
func newClient() *http.Client {
	return &http.Client{
		Timeout: requestTimeout,
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, MaxConnsPerHost: maxConnections, MaxIdleConnsPerHost: maxConnections,
			IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Rooms returns the rooms that were opened with tokens of ours.
func (s *Server) Rooms(ctx context.Context) ([]Room, error) {
	var list struct {
		Rooms []struct {
			SID          string `json:"sid"`
			Name         string `json:"name"`
			Participants int    `json:"num_participants"` // without agents
			CreatedAt    int64  `json:"creation_time,string"`
			// 0 from an old server.
			CreatedAtMillis int64 `json:"creation_time_ms,string"`
		} `json:"rooms"`
	}
	if err := s.call(ctx, "ListRooms", videoGrant{RoomList: true}, roomRequest{}, &list); err != nil {
		return nil, err
	}
	var rooms []Room
	for _, room := range list.Rooms {
		if parsed, ok := parseRoom(room.Name); ok {
			parsed.ID, parsed.CreatedAt, parsed.Empty = room.SID, time.UnixMilli(cmp.Or(room.CreatedAtMillis, 1000*room.CreatedAt)).UTC(), room.Participants == 0
			parsed.New = time.Since(parsed.CreatedAt) < countDelay
			rooms = append(rooms, parsed)
		}
	}
	return rooms, nil
}

// EndRoom disconnects the participants with our tokens, or deletes the room if none is in it, and
// reports whether it has disconnected any. It does not delete the room at once: a client that joins
// again while LiveKit deletes its room would be in a room that LiveKit does not list.
func (s *Server) EndRoom(ctx context.Context, name string) (ended bool, err error) {
	found, err := s.visitors(ctx, name)
	if err != nil || len(found) == 0 {
		// Without the list, the deletion still ends the call of everybody who does not join
		// again.
		return false, s.deleteRoom(ctx, name)
	}
	return s.disconnect(ctx, name, found)
}

// DisconnectRoom disconnects the participants with our tokens.
func (s *Server) DisconnectRoom(ctx context.Context, name string) error {
	found, err := s.visitors(ctx, name)
	if err == nil {
		_, err = s.disconnect(ctx, name, found)
	}
	return err
}

// CloseRoom deletes the room unless a participant with our token is in it.
func (s *Server) CloseRoom(ctx context.Context, name string) error {
	found, err := s.visitors(ctx, name)
	if err == nil && len(found) == 0 {
		err = s.deleteRoom(ctx, name)
	}
	return err
}

func roomAdmin(name string) videoGrant {
	return videoGrant{RoomCreate: true, RoomAdmin: true, Room: name}
}

// visitors returns the identities of the participants with our tokens.
func (s *Server) visitors(ctx context.Context, name string) (identities []string, err error) {
	var list struct {
		Participants []struct {
			Identity   string            `json:"identity"`
			Attributes map[string]string `json:"attributes"`
		} `json:"participants"`
	}
	err = s.call(ctx, "ListParticipants", roomAdmin(name), roomRequest{Room: name}, &list)
	for _, participant := range list.Participants {
		if participant.Attributes[agentAttribute] != "" { // no agent
			identities = append(identities, participant.Identity)
		}
	}
	return identities, err
}

func (s *Server) disconnect(ctx context.Context, name string, identities []string) (ended bool, err error) {
	var errs []error
	for _, identity := range identities {
		err := s.call(ctx, "RemoveParticipant", roomAdmin(name), roomRequest{name, identity}, nil)
		ended = ended || err == nil
		if !errors.Is(err, errNotFound) {
			errs = append(errs, err)
		}
	}
	return ended, errors.Join(errs...)
}

func (s *Server) deleteRoom(ctx context.Context, name string) error {
	err := s.call(ctx, "DeleteRoom", roomAdmin(name), roomRequest{Room: name}, nil)
	if errors.Is(err, errNotFound) {
		err = nil
	}
	return err
}

// roomRequest is the body of a request. Every method uses some of its fields.
type roomRequest struct {
	Room     string `json:"room,omitempty"`
	Identity string `json:"identity,omitempty"`
}

// call calls a method of LiveKit's room service, in Twirp's JSON, with a token for grant, and
// decodes the response into result unless it is nil.
func (s *Server) call(ctx context.Context, method string, grant videoGrant, body roomRequest, result any) error {
	if err := s.post(ctx, method, grant, body, result); err != nil {
		return fmt.Errorf("livekit: %s: %w", method, err)
	}
	return nil
}

func (s *Server) post(ctx context.Context, method string, grant videoGrant, body roomRequest, result any) error {
	token, err := s.sign(claims{Video: grant}, time.Now().Add(serverTokenTTL))
	if err != nil {
		return err
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.roomService+method, bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	// It is not sent. It has net/http repeat the request if the server closes an old
	// connection: all methods can be repeated.
	request.Header["Idempotency-Key"] = nil
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	decoder := json.NewDecoder(http.MaxBytesReader(nil, response.Body, maxResponse))
	if response.StatusCode == http.StatusOK {
		if result == nil {
			result = &struct{}{}
		}
		return decoder.Decode(result)
	}
	var refusal struct {
		Code    string `json:"code"`
		Message string `json:"msg"`
	}
	_ = decoder.Decode(&refusal) // a proxy answers something else
	if refusal.Code == "not_found" {
		return errNotFound
	}
	return fmt.Errorf("status %d %s %s", response.StatusCode, refusal.Code, refusal.Message)
}
