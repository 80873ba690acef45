package webhooks_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models"
	"portal/models/modelstest"
	"portal/models/record"
	"portal/models/secret"
	"portal/models/value"
	"portal/models/webhooks"
)

// A removed endpoint is gone for everybody, without its secret. The purge deletes its deliveries.
func TestRemovedWebhook(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		f.Store = f.Open(t, models.Options{Webhooks: &webhooks.Guard{}, Keyring: modelstest.Value(secret.NewKeyring(strings.Repeat("secret", 8), ""))(t)})
		c := f.Customer(t)
		add := func() webhooks.Endpoint {
			t.Helper()
			endpoint, _, err := f.Webhooks.Add(t.Context(), c.ID, "https://example.com/", []record.EventGroup{record.GroupKeys}, c.Actor)
			must(t, err)
			return endpoint
		}
		kept, removed := add(), add()
		f.Agent(t, c)
		must(t, f.Webhooks.Remove(t.Context(), c.ID, removed.ID, c.Actor))
		if _, err := f.Webhooks.Find(t.Context(), c.ID, removed.ID); !errors.Is(err, value.ErrWebhookNotFound) {
			t.Errorf("find: %v", err)
		}
		checkError(t, "remove again", f.Webhooks.Remove(t.Context(), c.ID, removed.ID, c.Actor), value.ErrWebhookNotFound)
		if list := modelstest.Value(f.Webhooks.List(t.Context(), c.ID))(t); len(list) != 1 || list[0].ID != kept.ID {
			t.Errorf("listed: %v", list)
		}
		waiting := func(e webhooks.Endpoint) (n int) {
			t.Helper()
			for _, d := range modelstest.Value(f.Webhooks.Deliveries(t.Context(), c.ID, e.ID))(t) {
				if d.DueAt != nil {
					n++
				}
			}
			return n
		}
		if waiting(kept) != 3 || waiting(removed) != 0 {
			t.Errorf("%d and %d deliveries wait", waiting(kept), waiting(removed))
		}
		var row webhooks.Endpoint
		must(t, f.DB.NewSelect().Model(&row).Where("id = ?", removed.ID).Scan(t.Context()))
		if len(row.Secret) != 0 || row.Previous != nil {
			t.Error("the secret is still there")
		}
		for range webhooks.MaxWebhooks - 1 {
			add()
		}
		must(t, f.Erasures.Purge(t.Context()))
		for model, column := range map[any]string{(*webhooks.Endpoint)(nil): "id", (*webhooks.Delivery)(nil): "endpoint_id"} {
			if exists := modelstest.Value(f.DB.NewSelect().Model(model).Where("? = ?", bun.Ident(column), removed.ID).Exists(t.Context()))(t); exists {
				t.Errorf("after the purge: %T", model)
			}
		}
		if waiting(kept) == 0 {
			t.Error("the purge deletes deliveries of another endpoint")
		}
	})
}

// A changed endpoint gets the events of its new groups, and Activity says so once.
func TestChangedEventsOfAWebhook(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		f.Store = f.Open(t, models.Options{Webhooks: &webhooks.Guard{}, Keyring: modelstest.Value(secret.NewKeyring(strings.Repeat("secret", 8), ""))(t)})
		c, other := f.Customer(t), f.Customer(t)
		endpoint, _, err := f.Webhooks.Add(t.Context(), c.ID, "https://example.com/", []record.EventGroup{record.GroupPeople}, c.Actor)
		must(t, err)
		set := func(account uuid.UUID, groups ...record.EventGroup) error {
			return f.Webhooks.SetGroups(t.Context(), account, endpoint.ID, groups, c.Actor)
		}
		checkError(t, "of another account", set(other.ID, record.GroupKeys), value.ErrWebhookNotFound)
		for _, wrong := range [][]record.EventGroup{nil, {record.GroupKeys, "everything"}} {
			if invalid, ok := errors.AsType[*value.InvalidError](set(c.ID, wrong...)); !ok || invalid.Field != "groups" {
				t.Errorf("%v: %v", wrong, invalid)
			}
		}
		f.Agent(t, c)
		for range 2 {
			must(t, set(c.ID, record.GroupPeople, record.GroupKeys))
		}
		f.Agent(t, c)
		found := modelstest.Value(f.Webhooks.Find(t.Context(), c.ID, endpoint.ID))(t)
		if !slices.Equal(found.Groups, []record.EventGroup{record.GroupKeys, record.GroupPeople}) {
			t.Errorf("the groups are %v", found.Groups)
		}
		var events []string
		for _, delivery := range modelstest.Value(f.Webhooks.Deliveries(t.Context(), c.ID, endpoint.ID))(t) {
			events = append(events, delivery.Event)
		}
		slices.Sort(events)
		if !slices.Equal(events, []string{"agent.created", "webhook.changed"}) {
			t.Errorf("the events are %v", events)
		}
	})
}
