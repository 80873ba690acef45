package api_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/uuid"

	"portal/models/agents"
	"portal/models/modelstest"
	"portal/models/record"
)

// fuzzedAgent is the id of an agent of the customer. The seeds contain it.
var fuzzedAgent = uuid.MustParse("0198c2f4-7a31-7c6e-9d52-3f8be6a1c004")

// newTarget returns an instance and a customer who has the agent fuzzedAgent.
func newTarget(f *testing.F) (*service, customer) {
	f.Helper()
	s := newService(f, modelstest.SQLiteURL(f))
	c := s.customer()
	modelstest.Value(s.store.Agents.Create(f.Context(), c.accountID, agents.NewAgent{ID: fuzzedAgent, Name: "Fuzzed"}, record.Operator()))(f)
	return s, c
}

// serve calls the handler without a network, and returns the response and its log output.
func (s *service) serve(t *testing.T, r *http.Request) (response answer, logged string) {
	s.log.Reset()
	recorder := httptest.NewRecorder()
	s.handler.ServeHTTP(recorder, r)
	return answer{t: t, status: recorder.Code, header: recorder.Header(), body: recorder.Body.Bytes()}, s.log.String()
}

// Every header except Bearer with the key gets a 401. Neither the response nor the log repeats the
// credential.
func FuzzAuthorizationHeader(f *testing.F) {
	s, c := newTarget(f)
	for _, seed := range []string{
		"", " ", "Bearer", "Bearer ", "bearer nas_", "BEARER  nas_abc", "Basic bmFzXzpuYXNf", "Bearer\tnas_x", "Bearer nas_x, Bearer nas_y",
		"Bearer " + unknownKey, "Bearer nas_0000000000000000000000000000001rjTT1 ",
		"Bearer " + strings.ToUpper(unknownKey), "Bearer nas_" + strings.Repeat("\x00", 36),
		"Bearer nas_" + strings.Repeat("é", 18), "Bearer eyJhbGciOiJFZERTQSJ9.e30.", "Bearer " + strings.Repeat("A", 8<<10), "Bearer nas_\r\nX: y",
		"Bearer $KEY", "bEARER   $KEY  ", "Basic $KEY", "$KEY", "Bearer $KEY$KEY", "Bearer\u00a0$KEY", "Bearer $KEY\x00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		// $KEY stands for the key, which the fuzzer does not know.
		sent := strings.ReplaceAll(header, "$KEY", c.secret)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/agents", http.NoBody)
		r.Header["Authorization"] = []string{sent}
		a, logged := s.serve(t, r)
		scheme, rest, _ := strings.Cut(sent, " ")
		if strings.EqualFold(scheme, "Bearer") && strings.Trim(rest, " ") == c.secret {
			a.is(http.StatusOK)
			return
		}
		a.fails(http.StatusUnauthorized, "UNAUTHORIZED").has("WWW-Authenticate", invalidChallenge)
		// A shorter credential may occur by chance.
		if credential := strings.TrimSpace(rest); len(credential) > 8 && strings.Contains(string(a.body)+logged, credential) {
			t.Fatalf("the credential %q is repeated: %s%s", credential, a.body, logged)
		}
	})
}

// Only one JSON object with the customer's agent gets a token, and no body causes a 5xx.
func FuzzTokenRequestBody(f *testing.F) {
	s, c := newTarget(f)
	agent := `{"agentId":"$ID"}`
	for _, seed := range []string{
		``, `{}`, `null`, `[]`, `["$ID"]`, `"x"`, `"$ID"`, `agentId=$ID`, `{"agentId":"$ID"`,
		`{"agentId":null}`, `{"agentId":1}`, `{"agentId":{}}`, `{"agentId":{"agentId":"$ID"}}`,
		`{"AGENTID":"$ID"}`, `{"agentid":"$ID"}`, `{"agent_id":"$ID"}`, `{"agent\u0049d":"$ID"}`,
		agent, `{"agentId": "$ID"}`, "\r\n\t " + agent + "\n", `{"note":{"deep":[1,2]},"agentId":"$ID"}`,
		`{"agentId":"$ID","AgentId":"x"}`, `{"AGENTID":7,"agentId":"$ID"}`, `{"note":1e999,"agentId":"$ID"}`,
		`{"agentId":"x","agentId":"$ID"}`, `{"agentId":"$ID","agentId":"x"}`,
		agent + `{}`, agent + `,`, agent + ` x`, agent + ` // mine`, "\ufeff" + agent,
		`{"agentId":"{$ID}"}`, `{"agentId":"urn:uuid:$ID"}`, `{"agentId":" $ID"}`, `{"agentId":""}`,
		`{"agentId":"0198c2f47a317c6e9d523f8be6a1c004"}`, `{"agentId":"0198c2f4_7a31_7c6e_9d52_3f8be6a1c004"}`,
		`{"agentId":"00000000-0000-0000-0000-000000000000"}`, `{"agentId":"' OR 1=1; --"}`,
		`{"agentId":"` + strings.Repeat("z", 36) + `"}`, `{"agentId":"\ud800"}`, "{\"agentId\":\"\xff\"}",
		"{\"agentId\":\"$ID\",\"note\":\"\xff\"}", agent + strings.Repeat(" ", 16<<10-50), agent + strings.Repeat(" ", 16<<10),
		`{"agentId":"$ID","user":{"id":"1"}}`, `{"agentId":"$ID","user":1}`, `{"agentId":"$ID","metadata":{"a":"b"},"expiresIn":60}`,
		`{"agentId":"$ID","expiresIn":1e999}`, strings.Repeat(`{"a":`, 9999), strings.Repeat("[", 16<<10), `{"agentId":"` + strings.Repeat("0", 17<<10),
	} {
		seed = strings.ReplaceAll(seed, "$ID", fuzzedAgent.String())
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	f.Add([]byte(`{"agentId":"`+strings.ToUpper(fuzzedAgent.String())+`"}`), false)
	f.Fuzz(func(t *testing.T, body []byte, chunked bool) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/widget/token", bytes.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+c.secret)
		r.Header.Set("Content-Type", "application/json")
		if chunked {
			r.ContentLength = -1
		}
		a, _ := s.serve(t, r)
		named, isUUID, context := namedAgent(bytes.TrimPrefix(body, []byte("\ufeff")))
		switch {
		case a.status == http.StatusOK:
			if named != fuzzedAgent {
				t.Fatalf("a token for %q", body)
			}
		case a.status == http.StatusRequestEntityTooLarge:
			if len(body) <= 16<<10 {
				t.Fatalf("%d bytes are too many", len(body))
			}
		case isUUID && (!context || a.status != http.StatusBadRequest):
			a.fails(http.StatusNotFound, "AGENT_NOT_FOUND")
			if named == fuzzedAgent {
				t.Fatalf("no token for %q", body)
			}
		default:
			a.fails(http.StatusBadRequest, "INVALID_REQUEST")
		}
	})
}

// namedAgent parses a body independently of the handler. It reports whether the id is a UUID, and
// whether the body has other fields that the handler checks.
func namedAgent(body []byte) (id uuid.UUID, isUUID, context bool) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var object any
	if !utf8.Valid(body) || !json.Valid(body) || decoder.Decode(&object) != nil {
		return uuid.Nil, false, false
	}
	fields, _ := object.(map[string]any)
	context = fields["user"] != nil || fields["metadata"] != nil || fields["expiresIn"] != nil
	text, _ := fields["agentId"].(string)
	if len(text) != 36 {
		return uuid.Nil, false, context
	}
	id, err := uuid.Parse(text)
	return id, err == nil, context
}
