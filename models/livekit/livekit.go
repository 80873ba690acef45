// Package livekit issues tokens for the rooms of a LiveKit server, and lists and ends its rooms. It
// imports nothing of ours.
//
// A LiveKit token is a JWT signed with HS256. The package signs it with golang-jwt, because package
// auth of livekit/protocol links 276 packages and adds 19 MB to the program.
package livekit

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
)

const (
	// verifierSkew is how far behind ours the clock of the LiveKit server may be.
	verifierSkew = time.Minute
	// serverTokenTTL is the lifetime of the tokens of our own requests.
	serverTokenTTL = time.Minute
)

// Options configure a [Server].
type Options struct {
	URL       *url.URL // ws or wss, as browsers reach the server
	APIKey    string
	APISecret string
	AgentName string           // of the agent that joins each room; empty: none
	Now       func() time.Time // the clock of the server's own tokens; nil: time.Now
}

// Server is a LiveKit server. It is safe for concurrent use.
type Server struct {
	url, api  string // for browsers and for our requests
	apiKey    string
	agentName string
	now       func() time.Time
	client    *http.Client

	// sign is a closure, so that no field holds the secret.
	sign func(jwt.Claims) (string, error)
}

// New returns the server with these options. It does not connect.
func New(o Options) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	api := *o.URL
	api.Scheme = strings.Replace(api.Scheme, "ws", "http", 1)
	secret := []byte(o.APISecret)
	return &Server{
		url: o.URL.String(), api: api.JoinPath("twirp/livekit.RoomService").String(),
		apiKey: o.APIKey, agentName: o.AgentName, now: o.Now, client: newClient(),
		sign: func(claims jwt.Claims) (string, error) {
			return jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(secret)
		},
	}
}

// URL returns the address that browsers connect to.
func (s *Server) URL() string { return s.url }

// Participant is a browser that may join one room.
type Participant struct {
	Identity       string // unique
	AgentID, KeyID uuid.UUID
	ExpiresAt      time.Time
}

// claims are the claims of a LiveKit token.
type claims struct {
	jwt.RegisteredClaims

	Video      videoGrant        `json:"video"`
	Attributes map[string]string `json:"attributes,omitempty"`
	Room       *roomConfig       `json:"roomConfig,omitempty"`
}

// videoGrant lists permissions. LiveKit grants the three permissions with pointers if they are
// missing.
type videoGrant struct {
	RoomCreate bool   `json:"roomCreate,omitempty"`
	RoomList   bool   `json:"roomList,omitempty"`
	RoomJoin   bool   `json:"roomJoin,omitempty"`
	Room       string `json:"room,omitempty"`

	CanPublish     *bool    `json:"canPublish,omitempty"`
	PublishSources []string `json:"canPublishSources,omitempty"`
	CanSubscribe   *bool    `json:"canSubscribe,omitempty"`
	CanPublishData *bool    `json:"canPublishData,omitempty"`
}

type roomConfig struct {
	Agents []agentDispatch `json:"agents"`
}

type agentDispatch struct {
	AgentName string `json:"agentName"`
	Metadata  string `json:"metadata"`
}

// metadata tells LiveKit's agent which agent of the portal the call is for.
type metadata struct {
	AgentID uuid.UUID `json:"agentId"`
}

// ParticipantToken returns a token for a new room. The participant may join that room, publish the
// microphone, subscribe and send data, and nothing else.
func (s *Server) ParticipantToken(p Participant) (string, error) {
	yes := true
	c := claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: s.apiKey, Subject: p.Identity, ID: p.Identity,
			NotBefore: jwt.NewNumericDate(s.now().Add(-verifierSkew)), ExpiresAt: jwt.NewNumericDate(p.ExpiresAt),
		},
		Video: videoGrant{
			RoomJoin: true, Room: newRoomName(p.AgentID, p.KeyID),
			CanPublish: &yes, PublishSources: []string{"microphone"}, CanSubscribe: &yes, CanPublishData: &yes,
		},
		Attributes: map[string]string{"agentId": p.AgentID.String()},
	}
	if s.agentName != "" {
		data, err := json.Marshal(metadata{p.AgentID})
		if err != nil {
			return "", fmt.Errorf("encode the metadata of the agent: %w", err)
		}
		c.Room = &roomConfig{[]agentDispatch{{s.agentName, string(data)}}}
	}
	token, err := s.sign(c)
	if err != nil {
		return "", fmt.Errorf("sign LiveKit token: %w", err)
	}
	return token, nil
}

// serverToken returns a token for our own requests.
func (s *Server) serverToken() (string, error) {
	now := s.now()
	return s.sign(claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: s.apiKey, NotBefore: jwt.NewNumericDate(now.Add(-verifierSkew)), ExpiresAt: jwt.NewNumericDate(now.Add(serverTokenTTL)),
		},
		Video: videoGrant{RoomCreate: true, RoomList: true},
	})
}

// Room is a room that was opened with one of our tokens.
type Room struct {
	Name           string
	AgentID, KeyID uuid.UUID
}

func newRoomName(agentID, keyID uuid.UUID) string {
	return agentID.String() + "_" + keyID.String() + "_" + rand.Text()
}

// parseRoom returns the room with a name of [newRoomName]. It reports false for any other name: a
// LiveKit server can have rooms that are not ours.
func parseRoom(name string) (Room, bool) {
	parts := strings.Split(name, "_")
	if len(parts) != 3 || parts[2] == "" {
		return Room{}, false
	}
	agentID, agentErr := uuid.Parse(parts[0])
	keyID, keyErr := uuid.Parse(parts[1])
	return Room{name, agentID, keyID}, agentErr == nil && keyErr == nil
}
