package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models/modelstest"
)

func TestKeysAreListedAndRevoked(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, c customer) {
		kept, keptSecret := s.generateKey(c.accountID)
		s.get("/api/agents", bearer(c.secret)).is(http.StatusOK)
		account := "/operator/accounts/" + c.accountID.String()
		var first, again struct {
			KeyID, AccountID uuid.UUID
			RevokedAt        time.Time
		}
		s.operate(http.MethodPost, "/operator/keys/revocations", `{"key": "`+c.secret+`", "reason": "On a slide"}`).is(http.StatusOK).into(&first)
		if key := modelstest.Value(s.store.Keys.Find(t.Context(), c.accountID, first.KeyID))(t); key.RevocationReason != "On a slide" {
			t.Errorf("the reason is %q", key.RevocationReason)
		}
		for _, reason := range []string{`7`, `"` + strings.Repeat("x", 501) + `"`} {
			s.operate(http.MethodPost, "/operator/keys/revocations", `{"keyId": "`+kept.ID.String()+`", "reason": `+reason+`}`).
				fails(http.StatusBadRequest, "INVALID_REQUEST")
		}
		if first.KeyID != c.key.ID || first.AccountID != c.accountID || first.RevokedAt.Sub(s.clock.Now()).Abs() > time.Millisecond {
			t.Errorf("revoked %+v", first)
		}
		s.get("/api/agents", bearer(c.secret)).fails(http.StatusUnauthorized, "UNAUTHORIZED")
		s.clock.Advance(time.Minute)
		for _, body := range []string{`{"key": "` + c.secret + `"}`, `{"keyId": "` + c.key.ID.String() + `"}`} {
			s.operate(http.MethodPost, "/operator/keys/revocations", body).is(http.StatusOK).into(&again)
			if again != first {
				t.Errorf("again: %+v, want %+v", again, first)
			}
		}
		var list struct{ Keys []map[string]any }
		s.operate(http.MethodGet, account+"/keys", "").is(http.StatusOK).into(&list)
		if len(list.Keys) != 2 {
			t.Fatalf("keys %v", list.Keys)
		}
		revoked, active := list.Keys[0], list.Keys[1]
		if len(active) != 10 || active["id"] != kept.ID.String() || active["label"] != "backend" || active["maskedKey"] != kept.Masked() ||
			active["lastUsedAt"] != nil || active["revokedAt"] != nil || revoked["revokedAt"] == nil || revoked["lastUsedAt"] == nil {
			t.Errorf("keys %v", list.Keys)
		}
		s.get("/api/agents", bearer(keptSecret)).is(http.StatusOK)
		s.operate(http.MethodPost, "/operator/keys/revocations", `{"keyId": "`+uuid.NewString()+`"}`).fails(http.StatusNotFound, "KEY_NOT_FOUND")
		s.operate(http.MethodPost, "/operator/keys/revocations", `{"key": "`+unknownKey+`"}`).
			fails(http.StatusNotFound, "KEY_NOT_FOUND")
		if got := s.activities(c.accountID); !strings.HasSuffix(got, ", api_key.revoked") || strings.Count(got, "revoked") != 1 {
			t.Errorf("activities %s", got)
		}
		if strings.Contains(s.log.String(), c.secret) {
			t.Error("the log contains the key")
		}
	})
}
