package models_test

import (
	"strings"
	"testing"

	"portal/models"
	"portal/models/modelstest"
	"portal/models/secret"
)

// An instance warns if it shares no secret with the one that started before.
func TestInstanceWithAnotherSecretWarns(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		f.Exec(t, "DELETE FROM secret_check")
		a, b, c := strings.Repeat("a", 32), strings.Repeat("b", 32), strings.Repeat("c", 32)
		for _, start := range []struct {
			step, current, previous string
			warns                   bool
		}{
			{step: "the first start", current: a},
			{step: "another instance", current: a},
			{step: "publish", current: a, previous: b},
			{step: "an instance that still has one", current: a},
			{step: "publish again", current: a, previous: b},
			{step: "sign", current: b, previous: a},
			{step: "an instance that still publishes", current: a, previous: b},
			{step: "drop", current: b},
			{step: "another secret", current: c, warns: true},
			{step: "the first instance again", current: b, warns: true},
			{step: "the same", current: b},
			{step: "another pair", current: c, previous: a, warns: true},
		} {
			log := &modelstest.LogBuffer{}
			keyring := modelstest.Value(secret.NewKeyring(start.current, start.previous))(t)
			f.Briefly(t, models.Options{Keyring: keyring, Logger: log.Logger()}, func(*models.Store) {})
			text := log.String()
			if strings.Contains(text, "give all instances the same one") != start.warns {
				t.Errorf("%s: the log is %q", start.step, text)
			}
			if strings.Contains(text, start.current) {
				t.Errorf("%s: the log has the secret", start.step)
			}
		}
		f.CheckCount(t, 0, "SELECT count(*) FROM secret_check WHERE length(current) <> 32")
	})
}
