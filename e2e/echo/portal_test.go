package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/livekit/protocol/auth"
	"github.com/livekit/protocol/livekit"
	"github.com/livekit/protocol/webhook"
	"github.com/twitchtv/twirp"
	"google.golang.org/protobuf/encoding/protojson"

	portal "portal/models/livekit"
)

const (
	apiKey    = "APIofTheTests"
	apiSecret = "a LiveKit secret of the tests, 40 bytes"
)

// verify returns the grants of a token, as a LiveKit server reads them.
func verify(token string) (*auth.ClaimGrants, error) {
	parsed, err := auth.ParseAPIToken(token)
	if err != nil {
		return nil, err
	}
	_, grants, err := parsed.Verify(apiSecret)
	return grants, err
}

func TestLiveKitReadsParticipantTokens(t *testing.T) {
	server := portal.New(portal.Options{URL: &url.URL{}, APIKey: apiKey, APISecret: apiSecret, AgentName: "voice"})
	agentID, keyID := uuid.New(), uuid.New()
	token, err := server.ParticipantToken(portal.Participant{
		Identity: "visitor", AgentID: agentID, KeyID: keyID, ExpiresAt: time.Now().Add(time.Minute),
		User: &portal.User{ID: "7", Name: "Zoë"}, Metadata: map[string]string{"plan": "gold"},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := verify(token)
	if err != nil {
		t.Fatal(err)
	}
	want := auth.NewAccessToken(apiKey, apiSecret).SetIdentity("visitor").SetName("Zoë").
		SetAttributes(map[string]string{"agentId": agentID.String(), "userId": "7"}).
		SetAgents(&livekit.RoomAgentDispatch{
			AgentName: "voice",
			Metadata:  `{"agentId":"` + agentID.String() + `","keyId":"` + keyID.String() + `","user":{"id":"7","name":"Zoë"},"metadata":{"plan":"gold"}}`,
		})
	grant := &auth.VideoGrant{RoomJoin: true, Room: got.Video.Room}
	grant.SetCanPublish(true)
	grant.SetCanPublishSources([]livekit.TrackSource{livekit.TrackSource_MICROPHONE})
	grant.SetCanSubscribe(true)
	grant.SetCanPublishData(true)
	want.SetVideoGrant(grant)
	signed, err := want.ToJWT()
	if err != nil {
		t.Fatal(err)
	}
	if want, err := verify(signed); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("error %v\ngot  %v\nwant %v", err, got, want)
	}
}

// roomService is a LiveKit server with one room. It records the calls that it allows.
type roomService struct {
	livekit.RoomService // nil: the portal calls nothing else

	room         string
	participants []*livekit.ParticipantInfo
	calls        []string
}

type grantKey struct{}

func (s *roomService) allow(ctx context.Context, call string, allowed func(*auth.VideoGrant) bool) error {
	if grant, ok := ctx.Value(grantKey{}).(*auth.VideoGrant); !ok || !allowed(grant) {
		return twirp.NewError(twirp.PermissionDenied, call)
	}
	s.calls = append(s.calls, call)
	return nil
}

func (s *roomService) admin(ctx context.Context, call, room string) error {
	if room != s.room {
		return twirp.NotFoundError("no such room")
	}
	return s.allow(ctx, call, func(g *auth.VideoGrant) bool { return g.RoomAdmin && g.Room == room })
}

func (s *roomService) ListRooms(ctx context.Context, r *livekit.ListRoomsRequest) (*livekit.ListRoomsResponse, error) {
	err := s.allow(ctx, "ListRooms", func(g *auth.VideoGrant) bool { return g.RoomList && len(r.GetNames()) == 0 })
	return &livekit.ListRoomsResponse{Rooms: []*livekit.Room{{Sid: "RM_1", Name: s.room, CreationTimeMs: 1763899190123, NumParticipants: 1}, {Name: "lobby"}}}, err
}

func (s *roomService) ListParticipants(ctx context.Context, r *livekit.ListParticipantsRequest) (*livekit.ListParticipantsResponse, error) {
	return &livekit.ListParticipantsResponse{Participants: s.participants}, s.admin(ctx, "ListParticipants", r.GetRoom())
}

func (s *roomService) RemoveParticipant(ctx context.Context, r *livekit.RoomParticipantIdentity) (*livekit.RemoveParticipantResponse, error) {
	return &livekit.RemoveParticipantResponse{}, s.admin(ctx, "RemoveParticipant "+r.GetIdentity(), r.GetRoom())
}

func (s *roomService) DeleteRoom(ctx context.Context, r *livekit.DeleteRoomRequest) (*livekit.DeleteRoomResponse, error) {
	return &livekit.DeleteRoomResponse{}, s.allow(ctx, "DeleteRoom", func(g *auth.VideoGrant) bool { return g.RoomCreate && r.GetRoom() == s.room })
}

func TestLiveKitUnderstandsRequests(t *testing.T) {
	service := &roomService{
		room: uuid.NewString() + "_" + uuid.NewString() + "_x",
		participants: []*livekit.ParticipantInfo{
			{Identity: "visitor", Attributes: map[string]string{"agentId": "1"}}, {Identity: "agent", Kind: livekit.ParticipantInfo_AGENT},
		},
	}
	handler := livekit.NewRoomServiceServer(service)
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		grants, err := verify(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		if err != nil {
			t.Error(err)
			return
		}
		handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), grantKey{}, grants.Video)))
	}))
	t.Cleanup(listener.Close)
	server := portal.New(portal.Options{
		URL: &url.URL{Scheme: "ws", Host: strings.TrimPrefix(listener.URL, "http://")}, APIKey: apiKey, APISecret: apiSecret,
	})
	var rooms []portal.Room
	err := server.EachRoom(t.Context(), func(room portal.Room) error {
		rooms = append(rooms, room)
		return nil
	})
	if err != nil || len(rooms) != 1 || rooms[0].Name != service.room {
		t.Fatalf("rooms %v, error %v", rooms, err)
	}
	if rooms[0].ID != "RM_1" || rooms[0].Empty || rooms[0].CreatedAt.UnixMilli() != 1763899190123 {
		t.Errorf("the room %+v", rooms[0])
	}
	for _, want := range []bool{true, false} {
		if ended, err := server.EndRoom(t.Context(), rooms[0].Name); err != nil || ended != want {
			t.Errorf("ended: %t, want %t; error %v", ended, want, err)
		}
		service.participants = service.participants[1:]
	}
	want := []string{"ListRooms", "ListParticipants", "RemoveParticipant visitor", "ListParticipants", "DeleteRoom"}
	if !reflect.DeepEqual(service.calls, want) {
		t.Errorf("got  %q\nwant %q", service.calls, want)
	}
}

// LiveKit's own receiver and the portal accept the same webhooks.
func TestPortalReadsWebhooks(t *testing.T) {
	agentID := uuid.NewString()
	room := agentID + "_" + uuid.NewString() + "_x"
	body, err := protojson.Marshal(&livekit.WebhookEvent{
		Event: webhook.EventParticipantLeft, Id: "EV_1", CreatedAt: 1763899200,
		Room: &livekit.Room{Sid: "RM_1", Name: room, CreationTimeMs: 1763899190123},
		Participant: &livekit.ParticipantInfo{
			Sid: "PA_1", Identity: "visitor", JoinedAt: 1763899191, JoinedAtMs: 1763899191456,
			Attributes: map[string]string{"agentId": agentID, "userId": "u-17"}, DisconnectReason: livekit.DisconnectReason_CLIENT_INITIATED,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256(body)
	token, err := auth.NewAccessToken(apiKey, apiSecret).SetValidFor(5 * time.Minute).SetSha256(base64.StdEncoding.EncodeToString(hash[:])).ToJWT()
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequest(http.MethodPost, "/livekit/webhook", bytes.NewReader(body))
	request.Header.Set("Authorization", token)
	if _, err := webhook.ReceiveWebhookEvent(request, auth.NewSimpleKeyProvider(apiKey, apiSecret)); err != nil {
		t.Fatal(err)
	}
	server := portal.New(portal.Options{URL: &url.URL{}, APIKey: apiKey, APISecret: apiSecret})
	verify, err := server.VerifyWebhook(token, time.Now())
	if err != nil || verify(body) != nil {
		t.Fatalf("the portal refuses the signature: %v", err)
	}
	event, ours, err := portal.ParseEvent(body)
	if err != nil || !ours {
		t.Fatalf("%t, %v", ours, err)
	}
	if !event.Left || event.Room.ID != "RM_1" || event.CreatedAt.Unix() != 1763899200 {
		t.Errorf("%+v", event)
	}
	visitor := event.Visitor
	if visitor.JoinedAt.UnixMilli() != 1763899191456 || visitor.Reason != "CLIENT_INITIATED" || visitor.UserID != "u-17" {
		t.Errorf("%+v", visitor)
	}
}
