// Package livekit issues tokens for the rooms of a LiveKit server, and lists and ends its rooms. It
// imports nothing of ours.
package livekit

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/livekit/protocol/auth"
	"github.com/livekit/protocol/livekit"
)

// agentAttribute is the attribute of a participant with the id of the portal's agent. A participant
// cannot change it.
const agentAttribute = "agentId"

// serverTokenTTL is the lifetime of the tokens of our own requests.
const serverTokenTTL = time.Minute

// errExpired means that a token would expire before it is issued.
var errExpired = errors.New("livekit: the token would be expired")

// Options configure a [Server].
type Options struct {
	URL       *url.URL // ws or wss, as browsers reach the server
	APIKey    string
	APISecret string
	AgentName string // of the agent that joins each room; empty: none
}

// Server is a LiveKit server. It is safe for concurrent use.
type Server struct {
	url       string // for browsers
	agentName string
	rooms     livekit.RoomService

	// newToken is a closure, so that no field holds the secret.
	newToken func() *auth.AccessToken
}

// New returns the server with these options. It does not connect.
func New(o Options) *Server {
	api := *o.URL
	api.Scheme = strings.Replace(api.Scheme, "ws", "http", 1)
	return &Server{
		url: o.URL.String(), agentName: o.AgentName,
		rooms:    livekit.NewRoomServiceProtobufClient(strings.TrimRight(api.String(), "/"), newClient()),
		newToken: func() *auth.AccessToken { return auth.NewAccessToken(o.APIKey, o.APISecret) },
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

// metadata tells LiveKit's agent which agent of the portal the call is for.
type metadata struct {
	AgentID uuid.UUID `json:"agentId"`
}

// ParticipantToken returns a token for a new room. The participant may join that room, publish the
// microphone, subscribe and send data, and nothing else. It errs if ExpiresAt has passed.
func (s *Server) ParticipantToken(p Participant) (string, error) {
	// With a lifetime of zero or less the library would issue a token for six hours.
	lifetime := time.Until(p.ExpiresAt)
	if lifetime <= 0 {
		return "", errExpired
	}
	grant := &auth.VideoGrant{RoomJoin: true, Room: newRoomName(p.AgentID, p.KeyID)}
	// LiveKit grants these permissions if they are missing.
	grant.SetCanPublish(true)
	grant.SetCanPublishSources([]livekit.TrackSource{livekit.TrackSource_MICROPHONE})
	grant.SetCanSubscribe(true)
	grant.SetCanPublishData(true)
	token := s.newToken().SetIdentity(p.Identity).SetValidFor(lifetime).SetVideoGrant(grant).
		SetAttributes(map[string]string{agentAttribute: p.AgentID.String()})
	if s.agentName != "" {
		data, err := json.Marshal(metadata{p.AgentID})
		if err != nil {
			return "", fmt.Errorf("encode the metadata of the agent: %w", err)
		}
		token.SetAgents(&livekit.RoomAgentDispatch{AgentName: s.agentName, Metadata: string(data)})
	}
	signed, err := token.ToJWT()
	if err != nil {
		return "", fmt.Errorf("sign LiveKit token: %w", err)
	}
	return signed, nil
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
