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
	ctx, err := s.authorize(ctx, &auth.VideoGrant{RoomList: true})
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

// EndRoom disconnects the participants with our tokens, or deletes the room if none is in it. It
// reports whether it has deleted the room. It does not delete it at once: a client that joins again
// while LiveKit deletes its room would be in a room that LiveKit does not list.
func (s *Server) EndRoom(ctx context.Context, room Room) (deleted bool, err error) {
	ctx, err = s.authorize(ctx, &auth.VideoGrant{RoomCreate: true, RoomAdmin: true, Room: room.Name})
	if err != nil {
		return false, err
	}
	// Without the list, the deletion still ends the call of everybody who does not join again.
	participants, _ := s.rooms.ListParticipants(ctx, &livekit.ListParticipantsRequest{Room: room.Name})
	found := false
	var errs []error
	for _, participant := range participants.GetParticipants() {
		if participant.GetAttributes()[agentAttribute] == "" {
			continue // an agent
		}
		found = true
		_, err := s.rooms.RemoveParticipant(ctx, &livekit.RoomParticipantIdentity{Room: room.Name, Identity: participant.GetIdentity()})
		if err != nil && !isNotFound(err) {
			errs = append(errs, fmt.Errorf("livekit: remove participant: %w", err))
		}
	}
	if found {
		return false, errors.Join(errs...)
	}
	_, err = s.rooms.DeleteRoom(ctx, &livekit.DeleteRoomRequest{Room: room.Name})
	if err != nil && !isNotFound(err) {
		return false, fmt.Errorf("livekit: delete room: %w", err)
	}
	return err == nil, nil
}

func isNotFound(err error) bool {
	var refused twirp.Error
	return errors.As(err, &refused) && refused.Code() == twirp.NotFound
}

// authorize returns a context whose requests have a token with these permissions.
func (s *Server) authorize(ctx context.Context, grant *auth.VideoGrant) (context.Context, error) {
	token, err := s.newToken().SetValidFor(serverTokenTTL).SetVideoGrant(grant).ToJWT()
	if err != nil {
		return nil, fmt.Errorf("sign LiveKit token: %w", err)
	}
	return twirp.WithHTTPRequestHeaders(ctx, http.Header{"Authorization": {"Bearer " + token}})
}
