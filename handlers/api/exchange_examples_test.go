package api_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"gopkg.in/yaml.v3"

	"portal/models/modelstest"
	"portal/models/workload"
	"portal/templates"
)

// The example of each platform, run with the claims of its tokens, prints or writes an access token
// of the key.
func TestExamplesOfPlatformsRun(t *testing.T) {
	t.Parallel()
	e := newExchangeService(t, modelstest.SQLiteURL(t))
	now := e.clock.Now().Unix()
	times := map[string]any{"iss": e.issuer.URL, "aud": issuer, "iat": now, "nbf": now, "exp": now + 300}
	for provider, own := range map[workload.Provider]map[string]any{
		workload.GitHub: e.job(),
		workload.GitLab: {
			"jti": uuid.NewString(), "project_path": "acme/site", "project_id": "22", "namespace_path": "acme", "namespace_id": "72",
			"sub": "project_path:acme/site:ref_type:branch:ref:main", "ref": "main", "ref_type": "branch", "ref_protected": "true",
		},
		workload.Google:     {"azp": "112233445566778899000", "sub": "112233445566778899000", "email": "deploy@acme-prod.iam.gserviceaccount.com", "email_verified": true},
		workload.AWS:        {"jti": uuid.NewString(), "sub": "arn:aws:iam::123456789012:role/deploy"},
		workload.Azure:      {"oid": "0198c2f4-7a31-7c6e-9d52-3f8be6a1c005", "tid": "0198c2f4-7a31-7c6e-9d52-3f8be6a1c004", "ver": "2.0"},
		workload.Kubernetes: {"aud": []string{issuer}, "sub": "system:serviceaccount:shop:backend", "kubernetes.io": map[string]any{"namespace": "shop"}},
		workload.Vercel:     {"sub": "owner:acme:project:site:environment:production", "owner_id": "team_1", "project_id": "prj_1", "environment": "production"},
		workload.Other:      {"sub": "deploy"},
	} {
		claims := maps.Clone(times)
		maps.Copy(claims, own)
		platform, _ := provider.Platform()
		identity := "sub"
		if len(platform.Claims) > 0 {
			identity = platform.Claims[0].Name
		}
		key := e.trusting(workload.Rule{
			Provider: provider, Issuer: e.issuer.URL, Audience: issuer, Claims: map[string][]string{identity: {claims[identity].(string)}},
		})
		snippets := templates.WorkloadSnippets(provider, key.ID.String(), issuer, e.url+"/oauth/token")
		access := runExample(t, snippets[len(snippets)-1], e.issuer.Token(claims))
		if response := e.as(access, "/api/key"); response.StatusCode != http.StatusOK || !strings.Contains(response.Body, key.ID.String()) {
			t.Errorf("%s: %d %s", platform.Name, response.StatusCode, response.Body)
		}
	}
}

// runExample runs an example where a platform gives the token, and returns the access token.
func runExample(t *testing.T, example templates.Snippet, token string) string {
	t.Helper()
	// A token for another audience is none. The addresses are those of the platforms, by a
	// proxy.
	platform := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		switch {
		case r.URL.Path == "/github" && query.Get("api-version") != "" && query.Get("audience") == issuer && r.Header.Get("Authorization") == "Bearer request":
			_ = json.NewEncoder(w).Encode(map[string]string{"value": token})
		case r.Host == "metadata.google.internal" && query.Get("audience") == issuer && r.Header.Get("Metadata-Flavor") == "Google":
			_, _ = w.Write([]byte(token))
		case r.Host == "169.254.169.254" && query.Get("resource") == issuer && r.Header.Get("Metadata") == "true":
			_ = json.NewEncoder(w).Encode(map[string]string{"access_token": token})
		default:
			http.NotFound(w, r)
		}
	}))
	defer platform.Close()
	dir := t.TempDir()
	mounted := filepath.Join(dir, "token")
	modelstest.Must(t, os.WriteFile(mounted, []byte(token), 0o600))
	modelstest.Must(t, os.WriteFile(filepath.Join(dir, "aws"), []byte("#!/bin/sh\ncat "+mounted+"\n"), 0o700))
	script := strings.ReplaceAll(scriptOf(t, example), "/var/run/secrets/portal/token", mounted)
	command := exec.CommandContext(t.Context(), "sh", "-e", "-c", script)
	command.Dir, command.WaitDelay = dir, time.Second
	command.Env = []string{
		"PATH=" + dir + ":" + os.Getenv("PATH"), "http_proxy=" + platform.URL, "no_proxy=127.0.0.1",
		"ACTIONS_ID_TOKEN_REQUEST_URL=" + platform.URL + "/github?api-version=2.0", "ACTIONS_ID_TOKEN_REQUEST_TOKEN=request",
	}
	if !strings.Contains(script, "TOKEN=$(") { // the platform sets it
		command.Env = append(command.Env, "TOKEN="+token)
	}
	output, err := command.Output()
	if written, readErr := os.ReadFile(filepath.Join(dir, "access-token")); readErr == nil {
		return strings.TrimSpace(string(written))
	}
	var body exchangeResponse
	if err != nil || json.Unmarshal(output, &body) != nil {
		t.Errorf("%v: %s\n%s", err, output, script)
	}
	return body.AccessToken
}

// scriptOf returns the commands of an example.
func scriptOf(t *testing.T, example templates.Snippet) string {
	t.Helper()
	if example.Language == "bash" {
		return example.Code()
	}
	var document struct {
		Steps  []struct{ Run string }
		Deploy struct{ Script []string }
	}
	modelstest.Must(t, yaml.Unmarshal([]byte(example.Code()), &document))
	for _, step := range document.Steps {
		return step.Run
	}
	return strings.Join(document.Deploy.Script, "\n")
}
