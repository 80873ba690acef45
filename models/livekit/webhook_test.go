package livekit_test

import (
	"errors"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models/livekit"
)

// The vector of the protocol: an event and its signature.
const (
	vectorKey    = "APIvector"
	vectorSecret = "livekit-webhook-vector-secret-0123456789"
	vectorBody   = `{"event":"participant_joined","room":{"sid":"RM_vector","name":"0198c2f4-7a31-7c6e-9d52-3f8be6a1c004_0198c2f4-9b00-7d11-8a3c-6c1de2f90a22_VECTOR","emptyTimeout":300,"departureTimeout":20,"creationTime":"1763899190","creationTimeMs":"1763899190123","numParticipants":1},"participant":{"sid":"PA_vector","identity":"0198c2f5-0000-7000-8000-000000000001","state":"ACTIVE","joinedAt":"1763899191","joinedAtMs":"1763899191456","attributes":{"agentId":"0198c2f4-7a31-7c6e-9d52-3f8be6a1c004","userId":"u-17"}},"id":"EV_vector","createdAt":"1763899191"}`
	vectorToken  = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJBUEl2ZWN0b3IiLCJuYmYiOjE3NjM4OTkxOTEsImlhdCI6MTc2Mzg5OTE5MSwiZXhwIjoxNzYzODk5NDkxLCJzaGEyNTYiOiJqOHRtcTMyOUtDb0EvdFcycmFvenJzaVptK21NMDZTRXVKMy9EaUIrNXJRPSJ9.b0PTv-zHk__iLCSlVyPWtibve-cqsh0ggUWjaL27xwc"
)

// vectorTime is when the signature becomes valid.
var vectorTime = time.Unix(1763899191, 0)

func TestWebhookVector(t *testing.T) {
	t.Parallel()
	server := livekit.New(livekit.Options{URL: &url.URL{Scheme: "wss", Host: "livekit.example.com"}, APIKey: vectorKey, APISecret: vectorSecret})
	for _, test := range []struct {
		after time.Duration
		valid bool
	}{{-61 * time.Second, false}, {-59 * time.Second, true}, {0, true}, {5 * time.Minute, true}, {359 * time.Second, true}, {361 * time.Second, false}} {
		verify, err := server.VerifyWebhook(vectorToken, vectorTime.Add(test.after))
		if (err == nil) != test.valid || err != nil && !errors.Is(err, livekit.ErrSignature) {
			t.Errorf("%s later: %v", test.after, err)
		}
		if err == nil && (verify([]byte(vectorBody)) != nil || !errors.Is(verify([]byte(vectorBody+" ")), livekit.ErrSignature)) {
			t.Errorf("%s later: the body is not verified", test.after)
		}
	}
	agent := uuid.MustParse("0198c2f4-7a31-7c6e-9d52-3f8be6a1c004")
	want := livekit.Event{
		CreatedAt: vectorTime.UTC(),
		Room: livekit.Room{
			ID: "RM_vector", Name: agent.String() + "_0198c2f4-9b00-7d11-8a3c-6c1de2f90a22_VECTOR", AgentID: agent,
			KeyID: uuid.MustParse("0198c2f4-9b00-7d11-8a3c-6c1de2f90a22"), CreatedAt: time.UnixMilli(1763899190123).UTC(),
		},
		Visitor: livekit.Visitor{
			ID: "PA_vector", Identity: "0198c2f5-0000-7000-8000-000000000001", UserID: "u-17", JoinedAt: time.UnixMilli(1763899191456).UTC(),
		},
	}
	if event, ours, err := livekit.ParseEvent([]byte(vectorBody)); err != nil || !ours || !reflect.DeepEqual(event, want) {
		t.Errorf("%+v, %t, %v", event, ours, err)
	}
}

func TestAFinishedRoomIsOurs(t *testing.T) {
	t.Parallel()
	const body = `{"event":"room_finished","room":{"sid":"RM_1","name":"0198c2f4-7a31-7c6e-9d52-3f8be6a1c004_0198c2f4-9b00-7d11-8a3c-6c1de2f90a22_X"},"createdAt":"1763899191"}`
	event, ours, err := livekit.ParseEvent([]byte(body))
	if err != nil || !ours {
		t.Fatalf("%t, %v", ours, err)
	}
	if !event.Finished || event.Room.ID != "RM_1" || event.Visitor != (livekit.Visitor{}) {
		t.Errorf("%+v", event)
	}
}

// Events about agents, other rooms and other things are not ours, and no errors.
func TestOtherEventsAreNotOurs(t *testing.T) {
	t.Parallel()
	const room = `"room":{"sid":"RM_1","name":"0198c2f4-7a31-7c6e-9d52-3f8be6a1c004_0198c2f4-9b00-7d11-8a3c-6c1de2f90a22_X"}`
	const attributes = `"attributes":{"agentId":"0198c2f4-7a31-7c6e-9d52-3f8be6a1c004"}`
	for _, body := range []string{
		`{"event":"room_started",` + room + `}`,
		`{"event":"room_finished","room":{"sid":"RM_1","name":"lobby"}}`,
		`{"event":"track_published",` + room + `,"participant":{"sid":"PA_1",` + attributes + `}}`,
		`{"event":"participant_joined",` + room + `,"participant":{"sid":"PA_1","kind":"AGENT",` + attributes + `}}`,
		`{"event":"participant_joined",` + room + `,"participant":{"sid":"PA_1"}}`,
		`{"event":"participant_joined",` + room + `,"participant":{` + attributes + `}}`,
		`{"event":"participant_joined","room":{"sid":"RM_1","name":"lobby"},"participant":{"sid":"PA_1",` + attributes + `}}`,
		`{"event":"participant_joined","room":{"sid":"RM_1","name":"a_b_c"},"participant":{"sid":"PA_1",` + attributes + `}}`,
		`{"event":"egress_started"}`,
	} {
		if event, ours, err := livekit.ParseEvent([]byte(body)); err != nil || ours {
			t.Errorf("%s: %+v, %t, %v", body, event, ours, err)
		}
	}
}

// LiveKit sends the number of a value that this release of protobuf's JSON has no name for.
func TestEnumsMayBeNumbers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		old, replacement string
		ours             bool
	}{
		"an unknown reason":   {`"sid":"PA_vector"`, `"sid":"PA_vector","disconnectReason":99`, true},
		"an unknown kind":     {`"sid":"PA_vector"`, `"sid":"PA_vector","kind":99`, false},
		"the usual kind":      {`"sid":"PA_vector"`, `"sid":"PA_vector","kind":0`, true},
		"an event of another": {`"event":"participant_joined"`, `"event":"egress_ended","participant":{"kind":7}`, false},
	} {
		_, ours, err := livekit.ParseEvent([]byte(strings.Replace(vectorBody, test.old, test.replacement, 1)))
		if err != nil || ours != test.ours {
			t.Errorf("%s: ours %t, %v", name, ours, err)
		}
	}
}
