package models_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

var allAgents = value.Page{Limit: value.MaxAgents}

func TestAgents(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.customer(t)
		if agents, err := f.Agents.List(ctx, c.ID, allAgents); agents.Items == nil || len(agents.Items) != 0 || agents.Next != uuid.Nil || err != nil {
			t.Errorf("an account without agents: %v, %v", agents, err)
		}
		for _, name := range []string{"sales", "Reception", " after hours ", "Sales", "reception 2"} {
			agent := modelstest.Value(f.Agents.Create(ctx, c.ID, models.NewAgent{Name: name}, c.actor))(t)
			modelstest.Facts(t, agent, map[string]bool{
				"account":     agent.AccountID == c.ID,
				"name":        agent.Name == strings.TrimSpace(name),
				"UUIDv7":      agent.ID.Version() == 7,
				"created now": agent.CreatedAt.Equal(f.clock.Now()),
			})
			if found, err := f.Agents.Find(ctx, c.ID, agent.ID); err != nil || found.ID != agent.ID || found.Name != agent.Name {
				t.Errorf("found %+v, %v", found, err)
			}
		}
		checkInvalid(t, "no name", errOf(f.Agents.Create(ctx, c.ID, models.NewAgent{Name: " \t"}, c.actor)), "name")
		f.agent(t, f.customer(t)) // not listed: it belongs to another account
		want := []string{"after hours", "Reception", "reception 2", "Sales", "sales"}
		for limit := 1; limit <= len(want)+1; limit++ {
			var names []string
			page := value.Page{Limit: limit}
			for more := true; more; {
				agents, err := f.Agents.List(ctx, c.ID, page)
				if err != nil || len(agents.Items) > limit || (agents.Next != uuid.Nil) != (len(names)+limit < len(want)) {
					t.Fatalf("after %q, limit %d: %+v, %v", names, limit, agents, err)
				}
				for _, agent := range agents.Items {
					names = append(names, agent.Name)
				}
				page.After, more = agents.Next, agents.Next != uuid.Nil
			}
			if !slices.Equal(names, want) {
				t.Errorf("limit %d: listed %q, want %q", limit, names, want)
			}
		}
		foreign := f.agent(t, f.customer(t))
		checkError(t, "after another account's", errOf(f.Agents.List(ctx, c.ID, value.Page{After: foreign.ID, Limit: 1})), value.ErrAgentNotFound)
	})
}

func TestAgentWithAGivenID(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.customer(t), f.customer(t)
		id := uuid.New()
		if agent, err := f.Agents.Create(ctx, c.ID, models.NewAgent{ID: id, Name: "Reception"}, record.Operator()); err != nil || agent.ID != id {
			t.Fatalf("%+v, %v", agent, err)
		}
		for name, c := range map[string]customer{"the account": c, "another account": other} {
			agent, err := f.Agents.Create(ctx, c.ID, models.NewAgent{ID: id, Name: "Again"}, c.actor)
			if !errors.Is(err, value.ErrAgentIDTaken) || agent.ID != uuid.Nil {
				t.Errorf("for %s: %+v, %v", name, agent, err)
			}
		}
		if agent, err := f.Agents.Find(ctx, c.ID, id); err != nil || agent.Name != "Reception" {
			t.Errorf("the agent became %+v, %v", agent, err)
		}
		if n := len(f.activities(t, c)) + len(f.activities(t, other)); n != 1 {
			t.Errorf("%d activities for one created agent", n)
		}
	})
}

// Others remove the agent and create it again between any two transactions, and remove it while Put
// renames it.
func TestAgentIsPutWhileItIsRemoved(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.customer(t)
		agent := f.agent(t, c)
		removed := make(chan error, 1)
		remove := func() { removed <- errOf(f.Agents.Remove(ctx, c.ID, agent.ID, c.actor)) }
		store := f.WithQueryHook(&beforeStatements{do: func(statement string, begun int) {
			switch {
			case statement == "BEGIN" && begun%2 == 0:
				must(t, errOf(f.Agents.Remove(ctx, c.ID, agent.ID, c.actor)))
			case statement == "BEGIN" && begun > 1:
				must(t, errOf(f.Agents.Create(ctx, c.ID, models.NewAgent{ID: agent.ID, Name: "Bar"}, c.actor)))
			case strings.HasPrefix(statement, "UPDATE"):
				go remove()
				// It waits for Put, or it would be done.
				time.Sleep(100 * time.Millisecond)
			}
		}})
		put, created, err := store.Agents.Put(ctx, c.ID, agent.ID, "Lobby", nil, c.actor)
		if err != nil || put.Name != "Lobby" || created {
			t.Fatalf("%+v, created: %t, %v", put, created, err)
		}
		must(t, <-removed)
		if put, created, err = f.Agents.Put(ctx, c.ID, agent.ID, "Lobby", nil, c.actor); err != nil || !created {
			t.Errorf("%+v, created: %t, %v", put, created, err)
		}
	})
}

// beforeStatements is a query hook that calls do before each statement with the number of
// transactions that have begun.
type beforeStatements struct {
	begun int
	do    func(statement string, begun int)
}

func (b *beforeStatements) BeforeQuery(ctx context.Context, event *bun.QueryEvent) context.Context {
	if event.Query == "BEGIN" {
		b.begun++
	}
	b.do(event.Query, b.begun)
	return ctx
}

func (b *beforeStatements) AfterQuery(context.Context, *bun.QueryEvent) {}

func TestAgentIsRenamed(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.customer(t), f.customer(t)
		agent := f.agent(t, c)
		for _, name := range []string{" Lobby ", "Lobby"} {
			if renamed, err := f.Agents.Rename(ctx, c.ID, agent.ID, name, c.actor); err != nil || renamed.Name != "Lobby" || renamed.ID != agent.ID {
				t.Errorf("%q: %+v, %v", name, renamed, err)
			}
		}
		checkError(t, "in another account", errOf(f.Agents.Rename(ctx, other.ID, agent.ID, "Theirs", other.actor)), value.ErrAgentNotFound)
		checkInvalid(t, "an empty name", errOf(f.Agents.Rename(ctx, c.ID, agent.ID, " ", c.actor)), "name")
		if recorded := f.recorded(t, c, record.ActionAgentRenamed); len(recorded) != 1 || recorded[0].FormerLabel != agent.Name || recorded[0].Label != "Lobby" {
			t.Errorf("recorded %+v", recorded)
		}
	})
}

func TestAgentIsRemoved(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.customer(t), f.customer(t)
		agent, kept := f.agent(t, c), f.agent(t, c)
		for name, id := range map[string]uuid.UUID{"another account's": agent.ID, "an unknown": newID(), "the zero": uuid.Nil} {
			if found, err := f.Agents.Find(ctx, other.ID, id); !errors.Is(err, value.ErrAgentNotFound) || found.ID != uuid.Nil {
				t.Errorf("%s agent found: %+v, %v", name, found, err)
			}
			if removed, err := f.Agents.Remove(ctx, other.ID, id, other.actor); !errors.Is(err, value.ErrAgentNotFound) || removed.ID != uuid.Nil {
				t.Errorf("%s agent removed: %+v, %v", name, removed, err)
			}
		}
		if len(f.activities(t, other)) != 0 {
			t.Error("a refused removal was recorded")
		}
		removed, err := f.Agents.Remove(ctx, c.ID, agent.ID, c.actor)
		if err != nil || removed.ID != agent.ID || removed.Name != agent.Name || removed.AccountID != c.ID {
			t.Fatalf("%+v, %v", removed, err)
		}
		checkError(t, "removed again", errOf(f.Agents.Remove(ctx, c.ID, agent.ID, c.actor)), value.ErrAgentNotFound)
		if agents, err := f.Agents.List(ctx, c.ID, allAgents); err != nil || len(agents.Items) != 1 || agents.Items[0].ID != kept.ID {
			t.Errorf("left: %+v, %v", agents, err)
		}
	})
}

func TestFormOfARemovedAgentDoesNotCreateItAgain(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, form := t.Context(), f.customer(t), models.NewAgent{Name: "Front desk", FormID: uuid.New()}
		agent := modelstest.Value(f.Agents.Create(ctx, c.ID, form, c.actor))(t)
		must(t, errOf(f.Agents.Remove(ctx, c.ID, agent.ID, c.actor)))
		checkError(t, "the form again", errOf(f.Agents.Create(ctx, c.ID, form, c.actor)), value.ErrAgentRemoved)
		if agents, err := f.Agents.List(ctx, c.ID, allAgents); err != nil || len(agents.Items) != 0 {
			t.Errorf("agents %+v, %v", agents, err)
		}
		if recorded := f.recorded(t, c, record.ActionAgentCreated); len(recorded) != 1 {
			t.Errorf("%d creations are recorded, want 1", len(recorded))
		}
		form.FormID = uuid.New()
		checkError(t, "another form", errOf(f.Agents.Create(ctx, c.ID, form, c.actor)), nil)
	})
}

func TestAgentFormCreatesOneAgent(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.customer(t), f.customer(t)
		form := uuid.New()
		create := func(c customer, name string, formID uuid.UUID) models.Agent {
			t.Helper()
			agent := modelstest.Value(f.Agents.Create(ctx, c.ID, models.NewAgent{Name: name, FormID: formID}, c.actor))(t)
			return agent
		}
		first := create(c, "Front desk", form)
		if again := create(c, " Front desk ", form); again.ID != first.ID {
			t.Error("a repeated form created a second agent")
		}
		if another := create(c, "Night shift", form); another.ID == first.ID {
			t.Error("another name in the same form created no agent")
		}
		if foreign := create(other, "Front desk", form); foreign.ID == first.ID || foreign.AccountID != other.ID {
			t.Error("a form of another account returned this account's agent")
		}
		create(c, "Front desk", uuid.New())
		agents, err := f.Agents.List(ctx, c.ID, allAgents)
		if err != nil || len(agents.Items) != 3 {
			t.Errorf("%d agents, want 3: %v", len(agents.Items), err)
		}
		if recorded := f.recorded(t, c, record.ActionAgentCreated); len(recorded) != 3 {
			t.Errorf("%d agents are recorded, want 3", len(recorded))
		}
	})
}

func TestAgentLimit(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.customer(t)
		agents := make([]models.Agent, value.MaxAgents-2)
		for i := range agents {
			agents[i] = models.Agent{ID: newID(), AccountID: c.ID, Name: "Reception", CreatedAt: f.clock.Now()}
		}
		must(t, errOf(f.db.NewInsert().Model(&agents).Exec(ctx)))
		form := models.NewAgent{Name: "Front desk", FormID: uuid.New()}
		must(t, errOf(f.Agents.Create(ctx, c.ID, form, c.actor)))
		_, errs := atOnce(6, func(int) error {
			return errOf(f.Agents.Create(ctx, c.ID, models.NewAgent{Name: "One more"}, c.actor))
		})
		checkErrors(t, "above the limit", errs, value.ErrAgentLimit)
		if n := f.count(t, "SELECT count(*) FROM agents WHERE account_id = ?", c.ID); n != value.MaxAgents || len(errs) != 5 {
			t.Errorf("%d agents, %d refusals", n, len(errs))
		}
		checkError(t, "the form of an agent", errOf(f.Agents.Create(ctx, c.ID, form, c.actor)), nil)
		f.agent(t, f.customer(t)) // another account
	})
}

// storedUse returns the stored time of the agent's last use with a key, or the zero time.
func (f *fixture) storedUse(t *testing.T, agent models.Agent, key models.Key) (at time.Time) {
	t.Helper()
	var stored []time.Time
	must(t, f.db.NewRaw("SELECT used_at FROM api_key_agents WHERE agent_id = ? AND api_key_id = ?", agent.ID, key.ID).Scan(t.Context(), &stored))
	if len(stored) > 0 {
		at = stored[0]
	}
	return at
}

func checkLastUsed(t *testing.T, when string, s *models.Store, agent models.Agent, want time.Time) {
	t.Helper()
	if at, err := s.Agents.LastUsed(t.Context(), agent.AccountID, agent.ID); err != nil || !at.Equal(want) {
		t.Errorf("%s: last used at %v, want %v, %v", when, at, want, err)
	}
}

func TestLastUseOfAnAgentIsThatOfAllKeys(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, other := f.customer(t), f.customer(t)
		agent, unused := f.agent(t, c), f.agent(t, c)
		first, _ := f.key(t, c)
		second, _ := f.key(t, c)
		var used time.Time
		f.briefly(t, models.Options{}, func(s *models.Store) {
			checkLastUsed(t, "before the first use", s, agent, time.Time{})
			for _, key := range []models.Key{second, first, second} {
				f.clock.Advance(time.Minute)
				s.Agents.Used(c.ID, agent.ID, key.ID)
				used = f.clock.Now()
				checkLastUsed(t, "before it is written", s, agent, used)
			}
			checkError(t, "another account", errOf(s.Agents.LastUsed(t.Context(), other.ID, agent.ID)), value.ErrAgentNotFound)
			eventually(t, "it is written", func() bool { return f.storedUse(t, agent, second).Equal(used) })
			checkLastUsed(t, "after it is written", s, agent, used)
		})
		checkLastUsed(t, "on another instance", f.Store, agent, used)
		checkLastUsed(t, "of an agent without use", f.Store, unused, time.Time{})
	})
}

// The agents of a key are known at once, on every instance soon, and no longer after 30 days.
func TestAgentsThatAKeyUsed(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, other := f.customer(t), f.customer(t)
		key, _ := f.key(t, c)
		old, agent, unused, removed := f.agent(t, c), f.agent(t, c), f.agent(t, c), f.agent(t, c)
		f.briefly(t, models.Options{}, func(s *models.Store) {
			for _, one := range []models.Agent{old, agent, removed} {
				s.Agents.Used(c.ID, one.ID, key.ID)
			}
			s.Agents.Used(c.ID, unused.ID, newID())
		})
		modelstest.Value(f.Agents.Remove(t.Context(), c.ID, removed.ID, c.actor))(t)
		f.clock.Advance(31 * value.Day)
		f.Agents.Used(c.ID, agent.ID, key.ID)
		for range 2 {
			used := modelstest.Value(f.Agents.UsedBy(t.Context(), c.ID, key.ID))(t)
			if len(used) != 1 || !used[agent.ID].Equal(f.clock.Now()) {
				t.Errorf("used %v, want %v at %v", used, agent.ID, f.clock.Now())
			}
			must(t, f.Agents.Flush(t.Context()))
		}
		if used := modelstest.Value(f.Agents.UsedBy(t.Context(), other.ID, key.ID))(t); len(used) != 0 {
			t.Errorf("another account sees %v", used)
		}
		f.clock.Advance(60 * value.Day)
		must(t, f.Erasures.Purge(t.Context()))
		f.checkCount(t, 1, "SELECT count(*) FROM api_key_agents")
	})
}

// after is a query hook that is called after each statement.
type after func()

func (after) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context { return ctx }

func (a after) AfterQuery(context.Context, *bun.QueryEvent) { a() }

func TestUsesThatAreWrittenMeanwhileAreRead(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.customer(t)
		key, _ := f.key(t, c)
		agent := f.agent(t, c)
		store := f.WithQueryHook(after(func() { must(t, f.Agents.Flush(ctx)) }))
		store.Agents.Used(c.ID, agent.ID, key.ID)
		if used := modelstest.Value(store.Agents.UsedBy(ctx, c.ID, key.ID))(t); !used[agent.ID].Equal(f.clock.Now()) {
			t.Errorf("used %v", used)
		}
		f.clock.Advance(time.Minute)
		store.Agents.Used(c.ID, agent.ID, key.ID)
		checkLastUsed(t, "written meanwhile", store, agent, f.clock.Now())
	})
}

// useAgents uses each of an account's agents with each of 100 keys, and returns how many uses there
// were.
func (f *fixture) useAgents(t testing.TB, s *models.Store, accountID uuid.UUID, agents []models.Agent) int {
	t.Helper()
	f.clock.Advance(time.Second)
	for n := range value.MaxActiveKeys {
		key := manyKeysID(accountID, n)
		for _, agent := range agents {
			s.Agents.Used(accountID, agent.ID, key)
		}
	}
	return len(agents) * value.MaxActiveKeys
}

// manyKeysID returns the id of one of the keys of manyAgents.
func manyKeysID(accountID uuid.UUID, n int) uuid.UUID {
	return uuid.NewSHA1(accountID, []byte{byte(n)})
}

// manyAgents inserts as many agents and keys as an account can have, and returns the agents.
func (f *fixture) manyAgents(t testing.TB, accountID uuid.UUID) []models.Agent {
	t.Helper()
	agents := make([]models.Agent, value.MaxAgents)
	for i := range agents {
		agents[i] = models.Agent{ID: newID(), AccountID: accountID, Name: "Reception", CreatedAt: f.clock.Now()}
	}
	must(t, errOf(f.db.NewInsert().Model(&agents).Exec(t.Context())))
	keys := make([]models.Key, value.MaxActiveKeys)
	for n := range keys {
		id := manyKeysID(accountID, n)
		hash := sha256.Sum256(id[:])
		keys[n] = models.Key{
			ID: id, AccountID: accountID, Label: "one of many", KeyHash: hash[:], Credential: models.CredentialSecret,
			FormID: id, CreatedAt: f.clock.Now(), Access: models.AccessAgents,
		}
	}
	must(t, errOf(f.db.NewInsert().Model(&keys).Exec(t.Context())))
	return agents
}

// An account that uses all of its agents with all of its keys. A store that stops writes all of it,
// and an error of a batch keeps those before it.
func TestManyUsesOfAgentsAreWritten(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.customer(t)
		agents := f.manyAgents(t, c.ID)
		var batches atomic.Int32
		failing, cancel := context.WithCancel(ctx)
		cancel()
		watched := f.WithQueryHook(before(func(ctx context.Context, event *bun.QueryEvent) context.Context {
			if strings.HasPrefix(event.Query, "INSERT INTO \"api_key_agents\"") && batches.Add(1) > 3 {
				return failing
			}
			return ctx
		}))
		watched.Agents.OwnUses()
		uses := f.useAgents(t, watched, c.ID, agents)
		checkError(t, "stopped", watched.Agents.Flush(ctx), context.Canceled)
		f.checkCount(t, 3000, "SELECT count(*) FROM api_key_agents")
		f.briefly(t, models.Options{}, func(s *models.Store) { f.useAgents(t, s, c.ID, agents) })
		f.checkCount(t, uses, "SELECT count(*) FROM api_key_agents WHERE used_at = ?", f.clock.Now())
	})
}

// The first use of another account is noted while one account has filled the memory.
func TestUsesOfAgentsAreBoundedForAnAccount(t *testing.T) {
	f := newFixture(t, modelstest.SQLiteURL(t), models.Options{})
	c, other := f.customer(t), f.customer(t)
	key, agent := newID(), f.agent(t, other)
	for range models.MaxSeen + 1000 {
		f.Agents.Used(c.ID, newID(), newID())
	}
	f.Agents.Used(other.ID, agent.ID, key)
	if used := modelstest.Value(f.Agents.UsedBy(t.Context(), other.ID, key))(t); len(used) != 1 {
		t.Errorf("%d agents were used, want 1", len(used))
	}
	if n := f.Agents.Waiting(); n > models.MaxSeen+1000 {
		t.Errorf("%d uses wait", n)
	}
}

// The flush of 100,000 uses of agents.
func BenchmarkFlushOfUses(b *testing.B) {
	for name, url := range map[string]func(testing.TB) string{"sqlite": modelstest.SQLiteURL, "postgres": modelstest.PostgresURL} {
		b.Run(name, func(b *testing.B) {
			f := &fixture{url: url(b), clock: newClock()}
			f.db = modelstest.OpenDatabase(b, f.url)
			f.Store = modelstest.Open(b, f.url, f.withClock(models.Options{Timeout: models.Timeout}))
			account := people.Account{ID: newID(), Name: "Acme", CreatedAt: f.clock.Now()}
			must(b, errOf(f.db.NewInsert().Model(&account).Exec(b.Context())))
			// No flush in the background.
			s := f.WithQueryHook(before(func(ctx context.Context, _ *bun.QueryEvent) context.Context { return ctx }))
			s.Agents.OwnUses()
			agents := f.manyAgents(b, account.ID)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			f.useAgents(b, s, account.ID, agents)
			runtime.GC()
			runtime.ReadMemStats(&after)
			for b.Loop() {
				must(b, s.Agents.Flush(b.Context()))
				b.StopTimer()
				f.useAgents(b, s, account.ID, agents)
				b.StartTimer()
			}
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB")
		})
	}
}

func TestAgentMadeAnewWasNotUsed(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.customer(t)
		key, _ := f.key(t, c)
		agent := f.agent(t, c)
		f.Agents.Used(c.ID, agent.ID, key.ID)
		must(t, f.Agents.Flush(ctx))
		must(t, errOf(f.Agents.Remove(ctx, c.ID, agent.ID, c.actor)))
		checkError(t, "removed", errOf(f.Agents.LastUsed(ctx, c.ID, agent.ID)), value.ErrAgentNotFound)
		// An instance writes a use just before the removal.
		f.Agents.Used(c.ID, agent.ID, key.ID)
		f.clock.Advance(time.Minute)
		must(t, f.Agents.Flush(ctx))
		_, _, err := f.Agents.Put(ctx, c.ID, agent.ID, "Anew", nil, c.actor)
		must(t, err)
		checkLastUsed(t, "made anew", f.Store, agent, time.Time{})
	})
}
