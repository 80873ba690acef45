package livekit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	// serverTokenTTL is the lifetime of the tokens of our own requests.
	serverTokenTTL = time.Minute
	// requestTimeout limits a request, but not a list of rooms.
	requestTimeout = 5 * time.Second
	// maxResponse limits the bytes of a response, or of each room in a list.
	maxResponse = 8 << 20
	// countDelay is more than the time after which LiveKit's list counts a new participant.
	countDelay = 10 * time.Second
	// maxConnections limits the connections to the server.
	maxConnections = 16
)

// errNotFound means that the server does not have the room or the participant.
var errNotFound = errors.New("not found")

// ErrRefused means that the server refuses the API key, its secret or the time of the token.
var ErrRefused = errors.New("LiveKit refuses PORTAL_LIVEKIT_API_KEY and PORTAL_LIVEKIT_API_SECRET: correct them, and compare both clocks")

var errTooLong = errors.New("the response is too long")

// newClient returns a client that follows no redirects, because the target would get the token.
func newClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, MaxConnsPerHost: maxConnections, MaxIdleConnsPerHost: maxConnections,
			IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// EachRoom calls each with the rooms that were opened with tokens of ours, while it reads the list.
// The list can be long, so only ctx limits the time, and only one room is in memory.
func (s *Server) EachRoom(ctx context.Context, each func(Room) error) error {
	err := s.post(ctx, "ListRooms", videoGrant{RoomList: true}, roomRequest{}, func(body *limitedBody, decoder *json.Decoder) error {
		return eachElement(body, decoder, "rooms", func() error {
			var room struct {
				SID          string `json:"sid"`
				Name         string `json:"name"`
				Participants int    `json:"num_participants"` // without agents
				CreatedAt    number `json:"creation_time"`
				// 0 from an old server.
				CreatedAtMillis number `json:"creation_time_ms"`
			}
			if err := decoder.Decode(&room); err != nil {
				return err
			}
			parsed, ok := parseRoom(room.Name)
			if !ok {
				return nil
			}
			parsed.ID, parsed.CreatedAt, parsed.Empty = room.SID, time.UnixMilli(int64(cmp.Or(room.CreatedAtMillis, 1000*room.CreatedAt))).UTC(), room.Participants == 0
			parsed.New = time.Since(parsed.CreatedAt) < countDelay
			return each(parsed)
		})
	})
	if err != nil {
		return fmt.Errorf("livekit: ListRooms: %w", err)
	}
	return nil
}

// Check returns an error unless the server answers and takes the API key.
func (s *Server) Check(ctx context.Context) error {
	// No room has this name, so the answer is short.
	return s.call(ctx, "ListRooms", videoGrant{RoomList: true}, roomRequest{Names: []string{"portal check"}}, nil)
}

// limitedBody is a response in which each value has at most [maxResponse] bytes.
type limitedBody struct {
	io.Reader

	left int
}

// Read implements [io.Reader].
func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.Reader.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// eachElement calls decode for each element of the list in a field of the only object of a body.
func eachElement(body *limitedBody, decoder *json.Decoder, field string, decode func() error) error {
	if err := expect(decoder, json.Delim('{')); err != nil {
		return err
	}
	for decoder.More() {
		body.left = maxResponse
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		if name != field { // there is none
			if err := decoder.Decode(new(any)); err != nil {
				return err
			}
			continue
		}
		switch list, err := decoder.Token(); {
		case err != nil:
			return err
		case list == nil: // null, which is a list without elements
			continue
		case list != json.Delim('['):
			return fmt.Errorf("unexpected %v, want a list", list)
		}
		for decoder.More() {
			if err := decode(); err != nil {
				return err
			}
			body.left = maxResponse
		}
		if err := expect(decoder, json.Delim(']')); err != nil {
			return err
		}
	}
	return expect(decoder, json.Delim('}'))
}

// expect reads a token that must be this one.
func expect(decoder *json.Decoder, want json.Delim) error {
	token, err := decoder.Token()
	if err == nil && token != want {
		err = fmt.Errorf("unexpected %v, want %v", token, want)
	}
	return err
}

// EndRoom disconnects the participants with our tokens, or deletes the room if none is in it, and
// reports whether it may have disconnected any. It does not delete the room at once: a client that
// joins again while LiveKit deletes its room would be in a room that LiveKit does not list.
func (s *Server) EndRoom(ctx context.Context, name string) (ended bool, err error) {
	found, listErr := s.visitors(ctx, name)
	if len(found) == 0 {
		// Without the list, the deletion still ends the call of everybody who does not join
		// again.
		err = s.deleteRoom(ctx, name)
		return listErr != nil && !errors.Is(listErr, errNotFound) && err == nil, err
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
		err := s.call(ctx, "RemoveParticipant", roomAdmin(name), roomRequest{Room: name, Identity: identity}, nil)
		// Too late to hear of it, LiveKit still does it.
		ended = ended || err == nil || errors.Is(err, context.DeadlineExceeded)
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
	Room     string   `json:"room,omitempty"`
	Identity string   `json:"identity,omitempty"`
	Names    []string `json:"names,omitempty"`
}

// call calls a method of LiveKit's room service, in Twirp's JSON, with a token for grant, and
// decodes the response into result unless it is nil.
func (s *Server) call(ctx context.Context, method string, grant videoGrant, body roomRequest, result any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := s.post(ctx, method, grant, body, func(_ *limitedBody, decoder *json.Decoder) error {
		if result == nil {
			result = &struct{}{}
		}
		return decoder.Decode(result)
	})
	if err != nil {
		return fmt.Errorf("livekit: %s: %w", method, err)
	}
	return nil
}

func (s *Server) post(ctx context.Context, method string, grant videoGrant, body roomRequest, decode func(*limitedBody, *json.Decoder) error) error {
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
	limited := &limitedBody{response.Body, maxResponse}
	decoder := json.NewDecoder(limited)
	if response.StatusCode == http.StatusOK {
		return decode(limited, decoder)
	}
	var refusal struct {
		Code    string `json:"code"`
		Message string `json:"msg"`
	}
	_ = decoder.Decode(&refusal) // a proxy answers something else
	switch {
	case refusal.Code == "not_found":
		return errNotFound
	case response.StatusCode == http.StatusUnauthorized:
		return ErrRefused
	}
	return errors.New(strings.TrimSpace(fmt.Sprintf("status %d %s %s", response.StatusCode, refusal.Code, refusal.Message)))
}
