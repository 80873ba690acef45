package record_test

import (
	"encoding/binary"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

func TestActivitiesHaveActorSubjectAndTime(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		start := f.Clock.Now()
		type line struct {
			action  record.Action
			subject uuid.UUID
			label   string
			actor   string
			address string
			at      time.Time
		}
		var want []line
		did := func(action record.Action, subject uuid.UUID, label string, actor record.Actor) {
			name := "Operator"
			if actor.Kind == record.ActorUser {
				name = c.User.Email
			}
			want = slices.Insert(want, 0, line{action: action, subject: subject, label: label, actor: name, address: actor.Address, at: f.Clock.Now()})
			f.Clock.Advance(time.Minute)
		}

		token := modelstest.Value(f.SignIn.Start(ctx, c.User, people.Client{Address: "203.0.113.7"}))(t).Token
		session := modelstest.Value(f.Sessions.Find(ctx, token, people.Client{Address: "203.0.113.7"}))(t)
		did(record.ActionSignedIn, session.ID, "", c.Actor)
		key, _ := f.Key(t, c)
		did(record.ActionKeyGenerated, key.ID, "production", c.Actor)
		agent := f.Agent(t, c)
		did(record.ActionAgentCreated, agent.ID, "Reception", c.Actor)
		// Renaming the subjects does not change their recorded labels.
		f.Exec(t, "UPDATE api_keys SET label = 'renamed'")
		f.Exec(t, "UPDATE agents SET name = 'renamed'")
		must(t, errOf(f.Agents.Remove(ctx, c.ID, agent.ID, record.Operator())))
		did(record.ActionAgentRemoved, agent.ID, "renamed", record.Operator())
		elsewhere := record.UserActor(c.User.ID, "2001:db8::7")
		must(t, errOf(f.Keys.Revoke(ctx, c.ID, key.ID, "", elsewhere)))
		did(record.ActionKeyRevoked, key.ID, "renamed", elsewhere)
		must(t, f.Sessions.End(ctx, c.ID, session.ID, c.Actor))
		did(record.ActionSignedOut, session.ID, "", c.Actor)

		f.Key(t, f.Customer(t)) // not listed: it belongs to another account
		activities := f.Activities(t, c)
		var lines []line
		for _, a := range activities {
			if a.AccountID != c.ID || a.SubjectID == nil || a.ID.Version() != 7 || (a.ActorID == nil) != (a.ActorKind == record.ActorOperator) {
				t.Fatalf("%+v", a)
			}
			lines = append(lines, line{action: a.Action, subject: *a.SubjectID, label: a.Label, actor: a.ActorName, address: a.Address, at: a.At.UTC()})
		}
		if !slices.Equal(lines, want) {
			t.Errorf("%d recorded since %v:\n%+v\nwant\n%+v", len(lines), start, lines, want)
		}
	})
}

func TestActivitiesInPages(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		if activities, err := f.Activity.List(ctx, c.ID, record.ActivityPage{Limit: 10}); activities == nil || len(activities) != 0 || err != nil {
			t.Errorf("an account without activities: %v, %v", activities, err)
		}
		member := f.Member(t, c, people.RoleMember)
		for i := range 4 {
			for _, user := range []people.User{c.User, member} {
				modelstest.SignIn(t, f.Store, user.Email, modelstest.WrongPassword, modelstest.Address(i), value.ErrWrongCredentials)
				eventually(t, "it is recorded", func() bool {
					last := f.Activities(t, c)[0]
					return last.Label == user.Email && last.Repeats == int64(i)
				})
			}
			f.Agent(t, c) // all at the same time
		}
		all := f.Activities(t, c)
		if len(all) != 7 {
			t.Fatalf("%d activities", len(all))
		}
		for _, size := range []int{1, 3, 7, 8} {
			var ids, want []uuid.UUID
			page := record.ActivityPage{Limit: size}
			for {
				activities, err := f.Activity.List(ctx, c.ID, page)
				if err != nil || len(activities) > size {
					t.Fatal(len(activities), err)
				}
				if len(activities) == 0 {
					break
				}
				for _, a := range activities {
					ids = append(ids, a.ID)
				}
				page.Before = activities[len(activities)-1].Position
			}
			for _, a := range all {
				want = append(want, a.ID)
			}
			if !slices.Equal(ids, want) {
				t.Errorf("in pages of %d: %v, want %v", size, ids, want)
			}
		}
		// An activity of another account as Before does not show that account's log.
		other := f.Customer(t)
		f.Agent(t, other)
		page, err := f.Activity.List(ctx, other.ID, record.ActivityPage{Before: all[0].ID, Limit: 10})
		if err != nil || len(page) != 0 {
			t.Errorf("%+v, %v", page, err)
		}
	})
}

// The actor of a deleted user stays a user.
func TestActivityOfADeletedUser(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		f.Key(t, c)
		f.Exec(t, "DELETE FROM users WHERE id = ?", c.User.ID)
		activities := f.Activities(t, c)
		if len(activities) != 1 || activities[0].ActorKind != record.ActorUser || activities[0].ActorName == "Operator" {
			t.Errorf("%+v", activities)
		}
	})
}

func TestActivitiesAreKeptFor400Days(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, other := f.Customer(t), f.Customer(t)
		f.Clock.Advance(time.Since(f.Clock.Now())) // the database has a clock too
		for days, n := range map[int]int{398: 1, 399: 1, 401: 2500, 2000: 1} {
			at := f.Clock.Now().AddDate(0, 0, -days)
			var old []record.Activity
			for range n {
				id := newID()
				binary.BigEndian.PutUint64(id[:8], uint64(at.UnixMilli())<<16)
				old = append(old, record.Activity{ID: id, AccountID: c.ID, ActorKind: record.ActorOperator, Action: record.ActionKeyRevoked, At: at, Count: 1})
			}
			must(t, errOf(f.DB.NewInsert().Model(&old).Exec(t.Context())))
		}
		f.Key(t, other)
		if _, err := f.DB.ExecContext(t.Context(), "DELETE FROM activities WHERE at > ?", f.Clock.Now().Add(-398*value.Day-time.Hour)); err == nil {
			t.Error("the database deletes activities of 398 days")
		}
		must(t, f.Erasures.Purge(t.Context()))
		if n := len(f.Activities(t, c)); n != 2 {
			t.Errorf("%d activities are left, want 2", n)
		}
		if n := len(f.Activities(t, other)); n != 1 {
			t.Errorf("%d activities of another account are left, want 1", n)
		}
	})
}

func TestActivityIsAppendOnly(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		f.Clock.Advance(time.Since(f.Clock.Now())) // the database has a clock too
		c := f.Customer(t)
		f.Key(t, c)
		before := f.Activities(t, c)
		statements := []string{
			"UPDATE activities SET label = 'x'",
			"UPDATE activities SET at = at WHERE action = 'api_key.generated'",
			"DELETE FROM activities",
			"DELETE FROM activities WHERE action = 'api_key.generated'",
		}
		if f.Postgres() {
			statements = append(statements, "TRUNCATE activities", "TRUNCATE accounts CASCADE")
		} else {
			// In SQLite, REPLACE deletes a row without firing a delete trigger.
			statements = append(statements, `INSERT OR REPLACE INTO activities (id, account_id, actor_kind, action, label, address, at)
				SELECT id, account_id, actor_kind, action, 'x', address, at FROM activities`)
		}
		for _, statement := range statements {
			if _, err := f.DB.ExecContext(t.Context(), statement); err == nil || !strings.Contains(err.Error(), "append-only") {
				t.Errorf("%s: %v", statement, err)
			}
		}
		after := f.Activities(t, c)
		if len(after) != len(before) || after[0].Label != before[0].Label {
			t.Errorf("%+v became %+v", before, after)
		}
	})
}

func TestEachChangeHasAnActivityThatStays(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		key, _ := f.Key(t, c)
		for i := range 4 {
			before := f.Activities(t, c)
			must(t, errOf(f.Keys.Rename(t.Context(), c.ID, key.ID, []string{"renamed", key.Label}[i%2], c.Actor)))
			after := f.Activities(t, c)
			if len(after) != len(before)+1 || !reflect.DeepEqual(after[1:], before) {
				t.Errorf("%+v became %+v", before, after)
			}
		}
	})
}
