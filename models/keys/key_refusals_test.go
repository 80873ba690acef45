package keys_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/keys"
	"portal/models/modelstest"
)

// noteRefusals notes refused requests with a key. Their request ids are numbers.
func noteRefusals(s *models.Store, c customer, key uuid.UUID, first, n int) {
	for i := range n {
		s.API.NoteRefusal(keys.Principal{AccountID: c.ID, KeyID: key}, keys.Refusal{
			Reason: "address", Route: "GET /api/agents", RequestID: fmt.Sprint(first + i), From: source("2001:db8::7:1", "curl/8.5.0 (x)"),
		})
	}
}

func (f *fixture) noted(t *testing.T, c customer, key keys.Key) (ids []string) {
	t.Helper()
	for _, one := range modelstest.Value(f.Usage.Refusals(t.Context(), c.ID, key.ID))(t) {
		if one.Reason != "address" || one.Route != "GET /api/agents" || one.Address != "2001:db8::/64" || one.Client != "curl/8.5.0" {
			t.Errorf("%+v", one)
		}
		ids = append(ids, one.RequestID)
	}
	return ids
}

func TestLastRefusalsOfAKeyAreKept(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, other := f.Customer(t), f.Customer(t)
		key, _ := f.Key(t, c)
		lasts := func(newest, n int) {
			t.Helper()
			ids := f.noted(t, c, key)
			if len(ids) != n || ids[0] != fmt.Sprint(newest) || ids[n-1] != fmt.Sprint(newest-n+1) {
				t.Errorf("%d refusals: %v", len(ids), ids)
			}
		}
		noteRefusals(f.Store, c, key.ID, 1, 3)
		lasts(3, 3) // unwritten
		must(t, f.Usage.FlushRefusals(t.Context()))
		lasts(3, 3)
		f.Clock.Advance(time.Second)
		// Of another instance, which stops.
		f.Briefly(t, models.Options{}, func(s *models.Store) { noteRefusals(s, c, key.ID, 4, 40) })
		f.Clock.Advance(time.Second)
		noteRefusals(f.Store, c, key.ID, 44, 60)
		lasts(103, 50)
		must(t, f.Usage.FlushRefusals(t.Context()))
		lasts(103, 50)
		f.CheckCount(t, 50, "SELECT count(*) FROM api_key_refusals")
		if len(f.noted(t, other, key)) != 0 {
			t.Error("another account sees the refusals")
		}

		f.Clock.Advance(keys.KeyRefusalsKept)
		if ids := f.noted(t, c, key); len(ids) != 0 {
			t.Errorf("after 7 days: %v", ids)
		}
		f.Clock.Advance(time.Second)
		must(t, f.Erasures.Purge(t.Context()))
		f.CheckCount(t, 0, "SELECT count(*) FROM api_key_refusals")
	})
}

// One account cannot use up the memory and the writes for the refusals of others, however many keys
// it has, and a key that is gone leaves nothing.
func TestRefusalsAreBounded(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, other := f.Customer(t), f.Customer(t)
		for range 30 {
			noteRefusals(f.Store, c, uuid.New(), 1, 60)
		}
		if waiting := f.Keys.WaitingRefusals(); waiting != 10*keys.MaxKeyRefusals {
			t.Errorf("%d refusals wait", waiting)
		}
		key, _ := f.Key(t, other)
		noteRefusals(f.Store, other, key.ID, 1, 60)
		must(t, f.Usage.FlushRefusals(t.Context()))
		if waiting := f.Keys.WaitingRefusals(); waiting != 0 {
			t.Errorf("%d refusals wait after the flush", waiting)
		}
		f.CheckCount(t, 50, "SELECT count(*) FROM api_key_refusals")
		if ids := f.noted(t, other, key); len(ids) != 50 || ids[0] != "60" {
			t.Errorf("the other account has %v", ids)
		}
	})
}
