package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/agents"
	"portal/models/keys"
	"portal/models/livekit"
	"portal/models/people"
	"portal/models/record"
	"portal/models/usage"
	"portal/models/value"
)

const demoEmail = "demo@example.com"

// demoAccount is how to sign in to an account for demonstrations, and its first agent and key.
type demoAccount struct {
	Email     string    `json:"email"`
	Password  string    `json:"password"`
	AccountID uuid.UUID `json:"accountId"`
	AgentID   uuid.UUID `json:"agentId"`
}

// seededAccount is what demo seed prints as JSON.
type seededAccount struct {
	demoAccount

	APIKey         string     `json:"apiKey"`
	UserID         uuid.UUID  `json:"userId"`
	BaseURL        string     `json:"baseUrl"`
	MemberEmail    string     `json:"memberEmail"`
	MemberPassword string     `json:"memberPassword"`
	InvitationLink string     `json:"invitationLink"`
	Keys           seededKeys `json:"keys"`
}

// seededKeys are keys by their purpose in a suite.
type seededKeys struct {
	Active     seededKey `json:"active"`
	Restricted seededKey `json:"restricted"`
	Expired    seededKey `json:"expired"`
	Revoked    seededKey `json:"revoked"`
	Unused     seededKey `json:"unused"`
}

type seededKey struct {
	ID    uuid.UUID `json:"id"`
	Label string    `json:"label"`
	Value *string   `json:"value"` // nil: the key no longer works
}

func createDemo(ctx context.Context, store *models.Store, email string, seeded bool, list ...string) (demoAccount, error) {
	demo := demoAccount{Email: email, Password: rand.Text()}
	account, err := store.Accounts.Create(ctx, people.NewAccount{Name: "Demo", Email: email, Password: demo.Password, Seeded: seeded})
	if err != nil {
		return demo, err
	}
	demo.AccountID = account.ID
	for _, name := range list {
		agent, err := store.Agents.Create(ctx, account.ID, agents.NewAgent{Name: name}, record.Operator())
		if err != nil {
			return demo, err
		}
		demo.AgentID = cmp.Or(demo.AgentID, agent.ID)
	}
	return demo, nil
}

// String returns the lines for the operator.
func (d demoAccount) String() string {
	return fmt.Sprintf("Email:    %s\nPassword: %s\nAgent ID: %s\n", d.Email, d.Password, d.AgentID)
}

// serveDemo creates an account with one agent in an empty database, and prints the portal's URL and
// the account to w. In a database with an account it prints the URL and logs a message. Because the
// first thing to show is how to generate a key, serveDemo creates none. It does not depend on the
// reader of w.
func serveDemo(ctx context.Context, store *models.Store, baseURL *url.URL, w io.Writer, logger *slog.Logger) error {
	empty, err := store.Accounts.Empty(ctx)
	if err != nil {
		return err
	}
	shown := newLogQueue(w)
	defer shown.flush()
	var demo demoAccount
	if empty {
		demo, err = createDemo(ctx, store, demoEmail, false, "Demo agent")
	}
	// Another instance may have created the account in the meantime.
	if !empty || errors.Is(err, value.ErrEmailTaken) {
		logger.InfoContext(ctx, "the database has an account already, so --demo creates none")
		_, err = fmt.Fprintf(shown, "URL:      %s\n", baseURL)
		return err
	}
	if err != nil {
		return fmt.Errorf("create the demo account: %w", err)
	}
	_, err = fmt.Fprintf(shown, "URL:      %s\n%s", baseURL, demo)
	return err
}

type demoSeedCommand struct {
	Email   string `default:"seed@example.com" placeholder:"EMAIL" help:"Email of the account's user. Default: ${default}."`
	JSON    bool   `name:"json" help:"Print one JSON object."`
	Replace bool   `help:"First erase the account of these users, if demo seed created it."`
}

// demoRestricted is the label of the key that reaches one agent.
const demoRestricted = "Partner sandbox"

// demoKeys are the labels of the active keys, with their requests on a weekday.
var demoKeys = []struct {
	label    string
	requests int64
}{
	{"Production backend", 1900},
	{"Staging backend", 240},
	{"Website", 820},
	{"Call center", 560},
	{"Mobile gateway", 410},
	{demoRestricted, 35},
	{"CI pipeline", 120},
	{"Load tests", 0},
	{"Support tools", 18},
	{"Analytics export", 6},
	{"Development", 42},
}

// demoSources are where requests with the keys come from.
var demoSources = []keys.Source{
	usage.NewSource(netip.MustParseAddr("203.0.113.10"), "python-requests/2.32.3"),
	usage.NewSource(netip.MustParseAddr("203.0.113.11"), "python-requests/2.32.3"),
	usage.NewSource(netip.MustParseAddr("2001:db8:40:7::1"), "node"),
}

// demoRevokedKeys are the labels of the revoked keys, and how many days ago they were revoked.
var demoRevokedKeys = []struct {
	label   string
	daysAgo int
}{
	{"Old website", 19},
	{"Trial", 12},
	{"Contractor laptop", 2},
}

// Run creates the account, and its history in chronological order, because ids sort by time.
func (c demoSeedCommand) Run(ctx context.Context, t terminal) error {
	s, err := readSettings("DATABASE_URL", "PORTAL_ADDR", "PORTAL_BASE_URL")
	if err != nil {
		return err
	}
	baseURL := "http://" + s.addr
	if s.baseURL != nil {
		baseURL = s.baseURL.String()
	}
	seed := demoSeed{today: time.Now().UTC().Truncate(time.Minute)}
	seed.setClock(time.Now())
	return s.database.withStore(ctx, models.Options{Now: seed.clock, PastIDs: true}, func(store *models.Store) error {
		if c.Replace {
			if err := eraseSeeded(ctx, store, c.Email, memberEmail(c.Email)); err != nil {
				return err
			}
		}
		seed.store = store
		seed.setClock(seed.daysAgo(34))
		demo, err := createDemo(ctx, store, c.Email, true, "Front desk", "Night shift", "Outbound surveys")
		if err == nil {
			seed.user, err = store.SignIn.VerifyPassword(ctx, demo.Email, demo.Password, people.Client{Address: "192.0.2.10"})
		}
		if err != nil {
			return err
		}
		seed.out = seededAccount{demoAccount: demo, UserID: seed.user.ID, BaseURL: baseURL}
		for _, create := range []func(context.Context) error{
			seed.createExpiredKey, seed.createKeys, seed.revokeKeys, seed.rotate, seed.call, seed.signIn, seed.addPeople,
		} {
			if err := create(ctx); err != nil {
				return err
			}
		}
		time.Sleep(time.Until(seed.expires))
		if c.JSON {
			return writeJSON(t.out, seed.out)
		}
		_, err = fmt.Fprintf(t.out, "%sAPI key:  %s\n", demo, seed.out.APIKey)
		return err
	})
}

// eraseSeeded erases the accounts of the users with these emails. If demo seed did not create one
// of them, it erases none and returns an error.
func eraseSeeded(ctx context.Context, store *models.Store, emails ...string) error {
	accounts := map[uuid.UUID]people.Account{}
	for _, email := range emails {
		account, err := store.Accounts.FindByEmail(ctx, email)
		switch {
		case errors.Is(err, value.ErrAccountNotFound):
		case err != nil:
			return err
		case !account.Seeded:
			return fmt.Errorf("--replace: demo seed did not create the account of %s; choose another --email", email)
		default:
			accounts[account.ID] = account
		}
	}
	for id := range accounts {
		if err := store.Accounts.SetDisabled(ctx, id, true, record.Operator()); err != nil {
			return err
		}
		if err := store.Erasures.BeginAccount(ctx, id); err != nil {
			return err
		}
	}
	return finishErasures(ctx, store)
}

func memberEmail(email string) string { return "member-" + email }

// demoSeed creates the demo data. Its clock is the clock of the store. It goes on by a millisecond
// whenever the store reads it, so that the ids of activities sort by time.
type demoSeed struct {
	store *models.Store
	today time.Time
	now   atomic.Int64 // nanoseconds since 1970; the store reads it in the background too

	user people.User
	keys []keys.Key
	out  seededAccount

	expires time.Time // when the expired key expires
}

func (s *demoSeed) clock() time.Time {
	return time.Unix(0, s.now.Add(int64(time.Millisecond))).UTC()
}

func (s *demoSeed) setClock(now time.Time) { s.now.Store(now.UnixNano()) }

func (s *demoSeed) daysAgo(days int) time.Time { return s.today.AddDate(0, 0, -days) }

func (s *demoSeed) actor() record.Actor { return record.UserActor(s.user.ID, "192.0.2.10") }

// createKeys generates the active keys, one a day, and their usage.
func (s *demoSeed) createKeys(ctx context.Context) error {
	for i, demo := range demoKeys {
		s.setClock(s.daysAgo(33 - i))
		n := keys.NewKey{Label: demo.label, FormID: uuid.New()}
		if demo.label == demoRestricted {
			n.Restrictions.Agents = []uuid.UUID{s.out.AgentID}
		}
		key, secret, err := s.store.Keys.Generate(ctx, s.user.AccountID, n, s.actor())
		if err != nil {
			return err
		}
		s.keys = append(s.keys, key)
		seeded := seededKey{ID: key.ID, Label: key.Label, Value: &secret}
		switch {
		case i == 0:
			s.out.Keys.Active, s.out.APIKey = seeded, secret
		case demo.label == demoRestricted:
			s.out.Keys.Restricted = seeded
		case demo.requests == 0:
			s.out.Keys.Unused = seeded
		}
		s.use(key, demo.requests, 33-i, 0)
	}
	s.setClock(s.daysAgo(20))
	_, err := s.store.Keys.Rename(ctx, s.user.AccountID, s.keys[3].ID, "Contact center", s.actor())
	return err
}

// createExpiredKey generates a key that expires within seconds. A database refuses a date before
// its own time.
func (s *demoSeed) createExpiredKey(ctx context.Context) error {
	s.expires = time.Now().Add(2 * time.Second)
	n := keys.NewKey{Label: "Trade fair", FormID: uuid.New(), Restrictions: keys.Restrictions{ExpiresAt: &s.expires}}
	key, _, err := s.store.Keys.Generate(ctx, s.user.AccountID, n, s.actor())
	s.out.Keys.Expired = seededKey{ID: key.ID, Label: key.Label}
	return err
}

// addPeople adds a member and invites another one.
func (s *demoSeed) addPeople(ctx context.Context) error {
	s.out.MemberEmail, s.out.MemberPassword = memberEmail(s.out.Email), rand.Text()
	member := people.NewUser{Email: s.out.MemberEmail, Password: s.out.MemberPassword, Role: people.RoleMember}
	if _, err := s.store.People.Add(ctx, s.user.AccountID, member, record.Operator()); err != nil {
		return err
	}
	_, token, err := s.store.Invitations.Create(ctx, s.user.AccountID, "invited-"+s.out.Email, people.RoleMember, s.actor())
	s.out.InvitationLink = s.out.BaseURL + "/invitations/" + token
	return err
}

// use adds usage for each day of a range, which is given in days ago. Weekends have less usage, and
// the numbers vary by day.
func (s *demoSeed) use(key keys.Key, weekday int64, from, to int) {
	for day := min(from, 30); day >= to; day-- {
		at := s.daysAgo(day)
		requests := weekday * int64(70+(day*37+int(key.LastFour[0]))%60) / 100
		if at.Weekday() == time.Saturday || at.Weekday() == time.Sunday {
			requests /= 4
		}
		for i, source := range demoSources {
			if share := requests * int64(i+1) / 6; share > 0 {
				s.store.Usage.Add(key, source, at, share, 0)
			}
		}
	}
}

// revokeKeys generates the revoked keys. Clients still send requests with them.
func (s *demoSeed) revokeKeys(ctx context.Context) error {
	for i, demo := range demoRevokedKeys {
		s.setClock(s.daysAgo(demo.daysAgo).Add(-time.Hour))
		key, _, err := s.store.Keys.Generate(ctx, s.user.AccountID, keys.NewKey{Label: demo.label, FormID: uuid.New()}, s.actor())
		if err != nil {
			return err
		}
		if i == 0 {
			s.out.Keys.Revoked = seededKey{ID: key.ID, Label: key.Label}
		}
		s.store.Usage.Add(key, demoSources[0], s.clock(), int64(9*(i+1)), 0)
		s.setClock(s.daysAgo(demo.daysAgo))
		actor := s.actor()
		if i == 0 {
			actor = record.Operator()
		}
		if _, err := s.store.Keys.Revoke(ctx, s.user.AccountID, key.ID, "", actor); err != nil {
			return err
		}
		s.store.Usage.Add(key, demoSources[0], s.daysAgo(demo.daysAgo-1), 0, int64(40*i))
	}
	return nil
}

// rotate begins to replace the first key: some requests still use the old one.
func (s *demoSeed) rotate(ctx context.Context) error {
	s.setClock(s.today.Add(-3 * time.Hour))
	old := s.keys[0]
	key, _, err := s.store.Keys.Generate(ctx, s.user.AccountID,
		keys.NewKey{Label: old.Label, FormID: uuid.New(), Replaces: old.ID}, s.actor())
	if err != nil {
		return err
	}
	s.store.Usage.Add(key, demoSources[0], s.today.Add(-20*time.Minute), 310, 0)
	return nil
}

// demoCalls are calls of a day: when they begin, how long they last and how they end.
var demoCalls = []struct {
	begins, lasts time.Duration
	reason        string
}{
	{9*time.Hour + 12*time.Minute, 4*time.Minute + 31*time.Second, "CLIENT_INITIATED"},
	{11*time.Hour + 47*time.Minute, 12*time.Minute + 8*time.Second, "CLIENT_INITIATED"},
	{16*time.Hour + 3*time.Minute, 52 * time.Second, "CONNECTION_TIMEOUT"},
}

// call adds calls of the last 30 days, as LiveKit reports them.
func (s *demoSeed) call(ctx context.Context) error {
	agents, err := s.store.Agents.List(ctx, s.user.AccountID, value.Page{Limit: len(demoCalls)})
	if err != nil {
		return err
	}
	for day := 30; day > 0; day-- {
		for i, call := range demoCalls {
			key, agent := s.keys[(day+i)%len(s.keys)], agents.Items[(day+i)%len(agents.Items)]
			room := fmt.Sprintf("%s_%s_demo%d%d", agent.ID, key.ID, day, i)
			joined := s.daysAgo(day).Truncate(value.Day).Add(call.begins)
			event := livekit.Event{
				CreatedAt: joined,
				Room:      livekit.Room{ID: room, Name: room, AgentID: agent.ID, KeyID: key.ID},
				Visitor: livekit.Visitor{
					ID: room, Identity: room, UserID: fmt.Sprintf("customer-%d", 1000+37*day+i), JoinedAt: joined, Reason: call.reason,
				},
			}
			event.Left, event.CreatedAt = true, joined.Add(call.lasts)
			s.setClock(event.CreatedAt)
			if err := s.store.Calls.Report(ctx, event); err != nil {
				return err
			}
		}
	}
	return nil
}

// signIn starts two sessions one hour ago.
func (s *demoSeed) signIn(ctx context.Context) error {
	s.setClock(s.today.Add(-time.Hour))
	for _, browser := range []string{
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1",
	} {
		if _, err := s.store.SignIn.Start(ctx, s.user, people.Client{Address: "192.0.2.10", UserAgent: browser}); err != nil {
			return err
		}
	}
	s.setClock(s.today)
	return nil
}
