package api_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"portal/handlers"
	"portal/models/livekit"
	"portal/models/modelstest"
)

const (
	liveKitKey    = "APIofTheTests"
	liveKitSecret = "a LiveKit secret of the tests, 32 bytes"
)

// withLiveKit starts an instance with a LiveKit server, which dispatches an agent with this name.
func withLiveKit(t *testing.T, databaseURL, agentName string) *service {
	t.Helper()
	return newService(t, databaseURL, func(d *handlers.Deps) {
		d.LiveKit = livekit.New(livekit.Options{
			URL: &url.URL{Scheme: "wss", Host: "livekit.example.com"}, APIKey: liveKitKey, APISecret: liveKitSecret,
			AgentName: agentName,
		})
	})
}

// call is the response to a request for a token.
type call struct {
	AccessToken string `json:"access_token"`
	LiveKit     *room  `json:"livekit"`
	room               // for LiveKit's SDKs
}

type room struct {
	ServerURL        string `json:"server_url"`
	ParticipantToken string `json:"participant_token"`
}

// call requests a token and returns the claims of its LiveKit token, with numbers as json.Number.
func (s *service) call(c customer, request string) (call, jwt.MapClaims) {
	s.t.Helper()
	var answer call
	s.post("/api/widget/token", bearer(c.secret), jsonBody(request)).is(http.StatusOK).into(&answer)
	if answer.LiveKit == nil || answer.ServerURL != "wss://livekit.example.com" || *answer.LiveKit != answer.room {
		s.t.Fatalf("livekit: %+v, and at the top level %+v", answer.LiveKit, answer.room)
	}
	claims := jwt.MapClaims{}
	token, err := jwt.NewParser(jwt.WithValidMethods([]string{"HS256"}), jwt.WithExpirationRequired(), jwt.WithJSONNumber()).
		ParseWithClaims(answer.LiveKit.ParticipantToken, claims, func(*jwt.Token) (any, error) { return []byte(liveKitSecret), nil })
	if err != nil || !reflect.DeepEqual(token.Header, map[string]any{"alg": "HS256", "typ": "JWT"}) {
		s.t.Fatalf("%v, header %v", err, token.Header)
	}
	return answer, claims
}

func TestLiveKitTokenAllowsOneCall(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, databaseURL string) {
		s := withLiveKit(t, databaseURL, "")
		c := s.customer()
		answer, claims := s.call(c, agentRequest(c.agent.ID))
		widget := modelstest.Value(s.tokens.Verify(answer.AccessToken))(t)
		video, _ := claims["video"].(map[string]any)
		room, _ := video["room"].(string)
		if !strings.HasPrefix(room, c.agent.ID.String()+"_"+c.key.ID.String()+"_") || len(room) < 2*36+2+26 {
			t.Errorf("room %q", room)
		}
		expires, _ := claims["exp"].(json.Number).Int64()
		if expires != widget.ExpiresAt {
			t.Errorf("exp %d, want that of the widget token, %d", expires, widget.ExpiresAt)
		}
		// The clock of the LiveKit server may be behind.
		if begins, _ := claims["nbf"].(json.Number).Int64(); time.Since(time.Unix(begins, 0)) < time.Minute {
			t.Errorf("nbf %d is not a minute ago", begins)
		}
		delete(claims, "exp")
		delete(claims, "nbf")
		want := jwt.MapClaims{
			"iss": liveKitKey, "sub": widget.ID.String(),
			"attributes": map[string]any{"agentId": c.agent.ID.String()},
			"video": map[string]any{
				"room": room, "roomJoin": true, "canPublish": true, "canPublishSources": []any{"microphone"},
				"canSubscribe": true, "canPublishData": true,
			},
		}
		if !reflect.DeepEqual(claims, want) {
			t.Errorf("got  %v\nwant %v", claims, want)
		}
		_, second := s.call(c, agentRequest(c.agent.ID))
		if video, _ := second["video"].(map[string]any); video["room"] == room || second["sub"] == claims["sub"] {
			t.Errorf("the second token has the room or the identity of the first: %v", second)
		}
	})
}

func TestLiveKitTokenDispatchesTheAgent(t *testing.T) {
	t.Parallel()
	s := withLiveKit(t, modelstest.SQLiteURL(t), "receptionist")
	c := s.customer()
	for context, name := range map[string]any{
		``:                   nil,
		`,"user":{"id":"7"}`: nil,
		`,"user":{"id":"7","name":"Zoë"},"metadata":{"plan":"<gold> & \n"}`: "Zoë",
	} {
		_, claims := s.call(c, `{"agentId":"`+c.agent.ID.String()+`"`+context+`}`)
		want := map[string]any{"agents": []any{map[string]any{
			"agentName": "receptionist",
			"metadata":  `{"agentId":"` + c.agent.ID.String() + `","keyId":"` + c.key.ID.String() + `"` + context + `}`,
		}}}
		if !reflect.DeepEqual(claims["roomConfig"], want) {
			t.Errorf("got %v, want %v", claims["roomConfig"], want)
		}
		attributes := map[string]any{"agentId": c.agent.ID.String()}
		if context != "" {
			attributes["userId"] = "7"
		}
		if !reflect.DeepEqual(claims["attributes"], attributes) || claims["name"] != name {
			t.Errorf("%s: attributes %v, name %v", context, claims["attributes"], claims["name"])
		}
	}
}

func TestWithoutLiveKitTheResponseHasThreeFields(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, c customer) {
		var body map[string]any
		s.post("/api/widget/token", bearer(c.secret), jsonBody(agentRequest(c.agent.ID))).is(http.StatusOK).into(&body)
		if len(body) != 3 || body["access_token"] == "" || body["token_type"] != "Bearer" || body["expires_in"] != 600.0 {
			t.Errorf("got %v", body)
		}
	})
}

// The participant token is not accepted where a widget token or a key is.
func TestLiveKitTokenIsNeitherAKeyNorAWidgetToken(t *testing.T) {
	t.Parallel()
	s := withLiveKit(t, modelstest.SQLiteURL(t), "")
	c := s.customer()
	answer, _ := s.call(c, agentRequest(c.agent.ID))
	for _, path := range []string{"/api/agents", "/widget/authorize"} {
		s.get(path, bearer(answer.LiveKit.ParticipantToken)).is(http.StatusUnauthorized)
	}
	if strings.Contains(s.log.String(), liveKitSecret) || strings.Contains(s.log.String(), answer.LiveKit.ParticipantToken) {
		t.Error("the log has the secret or the token")
	}
}
