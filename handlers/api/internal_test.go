package api

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/middleware"
	"portal/models/livekit"
	"portal/models/secret"
	"portal/models/widget"
)

// FewerEvents divides the events that the calls of a key and of an account may have at once, so
// that tests of these limits send fewer.
const FewerEvents = 10

// LimitEvents applies [FewerEvents]. TestMain calls it.
func LimitEvents() {
	eventsOfKey.Burst /= FewerEvents
	eventsOfAccount.Burst /= FewerEvents
}

// tokenBody is the body of a token response.
type tokenBody struct {
	AccessToken string `json:"access_token"`
	TokenType   string `json:"token_type"`
	ExpiresIn   int    `json:"expires_in"`

	LiveKit *liveKitBody `json:"livekit,omitempty"`

	ServerURL        string `json:"server_url,omitempty"`
	ParticipantToken string `json:"participant_token,omitempty"`
}

func newIssuer(tb testing.TB) *widgetTokens {
	tb.Helper()
	keyring, err := secret.NewKeyring("0123456789abcdef0123456789abcdef", "")
	if err != nil {
		tb.Fatal(err)
	}
	tokens := widget.NewTokens(keyring, "https://portal.example.com", 10*time.Minute, nil)
	return &widgetTokens{site: &site{}, tokens: tokens, signing: make(chan struct{}, 1)}
}

func TestTokenResponseIsEncodedAsByTheLibrary(t *testing.T) {
	t.Parallel()
	liveKit := livekit.New(livekit.Options{
		URL: &url.URL{Scheme: "wss", Host: "livekit.example.com", RawQuery: `a=1&b="<>"`}, APIKey: "key", APISecret: "a secret for LiveKit, of 32 bytes",
	})
	withLiveKit := newIssuer(t)
	withLiveKit.liveKit = liveKit
	for _, a := range []*widgetTokens{newIssuer(t), withLiveKit} {
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

// BenchmarkReadTokenRequest reads the body of a request for a widget token.
func BenchmarkReadTokenRequest(b *testing.B) {
	a := newIssuer(b)
	for name, body := range map[string]string{
		"by hand":       `{"agentId":"0198c2f4-7a31-7c6e-9d52-3f8be6a1c004"}`,
		"encoding/json": `{"agentId":"0198c2f4-7a31-7c6e-9d52-3f8be6a1c004" }`,
	} {
		b.Run(name, func(b *testing.B) {
			c, _ := gin.CreateTestContext(httptest.NewRecorder())
			c.Request = httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/api/widget/token", http.NoBody)
			c.Request.Header.Set("Content-Type", "application/json")
			c.Request.ContentLength = int64(len(body))
			b.ReportAllocs()
			for b.Loop() {
				c.Request.Body = io.NopCloser(strings.NewReader(body))
				if _, err := a.readTokenRequest(c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestPolicyGivesTheBurstAndTheTimeToRefillIt(t *testing.T) {
	for limit, want := range map[middleware.RateLimit]string{
		{PerSecond: 50, Burst: 100}:      `"key";q=100;w=2`,
		{PerSecond: 50, Burst: 101}:      `"key";q=101;w=3`,
		{PerSecond: 100, Burst: 1}:       `"key";q=1;w=1`,
		{PerSecond: 1, Burst: 60}:        `"key";q=60;w=60`,
		{PerSecond: 1_000_000, Burst: 1}: `"key";q=1;w=1`,
		{PerSecond: 1, Burst: 1_000_000}: `"key";q=1000000;w=1000000`,
	} {
		if got := newRateLimiter("key", "", limit, time.Now).policy; got != want {
			t.Errorf("%v: %s, want %s", limit, got, want)
		}
	}
}

// Anyone can send such a report.
func TestParsingAPublicReportTakesLittle(t *testing.T) {
	for name, body := range map[string]string{
		"many texts":  `{"keys":[` + strings.Repeat(`"",`, 20_000) + `""]}`,
		"many fields": "{" + strings.Repeat(`"a":0,`, 10_000) + `"keys":["x"]}`,
		"nesting":     `{"keys":` + strings.Repeat("[", 60_000),
		"other lists": `{"a":[` + strings.Repeat(`"",`, 20_000) + `""],"keys":["x"]}`,
	} {
		allocations := testing.AllocsPerRun(10, func() { _, _ = parsePublicLeaks([]byte(body)) })
		if allocations > 2000 {
			t.Errorf("%s: %.0f allocations", name, allocations)
		}
	}
}
