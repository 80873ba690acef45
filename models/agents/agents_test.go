package agents_test

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
	"portal/models/agents"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

func TestAgents(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		if agents, err := f.Agents.List(ctx, c.ID, modelstest.AllAgents); agents.Items == nil || len(agents.Items) != 0 || agents.Next != uuid.Nil || err != nil {
			t.Errorf("an account without agents: %v, %v", agents, err)
		}
		for _, name := range []string{"sales", "Reception", " after hours ", "Sales", "reception 2"} {
			agent := modelstest.Value(f.Agents.Create(ctx, c.ID, agents.NewAgent{Name: name}, c.Actor))(t)
			modelstest.Facts(t, agent, map[string]bool{
				"account":     agent.AccountID == c.ID,
				"name":        agent.Name == strings.TrimSpace(name),
				"UUIDv7":      agent.ID.Version() == 7,
				"created now": agent.CreatedAt.Equal(f.Clock.Now()),
			})
			if found, err := f.Agents.Find(ctx, c.ID, agent.ID); err != nil || found.ID != agent.ID || found.Name != agent.Name {
				t.Errorf("found %+v, %v", found, err)
			}
		}
		checkInvalid(t, "no name", errOf(f.Agents.Create(ctx, c.ID, agents.NewAgent{Name: " \t"}, c.Actor)), "name")
		f.Agent(t, f.Customer(t)) // not listed: it belongs to another account
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
		foreign := f.Agent(t, f.Customer(t))
		checkError(t, "after another account's", errOf(f.Agents.List(ctx, c.ID, value.Page{After: foreign.ID, Limit: 1})), value.ErrAgentNotFound)
	})
}

func TestAgentWithAGivenID(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.Customer(t), f.Customer(t)
		id := uuid.New()
		if agent, err := f.Agents.Create(ctx, c.ID, agents.NewAgent{ID: id, Name: "Reception"}, record.Operator()); err != nil || agent.ID != id {
			t.Fatalf("%+v, %v", agent, err)
		}
		for name, c := range map[string]customer{"the account": c, "another account": other} {
			agent, err := f.Agents.Create(ctx, c.ID, agents.NewAgent{ID: id, Name: "Again"}, c.Actor)
			if !errors.Is(err, value.ErrAgentIDTaken) || agent.ID != uuid.Nil {
				t.Errorf("for %s: %+v, %v", name, agent, err)
			}
		}
		if agent, err := f.Agents.Find(ctx, c.ID, id); err != nil || agent.Name != "Reception" {
			t.Errorf("the agent became %+v, %v", agent, err)
		}
		if n := len(f.Activities(t, c)) + len(f.Activities(t, other)); n != 1 {
			t.Errorf("%d activities for one created agent", n)
		}
	})
}

// Others remove the agent and create it again between any two transactions, and remove it while Put
// renames it.
func TestAgentIsPutWhileItIsRemoved(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		agent := f.Agent(t, c)
		removed := make(chan error, 1)
		remove := func() { removed <- errOf(f.Agents.Remove(ctx, c.ID, agent.ID, c.Actor)) }
		store := f.WithQueryHook(&beforeStatements{do: func(statement string, begun int) {
			switch {
			case statement == "BEGIN" && begun%2 == 0:
				must(t, errOf(f.Agents.Remove(ctx, c.ID, agent.ID, c.Actor)))
			case statement == "BEGIN" && begun > 1:
				must(t, errOf(f.Agents.Create(ctx, c.ID, agents.NewAgent{ID: agent.ID, Name: "Bar"}, c.Actor)))
			case strings.HasPrefix(statement, "UPDATE"):
				go remove()
				// It waits for Put, or it would be done.
				time.Sleep(100 * time.Millisecond)
			}
		}})
		put, created, err := store.Agents.Put(ctx, c.ID, agent.ID, "Lobby", nil, c.Actor)
		if err != nil || put.Name != "Lobby" || created {
			t.Fatalf("%+v, created: %t, %v", put, created, err)
		}
		must(t, <-removed)
		if put, created, err = f.Agents.Put(ctx, c.ID, agent.ID, "Lobby", nil, c.Actor); err != nil || !created {
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
		ctx, c, other := t.Context(), f.Customer(t), f.Customer(t)
		agent := f.Agent(t, c)
		for _, name := range []string{" Lobby ", "Lobby"} {
			if renamed, err := f.Agents.Rename(ctx, c.ID, agent.ID, name, c.Actor); err != nil || renamed.Name != "Lobby" || renamed.ID != agent.ID {
				t.Errorf("%q: %+v, %v", name, renamed, err)
			}
		}
		checkError(t, "in another account", errOf(f.Agents.Rename(ctx, other.ID, agent.ID, "Theirs", other.Actor)), value.ErrAgentNotFound)
		checkInvalid(t, "an empty name", errOf(f.Agents.Rename(ctx, c.ID, agent.ID, " ", c.Actor)), "name")
		if recorded := f.Recorded(t, c, record.ActionAgentRenamed); len(recorded) != 1 || recorded[0].FormerLabel != agent.Name || recorded[0].Label != "Lobby" {
			t.Errorf("recorded %+v", recorded)
		}
	})
}

func TestAgentIsRemoved(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.Customer(t), f.Customer(t)
		agent, kept := f.Agent(t, c), f.Agent(t, c)
		for name, id := range map[string]uuid.UUID{"another account's": agent.ID, "an unknown": newID(), "the zero": uuid.Nil} {
			if found, err := f.Agents.Find(ctx, other.ID, id); !errors.Is(err, value.ErrAgentNotFound) || found.ID != uuid.Nil {
				t.Errorf("%s agent found: %+v, %v", name, found, err)
			}
			if removed, err := f.Agents.Remove(ctx, other.ID, id, other.Actor); !errors.Is(err, value.ErrAgentNotFound) || removed.ID != uuid.Nil {
				t.Errorf("%s agent removed: %+v, %v", name, removed, err)
			}
		}
		if len(f.Activities(t, other)) != 0 {
			t.Error("a refused removal was recorded")
		}
		removed, err := f.Agents.Remove(ctx, c.ID, agent.ID, c.Actor)
		if err != nil || removed.ID != agent.ID || removed.Name != agent.Name || removed.AccountID != c.ID {
			t.Fatalf("%+v, %v", removed, err)
		}
		checkError(t, "removed again", errOf(f.Agents.Remove(ctx, c.ID, agent.ID, c.Actor)), value.ErrAgentNotFound)
		if agents, err := f.Agents.List(ctx, c.ID, modelstest.AllAgents); err != nil || len(agents.Items) != 1 || agents.Items[0].ID != kept.ID {
			t.Errorf("left: %+v, %v", agents, err)
		}
	})
}

func TestFormOfARemovedAgentDoesNotCreateItAgain(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, form := t.Context(), f.Customer(t), agents.NewAgent{Name: "Front desk", FormID: uuid.New()}
		agent := modelstest.Value(f.Agents.Create(ctx, c.ID, form, c.Actor))(t)
		must(t, errOf(f.Agents.Remove(ctx, c.ID, agent.ID, c.Actor)))
		checkError(t, "the form again", errOf(f.Agents.Create(ctx, c.ID, form, c.Actor)), value.ErrAgentRemoved)
		if agents, err := f.Agents.List(ctx, c.ID, modelstest.AllAgents); err != nil || len(agents.Items) != 0 {
			t.Errorf("agents %+v, %v", agents, err)
		}
		if recorded := f.Recorded(t, c, record.ActionAgentCreated); len(recorded) != 1 {
			t.Errorf("%d creations are recorded, want 1", len(recorded))
		}
		form.FormID = uuid.New()
		checkError(t, "another form", errOf(f.Agents.Create(ctx, c.ID, form, c.Actor)), nil)
	})
}

func TestAgentFormCreatesOneAgent(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.Customer(t), f.Customer(t)
		form := uuid.New()
		create := func(c customer, name string, formID uuid.UUID) agents.Agent {
			t.Helper()
			agent := modelstest.Value(f.Agents.Create(ctx, c.ID, agents.NewAgent{Name: name, FormID: formID}, c.Actor))(t)
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
		agents, err := f.Agents.List(ctx, c.ID, modelstest.AllAgents)
		if err != nil || len(agents.Items) != 3 {
			t.Errorf("%d agents, want 3: %v", len(agents.Items), err)
		}
		if recorded := f.Recorded(t, c, record.ActionAgentCreated); len(recorded) != 3 {
			t.Errorf("%d agents are recorded, want 3", len(recorded))
		}
	})
}

func TestAgentLimit(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		list := make([]agents.Agent, value.MaxAgents-2)
		for i := range list {
			list[i] = agents.Agent{ID: newID(), AccountID: c.ID, Name: "Reception", CreatedAt: f.Clock.Now()}
		}
		must(t, errOf(f.DB.NewInsert().Model(&list).Exec(ctx)))
		form := agents.NewAgent{Name: "Front desk", FormID: uuid.New()}
		must(t, errOf(f.Agents.Create(ctx, c.ID, form, c.Actor)))
		_, errs := modelstest.AtOnce(6, func(int) error {
			return errOf(f.Agents.Create(ctx, c.ID, agents.NewAgent{Name: "One more"}, c.Actor))
		})
		checkErrors(t, "above the limit", errs, value.ErrAgentLimit)
		if n := f.Count(t, "SELECT count(*) FROM agents WHERE account_id = ?", c.ID); n != value.MaxAgents || len(errs) != 5 {
			t.Errorf("%d agents, %d refusals", n, len(errs))
		}
		checkError(t, "the form of an agent", errOf(f.Agents.Create(ctx, c.ID, form, c.Actor)), nil)
		f.Agent(t, f.Customer(t)) // another account
	})
}

func TestLastUseOfAnAgentIsThatOfAllKeys(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, other := f.Customer(t), f.Customer(t)
		agent, unused := f.Agent(t, c), f.Agent(t, c)
		first, _ := f.Key(t, c)
		second, _ := f.Key(t, c)
		var used time.Time
		f.Briefly(t, models.Options{}, func(s *models.Store) {
			modelstest.CheckLastUsed(t, "before the first use", s, agent, time.Time{})
			for _, key := range []keys.Key{second, first, second} {
				f.Clock.Advance(time.Minute)
				s.Agents.Used(c.ID, agent.ID, key.ID)
				used = f.Clock.Now()
				modelstest.CheckLastUsed(t, "before it is written", s, agent, used)
			}
			checkError(t, "another account", errOf(s.Agents.LastUsed(t.Context(), other.ID, agent.ID)), value.ErrAgentNotFound)
			must(t, s.Agents.FlushAll(t.Context()))
			if stored := f.StoredUse(t, agent, second); !stored.Equal(used) {
				t.Errorf("stored %v, want %v", stored, used)
			}
			modelstest.CheckLastUsed(t, "after it is written", s, agent, used)
		})
		modelstest.CheckLastUsed(t, "on another instance", f.Store, agent, used)
		modelstest.CheckLastUsed(t, "of an agent without use", f.Store, unused, time.Time{})
	})
}

// The agents of a key are known at once, on every instance soon, and no longer after 30 days.
func TestAgentsThatAKeyUsed(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, other := f.Customer(t), f.Customer(t)
		key, _ := f.Key(t, c)
		old, agent, unused, removed := f.Agent(t, c), f.Agent(t, c), f.Agent(t, c), f.Agent(t, c)
		f.Briefly(t, models.Options{}, func(s *models.Store) {
			for _, one := range []agents.Agent{old, agent, removed} {
				s.Agents.Used(c.ID, one.ID, key.ID)
			}
			s.Agents.Used(c.ID, unused.ID, newID())
		})
		modelstest.Value(f.Agents.Remove(t.Context(), c.ID, removed.ID, c.Actor))(t)
		f.Clock.Advance(31 * value.Day)
		f.Agents.Used(c.ID, agent.ID, key.ID)
		for range 2 {
			used := modelstest.Value(f.Agents.UsedBy(t.Context(), c.ID, key.ID))(t)
			if len(used) != 1 || !used[agent.ID].Equal(f.Clock.Now()) {
				t.Errorf("used %v, want %v at %v", used, agent.ID, f.Clock.Now())
			}
			must(t, f.Agents.Flush(t.Context()))
		}
		if used := modelstest.Value(f.Agents.UsedBy(t.Context(), other.ID, key.ID))(t); len(used) != 0 {
			t.Errorf("another account sees %v", used)
		}
		f.Clock.Advance(60 * value.Day)
		must(t, f.Erasures.Purge(t.Context()))
		f.CheckCount(t, 1, "SELECT count(*) FROM api_key_agents")
	})
}

// after is a query hook that is called after each statement.
type after func()

func (after) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context { return ctx }

func (a after) AfterQuery(context.Context, *bun.QueryEvent) { a() }

func TestUsesThatAreWrittenMeanwhileAreRead(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		key, _ := f.Key(t, c)
		agent := f.Agent(t, c)
		store := f.WithQueryHook(after(func() { must(t, f.Agents.Flush(ctx)) }))
		store.Agents.Used(c.ID, agent.ID, key.ID)
		if used := modelstest.Value(store.Agents.UsedBy(ctx, c.ID, key.ID))(t); !used[agent.ID].Equal(f.Clock.Now()) {
			t.Errorf("used %v", used)
		}
		f.Clock.Advance(time.Minute)
		store.Agents.Used(c.ID, agent.ID, key.ID)
		modelstest.CheckLastUsed(t, "written meanwhile", store, agent, f.Clock.Now())
	})
}

// useAgents uses each of an account's agents with each of 100 keys, and returns how many uses there
// were.
func useAgents(t testing.TB, f *fixture, s *models.Store, accountID uuid.UUID, agents []agents.Agent) int {
	t.Helper()
	f.Clock.Advance(time.Second)
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
func manyAgents(t testing.TB, f *fixture, accountID uuid.UUID) []agents.Agent {
	t.Helper()
	list := make([]agents.Agent, value.MaxAgents)
	for i := range list {
		list[i] = agents.Agent{ID: newID(), AccountID: accountID, Name: "Reception", CreatedAt: f.Clock.Now()}
	}
	must(t, errOf(f.DB.NewInsert().Model(&list).Exec(t.Context())))
	ofAccount := make([]keys.Key, value.MaxActiveKeys)
	for n := range ofAccount {
		id := manyKeysID(accountID, n)
		hash := sha256.Sum256(id[:])
		ofAccount[n] = keys.Key{
			ID: id, AccountID: accountID, Label: "one of many", KeyHash: hash[:], Credential: keys.CredentialSecret,
			FormID: id, CreatedAt: f.Clock.Now(), Access: keys.AccessAgents,
		}
	}
	must(t, errOf(f.DB.NewInsert().Model(&ofAccount).Exec(t.Context())))
	return list
}

// An account uses many agents with all of its keys. A store that stops writes all uses, and an
// error in one batch keeps the batches before it.
func TestManyUsesOfAgentsAreWritten(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		agents := manyAgents(t, f, c.ID)[:40] // four batches
		var batches atomic.Int32
		failing, cancel := context.WithCancel(ctx)
		cancel()
		watched := f.WithQueryHook(modelstest.Before(func(ctx context.Context, event *bun.QueryEvent) context.Context {
			if strings.HasPrefix(event.Query, "INSERT INTO \"api_key_agents\"") && batches.Add(1) > 3 {
				return failing
			}
			return ctx
		}))
		watched.Agents.OwnUses()
		uses := useAgents(t, f, watched, c.ID, agents)
		checkError(t, "stopped", watched.Agents.Flush(ctx), context.Canceled)
		f.CheckCount(t, 3000, "SELECT count(*) FROM api_key_agents")
		f.Briefly(t, models.Options{}, func(s *models.Store) { useAgents(t, f, s, c.ID, agents) })
		f.CheckCount(t, uses, "SELECT count(*) FROM api_key_agents WHERE used_at = ?", f.Clock.Now())
	})
}

// Keys that are used all the time write few rows. Another instance sees a use at most a minute
// later, and a stop writes what waits.
func TestUsesOfAgentsAreWrittenOnceAMinute(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		agent, keys := f.Agent(t, c), make([]keys.Key, 10)
		for i := range keys {
			keys[i], _ = f.Key(t, c)
		}
		rows := 0
		s := f.WithQueryHook(modelstest.Before(func(ctx context.Context, event *bun.QueryEvent) context.Context {
			if strings.HasPrefix(event.Query, "INSERT INTO \"api_key_agents\"") {
				rows += strings.Count(event.Query, agent.ID.String())
			}
			return ctx
		}))
		s.Agents.OwnUses()
		use := func() {
			t.Helper()
			for _, key := range keys {
				s.Agents.Used(c.ID, agent.ID, key.ID)
			}
			modelstest.CheckLastUsed(t, "at once", s, agent, f.Clock.Now())
			if used := modelstest.Value(s.Agents.UsedBy(t.Context(), c.ID, keys[0].ID))(t); !used[agent.ID].Equal(f.Clock.Now()) {
				t.Errorf("the key used it at %v, want %v", used[agent.ID], f.Clock.Now())
			}
			must(t, s.Agents.Flush(t.Context()))
			if seen := modelstest.Value(f.Agents.LastUsed(t.Context(), c.ID, agent.ID))(t); f.Clock.Now().Sub(seen) > time.Minute {
				t.Errorf("another instance sees the last use %v later", f.Clock.Now().Sub(seen))
			}
		}
		for range 150 {
			f.Clock.Advance(time.Second)
			use()
		}
		if rows != 3*len(keys) {
			t.Errorf("%d keys wrote %d rows in 150 seconds, want three times each", len(keys), rows)
		}
		must(t, s.Agents.FlushAll(t.Context()))
		modelstest.CheckLastUsed(t, "after a stop", f.Store, agent, f.Clock.Now())
		f.Clock.Advance(2 * time.Minute)
		must(t, s.Agents.Flush(t.Context()))
		if n := s.Agents.Waiting(); n != 0 {
			t.Errorf("%d uses stay in memory", n)
		}
	})
}

// The first use of another account is noted while one account has filled the memory.
func TestUsesOfAgentsAreBoundedForAnAccount(t *testing.T) {
	f := modelstest.NewFixture(t, modelstest.SQLiteURL(t), models.Options{})
	c, other := f.Customer(t), f.Customer(t)
	key, agent := newID(), f.Agent(t, other)
	for range agents.MaxSeen + 1000 {
		f.Agents.Used(c.ID, newID(), newID())
	}
	f.Agents.Used(other.ID, agent.ID, key)
	if used := modelstest.Value(f.Agents.UsedBy(t.Context(), other.ID, key))(t); len(used) != 1 {
		t.Errorf("%d agents were used, want 1", len(used))
	}
	if n := f.Agents.Waiting(); n > agents.MaxSeen+1000 {
		t.Errorf("%d uses wait", n)
	}
}

// The flush of 100,000 uses of agents.
func BenchmarkFlushOfUses(b *testing.B) {
	for name, url := range map[string]func(testing.TB) string{"sqlite": modelstest.SQLiteURL, "postgres": modelstest.PostgresURL} {
		b.Run(name, func(b *testing.B) {
			f := &fixture{URL: url(b), Clock: modelstest.StartClock()}
			f.DB = modelstest.OpenDatabase(b, f.URL)
			f.Store = modelstest.Open(b, f.URL, f.WithClock(models.Options{Timeout: models.Timeout}))
			account := people.Account{ID: newID(), Name: "Acme", CreatedAt: f.Clock.Now()}
			must(b, errOf(f.DB.NewInsert().Model(&account).Exec(b.Context())))
			// No flush in the background.
			s := f.WithQueryHook(modelstest.Before(func(ctx context.Context, _ *bun.QueryEvent) context.Context { return ctx }))
			s.Agents.OwnUses()
			agents := manyAgents(b, f, account.ID)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			useAgents(b, f, s, account.ID, agents)
			runtime.GC()
			runtime.ReadMemStats(&after)
			for b.Loop() {
				must(b, s.Agents.FlushAll(b.Context()))
				b.StopTimer()
				useAgents(b, f, s, account.ID, agents)
				b.StartTimer()
			}
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB")
		})
	}
}

func TestAgentMadeAnewWasNotUsed(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		key, _ := f.Key(t, c)
		agent := f.Agent(t, c)
		f.Agents.Used(c.ID, agent.ID, key.ID)
		must(t, f.Agents.Flush(ctx))
		must(t, errOf(f.Agents.Remove(ctx, c.ID, agent.ID, c.Actor)))
		checkError(t, "removed", errOf(f.Agents.LastUsed(ctx, c.ID, agent.ID)), value.ErrAgentNotFound)
		// An instance writes a use just before the removal.
		f.Agents.Used(c.ID, agent.ID, key.ID)
		f.Clock.Advance(time.Minute)
		must(t, f.Agents.Flush(ctx))
		_, _, err := f.Agents.Put(ctx, c.ID, agent.ID, "Anew", nil, c.Actor)
		must(t, err)
		modelstest.CheckLastUsed(t, "made anew", f.Store, agent, time.Time{})
		// The use before the removal is still in memory.
		f.Agents.Used(c.ID, agent.ID, key.ID)
		must(t, errOf(f.Agents.Remove(ctx, c.ID, agent.ID, c.Actor)))
		f.Clock.Advance(time.Second)
		_, _, err = f.Agents.Put(ctx, c.ID, agent.ID, "Anew", nil, c.Actor)
		must(t, err)
		modelstest.CheckLastUsed(t, "made anew within a minute", f.Store, agent, time.Time{})
		if used := modelstest.Value(f.Agents.UsedBy(ctx, c.ID, key.ID))(t); len(used) != 0 {
			t.Errorf("the key used %v", used)
		}
	})
}
