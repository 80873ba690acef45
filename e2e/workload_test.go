package e2e

import (
	"encoding/json"
	"os/exec"
	"testing"
	"time"

	"portal/e2e/pages"
	"portal/handlers/handlerstest"
)

// A customer generates a key without a secret. The command on its page exchanges the token of a
// job, until another rule is saved.
func TestAKeyWithoutASecret(t *testing.T) {
	t.Parallel()
	issuer := handlerstest.NewIssuer(t)
	p := ownPortal(t, settings{extra: []string{"PORTAL_WORKLOAD_ISSUERS=" + issuer.URL}})
	job := func() string {
		now := time.Now().Unix()
		return issuer.Token(map[string]any{
			"iss": issuer.URL, "aud": p.URL, "sub": "job:deploy", "branch": "main", "iat": now, "nbf": now, "exp": now + 300,
		})
	}
	for _, mode := range []profile{withJavaScript, withoutJavaScript} {
		c, v := startSignedIn(t, p, mode)
		agentID := c.newAgent(t, "Front desk")
		keys := pages.OpenKeys(v.Tab)
		keys.Fill("Label", "deploy")
		trust := keys.TrustWorkload("Other")
		trust.Fill("Issuer", issuer.URL)
		trust.Fill("Claims", "sub=job:deploy\nbranch=main")
		if v.JavaScript {
			trust.ExpectText("Who can use the key")
		}
		keys.Click("Generate key")
		rule := pages.ExpectTrust(v.Tab, "deploy")
		command := rule.Example("Shell")
		run := func() (response struct {
			AccessToken string `json:"access_token"`
			Error       string
		},
		) {
			shell := exec.CommandContext(t.Context(), "sh", "-c", command)
			shell.Env = append(exampleEnvironment(""), "TOKEN="+job())
			output, _ := shell.Output() // curl fails at a refusal
			if err := json.Unmarshal(output, &response); err != nil {
				t.Fatalf("%v: %s", err, output)
			}
			return response
		}
		access := run().AccessToken
		c.expectServed(t, access, agentID)
		rule.ExpectText("Workloads of .* with branch main")
		rule.Follow("Change")
		rule.Fill("Claims", "sub=job:deploy\nbranch=release")
		rule.Click("Save trust rule")
		rule.ExpectStatus(`(?i)saved`)
		c.expectRefused(t, access, agentID)
		if response := run(); response.Error != "invalid_grant" || response.AccessToken != "" {
			t.Errorf("a token of another branch: %+v", response)
		}
		rule.Follow("Usage and exchanges")
		v.In("table", "Exchanges").ExpectSaying(`Refused: branch`)
		pages.OpenKeys(v.Tab).Row("deploy").ExpectSaying("Workload identity")
	}
}
