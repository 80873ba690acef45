package templates_test

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"portal/models/modelstest"
	"portal/models/modelstest/subprocess"
	"portal/models/webhooks"
	"portal/templates"
)

// The examples take a signed request, also with two signatures, handle it once, and refuse others.
func TestExamplesReceiveWebhooks(t *testing.T) {
	root := modelstest.Value(filepath.Abs(".."))(t)
	for i, command := range [][]string{{"go", "run", "webhook.go"}, {"node", "webhook.mjs"}, {"python3", "webhook.py"}} {
		snippet := templates.NewGuides("https://portal.example.com").Webhooks.Snippets[i]
		t.Run(snippet.Name, func(t *testing.T) {
			t.Parallel()
			dir, file := t.TempDir(), len(command)-1
			modelstest.Must(t, os.Symlink(filepath.Join(root, "node_modules"), filepath.Join(dir, "node_modules")))
			path := filepath.Join(dir, command[file])
			modelstest.Must(t, os.WriteFile(path, []byte(snippet.Code()), 0o600))
			secret, port := webhooks.NewSecret(), modelstest.Value(subprocess.FreePort())(t)
			arguments := append(append([]string{}, command[1:file]...), path)
			if command[0] == "go" { // which would leave its child running
				program := filepath.Join(dir, "webhook")
				build := exec.CommandContext(t.Context(), "go", "build", "-o", program, path)
				if output, err := build.CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, output)
				}
				command, arguments = []string{program}, nil
			}
			log := &modelstest.LogBuffer{}
			receiver := exec.CommandContext(t.Context(), command[0], arguments...)
			receiver.Env = append(os.Environ(), "WEBHOOK_SECRET="+webhooks.SecretText(secret), "PORT="+strconv.Itoa(port))
			receiver.Stdout, receiver.Stderr = log, log
			modelstest.Must(t, receiver.Start())
			t.Cleanup(func() { _ = receiver.Process.Kill(); _ = receiver.Wait() })

			const id, body = "0198c2f4-7a31-7c6e-9d52-3f8be6a1c0ff", `{"type":"api_key.revoked","timestamp":"2025-11-23T12:00:00Z","data":{"id":"0198c2f4","label":"é"}}`
			now := time.Now()
			send := func(body string, at time.Time, signature string) int {
				request := modelstest.Value(http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:"+strconv.Itoa(port)+"/webhooks", strings.NewReader(body)))(t)
				for name, value := range map[string]string{"webhook-id": id, "webhook-timestamp": strconv.FormatInt(at.Unix(), 10), "webhook-signature": signature} {
					request.Header.Set(name, value)
				}
				response, err := http.DefaultClient.Do(request)
				if err != nil {
					return 0 // it has not started
				}
				defer response.Body.Close()
				return response.StatusCode
			}
			signature := webhooks.Sign(id, now, []byte(body), webhooks.NewSecret(), secret)
			modelstest.Eventually(t, "the receiver takes a request", func() bool { return send(body, now, signature) == http.StatusNoContent })
			if code := send(body, now, webhooks.Sign(id, now, []byte(body), secret)); code != http.StatusNoContent {
				t.Errorf("a repeat gets %d", code)
			}
			changed, old := strings.Replace(body, "revoked", "revoke_", 1), now.Add(-10*time.Minute)
			for name, code := range map[string]int{
				"a changed byte":   send(changed, now, signature),
				"another secret":   send(body, now, webhooks.Sign(id, now, []byte(body), webhooks.NewSecret())),
				"no signature":     send(body, now, ""),
				"an old timestamp": send(body, old, webhooks.Sign(id, old, []byte(body), secret)),
			} {
				if code != http.StatusBadRequest {
					t.Errorf("%s gets %d", name, code)
				}
			}
			t.Cleanup(func() {
				if t.Failed() {
					t.Log(log)
				}
			})
			modelstest.Eventually(t, "the event is handled", func() bool { return strings.Contains(log.String(), "event api_key.revoked") })
			if n := bytes.Count([]byte(log.String()), []byte("event api_key")); n != 1 {
				t.Errorf("handled %d times:\n%s", n, log)
			}
		})
	}
}
