// Package livekit issues tokens for the rooms of a LiveKit server, lists and ends its rooms,
// verifies its webhooks, and imports nothing of ours.
//
// A LiveKit token is a JWT signed with HS256. Because livekit/protocol would bring 200 packages and
// 10 MB into the program, the package signs it and calls the server itself. The tests in e2e/echo
// compare the tokens and requests with livekit/protocol.
package livekit

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
)

// Attributes of a participant, which it cannot change: the id of the portal's agent, and that of
// the visitor in the customer's system, if it is known.
const (
	agentAttribute = "agentId"
	userAttribute  = "userId"
)

// serverSkew is how far behind ours the clock of the LiveKit server may be.
const serverSkew = time.Minute

// errExpired means that a token would expire before it is issued.
var errExpired = errors.New("livekit: the token would be expired")

// Options configure a [Server].
type Options struct {
	URL       *url.URL // ws or wss, as browsers reach the server
	APIKey    string
	APISecret string
	AgentName string // of the agent that joins each room; empty: none
}

// Server is a LiveKit server, safe for concurrent use.
type Server struct {
	url         string // for browsers
	roomService string // for our requests
	agentName   string
	client      *http.Client

	// Closures, so that no field holds the secret.
	sign   func(c claims, expiresAt time.Time) (string, error)
	verify func(webhookToken string, now time.Time) (bodyHash string, err error)
}

// New returns the server with these options, without connecting.
func New(o Options) *Server {
	api := *o.URL
	api.Scheme = strings.Replace(api.Scheme, "ws", "http", 1)
	secret := []byte(o.APISecret)
	return &Server{
		url: o.URL.String(), roomService: strings.TrimRight(api.String(), "/") + "/twirp/livekit.RoomService/",
		agentName: o.AgentName, client: newClient(),
		sign: func(c claims, expiresAt time.Time) (string, error) {
			c.Issuer = o.APIKey
			c.NotBefore, c.ExpiresAt = jwt.NewNumericDate(time.Now().Add(-serverSkew)), jwt.NewNumericDate(expiresAt)
			token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, c).SignedString(secret)
			if err != nil {
				return "", fmt.Errorf("sign LiveKit token: %w", err)
			}
			return token, nil
		},
		verify: webhookVerifier(o.APIKey, secret),
	}
}

// URL returns the address that browsers connect to.
func (s *Server) URL() string { return s.url }

// Participant is a browser that may join one room.
type Participant struct {
	Identity       string // unique
	AgentID, KeyID uuid.UUID
	ExpiresAt      time.Time

	User     *User             // nil: not known
	Metadata map[string]string // for the agent; nil: none
}

// User is a visitor in the customer's system.
type User struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
}

type claims struct {
	jwt.RegisteredClaims

	Name       string            `json:"name,omitempty"`
	Video      videoGrant        `json:"video"`
	Attributes map[string]string `json:"attributes,omitempty"`
	Room       *roomConfig       `json:"roomConfig,omitempty"`
}

// videoGrant lists permissions. LiveKit grants publishing, subscribing and sending data to
// participants unless a claim says otherwise, so the last three are explicit.
type videoGrant struct {
	RoomCreate bool   `json:"roomCreate,omitempty"`
	RoomList   bool   `json:"roomList,omitempty"`
	RoomAdmin  bool   `json:"roomAdmin,omitempty"`
	RoomJoin   bool   `json:"roomJoin,omitempty"`
	Room       string `json:"room,omitempty"`

	CanPublish     bool     `json:"canPublish,omitempty"`
	PublishSources []string `json:"canPublishSources,omitempty"`
	CanSubscribe   bool     `json:"canSubscribe,omitempty"`
	CanPublishData bool     `json:"canPublishData,omitempty"`
}

// roomConfig lists the agents that join a room when it is created.
type roomConfig struct {
	Agents []agentDispatch `json:"agents"`
}

type agentDispatch struct {
	AgentName string `json:"agentName"`
	Metadata  string `json:"metadata"`
}

// metadata is what LiveKit's agent gets to know about the call.
type metadata struct {
	AgentID  uuid.UUID         `json:"agentId"`
	KeyID    uuid.UUID         `json:"keyId"`
	User     *User             `json:"user,omitempty"`
	Metadata map[string]string `json:"metadata,omitzero"`
}

// ParticipantToken returns a token for a new room, with which the participant may only join that
// room, publish the microphone, subscribe and send data. If ExpiresAt has passed, it errs.
func (s *Server) ParticipantToken(p Participant) (string, error) {
	if !time.Now().Before(p.ExpiresAt) {
		return "", errExpired
	}
	c := claims{
		RegisteredClaims: jwt.RegisteredClaims{Subject: p.Identity},
		Video: videoGrant{
			RoomJoin: true, Room: newRoomName(p.AgentID, p.KeyID),
			CanPublish: true, PublishSources: []string{"microphone"}, CanSubscribe: true, CanPublishData: true,
		},
		Attributes: map[string]string{agentAttribute: p.AgentID.String()},
	}
	if p.User != nil {
		c.Name, c.Attributes[userAttribute] = p.User.Name, p.User.ID
	}
	if s.agentName != "" {
		var data strings.Builder
		encoder := json.NewEncoder(&data)
		encoder.SetEscapeHTML(false) // it would make the metadata up to six times as long
		if err := encoder.Encode(metadata{AgentID: p.AgentID, KeyID: p.KeyID, User: p.User, Metadata: p.Metadata}); err != nil {
			return "", fmt.Errorf("encode the metadata of the agent: %w", err)
		}
		c.Room = &roomConfig{[]agentDispatch{{s.agentName, strings.TrimSuffix(data.String(), "\n")}}}
	}
	return s.sign(c, p.ExpiresAt)
}

// Room is a room that was opened with one of our tokens.
type Room struct {
	ID             string // of LiveKit; a room that is opened again has another one
	Name           string
	AgentID, KeyID uuid.UUID

	// In a list:
	CreatedAt time.Time // by LiveKit's clock, in whole milliseconds
	Empty     bool      // nobody but agents is in it: LiveKit keeps a room for a while
	New       bool      // so new that somebody in it may not be counted yet
}

func newRoomName(agentID, keyID uuid.UUID) string {
	return agentID.String() + "_" + keyID.String() + "_" + rand.Text()
}

// parseRoom returns the room with a name of [newRoomName]. Because a LiveKit server can have rooms
// that are not ours, it reports false for any other name.
func parseRoom(name string) (Room, bool) {
	parts := strings.Split(name, "_")
	if len(parts) != 3 || parts[2] == "" {
		return Room{}, false
	}
	agentID, agentErr := uuid.Parse(parts[0])
	keyID, keyErr := uuid.Parse(parts[1])
	return Room{Name: name, AgentID: agentID, KeyID: keyID}, agentErr == nil && keyErr == nil
}
