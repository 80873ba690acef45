package livekit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	// requestTimeout limits a request whose context allows more.
	requestTimeout = 5 * time.Second
	// maxResponse limits the bytes of a response. A room takes about 1 KiB.
	maxResponse = 64 << 20
	// maxConnections limits the connections to the server.
	maxConnections = 16
)

// errNotFound means that the server does not have the room.
var errNotFound = errors.New("livekit: not found")

// newClient returns a client that follows no redirects: the target would get the token.
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
	var response struct {
		Rooms []struct {
			Name string `json:"name"`
		} `json:"rooms"`
	}
	if err := s.call(ctx, "ListRooms", struct{}{}, &response); err != nil {
		return nil, err
	}
	var rooms []Room
	for _, room := range response.Rooms {
		if parsed, ok := parseRoom(room.Name); ok {
			rooms = append(rooms, parsed)
		}
	}
	return rooms, nil
}

// EndRoom disconnects everybody in a room and deletes it. It reports whether the room existed.
func (s *Server) EndRoom(ctx context.Context, room Room) (bool, error) {
	request := struct {
		Room string `json:"room"`
	}{room.Name}
	err := s.call(ctx, "DeleteRoom", request, &struct{}{})
	if errors.Is(err, errNotFound) {
		return false, nil
	}
	return err == nil, err
}

// call calls a method of the server's room service with Twirp's JSON.
func (s *Server) call(ctx context.Context, method string, body, result any) error {
	token, err := s.serverToken()
	if err != nil {
		return fmt.Errorf("livekit: %s: %w", method, err)
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("livekit: %s: %w", method, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.api+"/"+method, bytes.NewReader(encoded))
	if err != nil {
		return fmt.Errorf("livekit: %s: %w", method, err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return fmt.Errorf("livekit: %s: %w", method, err)
	}
	defer response.Body.Close()
	content := io.LimitReader(response.Body, maxResponse)
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return errNotFound
	default:
		return fmt.Errorf("livekit: %s: status %d", method, response.StatusCode)
	}
	if err := json.NewDecoder(content).Decode(result); err != nil {
		return fmt.Errorf("livekit: %s: %w", method, err)
	}
	return nil
}
