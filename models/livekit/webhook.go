package livekit

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

var (
	// ErrSignature means that a webhook is not signed by the LiveKit server, or no longer.
	ErrSignature = errors.New("livekit: the signature of the webhook is invalid")
	// ErrEvent means that the body of a signed webhook is no event.
	ErrEvent = errors.New("livekit: the webhook is no event")
)

// Event is the event that a visitor has connected to a room or has left it, or that LiveKit has
// finished the room.
type Event struct {
	Left      bool
	Finished  bool      // without a visitor
	CreatedAt time.Time // in whole seconds
	Room      Room
	Visitor   Visitor
}

// Visitor is a browser in a room.
type Visitor struct {
	ID       string // of LiveKit, for one connection
	Identity string // of the token
	UserID   string // in the customer's system; empty if unknown
	JoinedAt time.Time
	Reason   string // why the connection ended, as in LiveKit's DisconnectReason
}

// webhookLeeway is how much the clock of the LiveKit server may differ from ours.
const webhookLeeway = time.Minute

type webhookClaims struct {
	jwt.RegisteredClaims

	SHA256 string `json:"sha256"` // of the body, in Base64
}

// webhookVerifier returns a function that verifies the token of a webhook and returns the hash of
// the body that it is for.
func webhookVerifier(apiKey string, secret []byte) func(string, time.Time) (string, error) {
	return func(token string, now time.Time) (string, error) {
		var claims webhookClaims
		_, err := jwt.NewParser(
			jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithExpirationRequired(), jwt.WithIssuer(apiKey),
			jwt.WithLeeway(webhookLeeway), jwt.WithStrictDecoding(), jwt.WithTimeFunc(func() time.Time { return now }),
		).ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) { return secret, nil })
		if err != nil {
			return "", fmt.Errorf("%w: %w", ErrSignature, err)
		}
		return claims.SHA256, nil
	}
}

// VerifyWebhook verifies the Authorization header of a webhook and returns a function that verifies
// the body. Both return [ErrSignature]. So a caller need not read the body of a stranger.
func (s *Server) VerifyWebhook(authorization string, now time.Time) (body func([]byte) error, err error) {
	want, err := s.verify(authorization, now)
	if err != nil {
		return nil, err
	}
	return func(body []byte) error {
		hash := sha256.Sum256(body)
		if subtle.ConstantTimeCompare([]byte(want), []byte(base64.StdEncoding.EncodeToString(hash[:]))) == 0 {
			return fmt.Errorf("%w: it is for another body", ErrSignature)
		}
		return nil
	}, nil
}

// ParseEvent returns the event in the body of a webhook. It reports false for an event that says
// nothing about a call of ours. For a body that is no event, it returns [ErrEvent].
func ParseEvent(body []byte) (event Event, ours bool, err error) {
	var parsed struct {
		Event     string `json:"event"`
		CreatedAt number `json:"createdAt"`
		Room      struct {
			SID          string `json:"sid"`
			Name         string `json:"name"`
			CreationTime number `json:"creationTimeMs"`
		} `json:"room"`
		Participant struct {
			SID        string            `json:"sid"`
			Identity   string            `json:"identity"`
			JoinedAt   number            `json:"joinedAt"`
			JoinedAtMs number            `json:"joinedAtMs"`
			Attributes map[string]string `json:"attributes"`
			Kind       enum              `json:"kind"`
			Reason     enum              `json:"disconnectReason"`
		} `json:"participant"`
	}
	if err := json.Unmarshal(body, &parsed); err != nil {
		return Event{}, false, fmt.Errorf("%w: %w", ErrEvent, err)
	}
	if parsed.Event == "" {
		return Event{}, false, fmt.Errorf("%w: it has no name", ErrEvent)
	}
	room, ours := parseRoom(parsed.Room.Name)
	room.ID, room.CreatedAt = parsed.Room.SID, time.UnixMilli(int64(parsed.Room.CreationTime)).UTC()
	p := parsed.Participant
	finished := parsed.Event == "room_finished"
	switch {
	case finished:
		ours = ours && room.ID != ""
	case parsed.Event != "participant_joined" && parsed.Event != "participant_left":
		ours = false
	case room.ID == "" || p.SID == "" || p.Kind != "" && p.Kind != "STANDARD":
		ours = false
	case p.Attributes[agentAttribute] != room.AgentID.String():
		ours = false // not with a token of ours
	}
	event = Event{
		Left: parsed.Event == "participant_left", Finished: finished, CreatedAt: time.Unix(int64(parsed.CreatedAt), 0).UTC(), Room: room,
	}
	if !finished {
		event.Visitor = Visitor{
			ID: p.SID, Identity: p.Identity, UserID: p.Attributes[userAttribute], Reason: string(p.Reason),
			JoinedAt: time.UnixMilli(int64(cmp.Or(p.JoinedAtMs, 1000*p.JoinedAt))).UTC(),
		}
	}
	return event, ours, nil
}

// number is an integer of 64 bits, which is a string in protobuf's JSON. Readers also accept a
// number.
type number int64

func (n *number) UnmarshalJSON(text []byte) error {
	unquoted, err := strconv.Unquote(string(text))
	if err != nil {
		unquoted = string(text)
	}
	if unquoted == "null" {
		return nil
	}
	value, err := strconv.ParseInt(unquoted, 10, 64)
	*n = number(value)
	return err
}

// enum is the name of a value. Protobuf's JSON has a number in its place if the sender has no name
// for it. The number 0 and null count as absent.
type enum string

func (e *enum) UnmarshalJSON(text []byte) error {
	name, err := strconv.Unquote(string(text))
	if err != nil {
		name = string(text)
	}
	if name != "0" && name != "null" {
		*e = enum(name)
	}
	return nil
}
