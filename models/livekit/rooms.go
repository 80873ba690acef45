package livekit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/livekit/protocol/auth"
	"github.com/livekit/protocol/livekit"
	"github.com/twitchtv/twirp"
)

const (
	// requestTimeout limits a request whose context allows more.
	requestTimeout = 5 * time.Second
	// maxResponse limits the bytes of a response. A room takes about 320 bytes.
	maxResponse = 32 << 20
	// maxConnections limits the connections to the server.
	maxConnections = 16
)

// newClient returns a client with limits. The room service makes it follow no redirects.
func newClient() *http.Client {
	return &http.Client{
		Timeout: requestTimeout,
		Transport: limitedTransport{&http.Transport{
			Proxy: http.ProxyFromEnvironment, MaxConnsPerHost: maxConnections, MaxIdleConnsPerHost: maxConnections,
			IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
		}},
	}
}

// limitedTransport is a transport whose responses err after [maxResponse] bytes.
type limitedTransport struct{ http.RoundTripper }

func (t limitedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(request)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, maxResponse)
	}
	return response, err
}

// Rooms returns the rooms that were opened with tokens of ours.
func (s *Server) Rooms(ctx context.Context) ([]Room, error) {
	ctx, err := s.authorize(ctx)
	if err != nil {
		return nil, err
	}
	response, err := s.rooms.ListRooms(ctx, &livekit.ListRoomsRequest{})
	if err != nil {
		return nil, fmt.Errorf("livekit: list rooms: %w", err)
	}
	var rooms []Room
	for _, room := range response.GetRooms() {
		if parsed, ok := parseRoom(room.GetName()); ok {
			rooms = append(rooms, parsed)
		}
	}
	return rooms, nil
}

// EndRoom disconnects everybody in a room and deletes it. It reports whether the room existed.
func (s *Server) EndRoom(ctx context.Context, room Room) (bool, error) {
	ctx, err := s.authorize(ctx)
	if err != nil {
		return false, err
	}
	_, err = s.rooms.DeleteRoom(ctx, &livekit.DeleteRoomRequest{Room: room.Name})
	if refused := twirp.Error(nil); errors.As(err, &refused) && refused.Code() == twirp.NotFound {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("livekit: delete room: %w", err)
	}
	return true, nil
}

// authorize returns a context whose requests have a token for the room service.
func (s *Server) authorize(ctx context.Context) (context.Context, error) {
	grant := &auth.VideoGrant{RoomCreate: true, RoomList: true}
	token, err := s.newToken().SetValidFor(serverTokenTTL).SetVideoGrant(grant).ToJWT()
	if err != nil {
		return nil, fmt.Errorf("sign LiveKit token: %w", err)
	}
	return twirp.WithHTTPRequestHeaders(ctx, http.Header{"Authorization": {"Bearer " + token}})
}
