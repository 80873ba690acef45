package api

import (
	"bytes"
	"encoding/json"
	"net/url"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models/livekit"
	"portal/models/secret"
	"portal/models/widget"
)

// tokenBody is the body of a token response.
type tokenBody struct {
	AccessToken string `json:"access_token"`
	TokenType   string `json:"token_type"`
	ExpiresIn   int    `json:"expires_in"`

	LiveKit *liveKitBody `json:"livekit,omitempty"`

	ServerURL        string `json:"server_url,omitempty"`
	ParticipantToken string `json:"participant_token,omitempty"`
}

func newIssuer(tb testing.TB) *API {
	tb.Helper()
	keyring, err := secret.NewKeyring("0123456789abcdef0123456789abcdef", "")
	if err != nil {
		tb.Fatal(err)
	}
	return &API{tokens: widget.NewTokens(keyring, "https://portal.example.com", 10*time.Minute, nil), signing: make(chan struct{}, 1)}
}

func TestTokenResponseIsEncodedAsByTheLibrary(t *testing.T) {
	t.Parallel()
	liveKit := livekit.New(livekit.Options{
		URL: &url.URL{Scheme: "wss", Host: "livekit.example.com", RawQuery: `a=1&b="<>"`}, APIKey: "key", APISecret: "a secret for LiveKit, of 32 bytes",
	})
	withLiveKit := newIssuer(t)
	withLiveKit.liveKit = liveKit
	for _, a := range []*API{newIssuer(t), withLiveKit} {
		got, err := a.appendTokenResponse([]byte("before"), widget.Grant{AgentID: uuid.New()})
		if err != nil {
			t.Fatal(err)
		}
		var body tokenBody
		got = bytes.TrimPrefix(got, []byte("before"))
		if err := json.Unmarshal(got, &body); err != nil {
			t.Fatal(err)
		}
		var want bytes.Buffer
		if err := json.NewEncoder(&want).Encode(body); err != nil || !bytes.Equal(got, want.Bytes()) {
			t.Errorf("got  %s\nwant %s%v", got, &want, err)
		}
	}
}

// BenchmarkTokenResponse issues a token and encodes the response.
func BenchmarkTokenResponse(b *testing.B) {
	a, grant := newIssuer(b), widget.Grant{AgentID: uuid.New()}
	b.Run("by hand", func(b *testing.B) {
		b.ReportAllocs()
		buffer := make([]byte, 0, 1024)
		for b.Loop() {
			if _, err := a.appendTokenResponse(buffer, grant); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding/json", func(b *testing.B) {
		b.ReportAllocs()
		var buffer bytes.Buffer
		for b.Loop() {
			buffer.Reset()
			token, _, err := a.tokens.Issue(nil, grant)
			body := tokenBody{AccessToken: string(token), TokenType: "Bearer", ExpiresIn: int(a.tokens.TTL() / time.Second)}
			if err != nil || json.NewEncoder(&buffer).Encode(body) != nil {
				b.Fatal(err)
			}
		}
	})
}
