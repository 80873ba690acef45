package api_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models/modelstest"
	"portal/models/record"
	"portal/templates"
)

// The loop of the documentation, killed in between, prints every activity of an hour.
func TestExampleExportsActivity(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, c customer) {
		secret := s.reportsKey(c)
		s = withoutDelay(t, s)
		for range 40 {
			modelstest.Value(s.store.Agents.Rename(t.Context(), c.accountID, c.agent.ID, uuid.NewString(), record.Operator()))(t)
			s.clock.Advance(90 * time.Second)
		}
		dir := t.TempDir()
		file := filepath.Join(dir, "export.py")
		code := strings.Replace(templates.NewGuides(s.url).Export.Code(), `"limit": 1000`, `"limit": 7`, 1)
		code = strings.Replace(code, "< 1000", "< 7", 1)
		modelstest.Must(t, os.WriteFile(file, []byte(code), 0o600))
		ids := map[string]int{}
		want := modelstest.Value(s.store.Activity.Report(t.Context(), record.ActivityReport{AccountID: c.accountID, Limit: 1000}))(t)
		for run := 0; len(ids) < len(want); run++ {
			log := &modelstest.LogBuffer{}
			loop := exec.CommandContext(t.Context(), "python3", file)
			loop.Dir, loop.Stdout, loop.Stderr = dir, log, log
			loop.Env = append(os.Environ(), "NAS_API_KEY="+secret)
			modelstest.Must(t, loop.Start())
			modelstest.Eventually(t, "the loop prints "+strconv.Itoa(len(want)), func() bool {
				n := bytes.Count([]byte(log.String()), []byte("\n"))
				return n >= len(want)-len(ids) || run == 0 && n > 10
			})
			modelstest.Must(t, loop.Process.Kill())
			_ = loop.Wait()
			for line := range strings.Lines(log.String()) {
				var activity struct{ ID string }
				if strings.HasSuffix(line, "\n") {
					modelstest.Must(t, json.Unmarshal([]byte(line), &activity))
					ids[activity.ID]++
				}
			}
		}
		for _, activity := range want {
			if ids[activity.ID.String()] == 0 {
				t.Errorf("%s %s is missing", activity.Action, activity.ID)
			}
		}
		if len(want) < 40 || len(ids) != len(want) {
			t.Errorf("%d activities, want %d", len(ids), len(want))
		}
	})
}
