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
	"portal/models/usage"
)

const demoEmail = "demo@example.com"

// demoAccount is how to sign in to an account for demonstrations, and its first agent and key.
type demoAccount struct {
	Email     string    `json:"email"`
	Password  string    `json:"password"`
	AccountID uuid.UUID `json:"accountId"`
	AgentID   uuid.UUID `json:"agentId"`
	APIKey    string    `json:"apiKey"` // of demo seed only
}

func createDemo(ctx context.Context, store *models.Store, email string, agents ...string) (demoAccount, error) {
	demo := demoAccount{Email: email, Password: rand.Text()}
	account, err := store.Accounts.Create(ctx, models.NewAccount{Name: "Demo", Email: email, Password: demo.Password})
	if err != nil {
		return demo, err
	}
	demo.AccountID = account.ID
	for _, name := range agents {
		agent, err := store.Agents.Create(ctx, account.ID, models.NewAgent{Name: name}, models.Operator())
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
// first thing to show is how to generate a key, serveDemo creates none.
func serveDemo(ctx context.Context, store *models.Store, baseURL *url.URL, w io.Writer, logger *slog.Logger) error {
	empty, err := store.Accounts.Empty(ctx)
	if err != nil {
		return err
	}
	var demo demoAccount
	if empty {
		demo, err = createDemo(ctx, store, demoEmail, "Demo agent")
	}
	// Another instance may have created the account in the meantime.
	if !empty || errors.Is(err, models.ErrEmailTaken) {
		logger.InfoContext(ctx, "the database has an account already, so --demo creates none")
		_, err = fmt.Fprintf(w, "URL:      %s\n", baseURL)
		return err
	}
	if err != nil {
		return fmt.Errorf("create the demo account: %w", err)
	}
	_, err = fmt.Fprintf(w, "URL:      %s\n%s", baseURL, demo)
	return err
}

type demoSeedCommand struct {
	Email string `default:"seed@example.com" placeholder:"EMAIL" help:"Email of the account's user. Default: ${default}."`
	JSON  bool   `name:"json" help:"Print one JSON object."`
}

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
	{"Partner sandbox", 35},
	{"CI pipeline", 120},
	{"Load tests", 0},
	{"Support tools", 18},
	{"Analytics export", 6},
	{"Development", 42},
}

// demoSources are where requests with the keys come from.
var demoSources = []models.Source{
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
	d, err := databaseFromEnvironment()
	if err != nil {
		return err
	}
	seed := demoSeed{today: time.Now().UTC().Truncate(time.Minute)}
	seed.setClock(seed.daysAgo(34))
	return d.withStore(ctx, models.Options{Now: seed.clock}, func(store *models.Store) error {
		seed.store = store
		demo, err := createDemo(ctx, store, c.Email, "Front desk", "Night shift", "Outbound surveys")
		if err == nil {
			seed.user, err = store.SignIn.VerifyPassword(ctx, demo.Email, demo.Password, models.Client{Address: "192.0.2.10"})
		}
		if err != nil {
			return err
		}
		if err := errors.Join(seed.createKeys(ctx), seed.revokeKeys(ctx), seed.rotate(ctx), seed.signIn(ctx)); err != nil {
			return err
		}
		demo.APIKey = seed.secret
		if c.JSON {
			return writeJSON(t.out, demo)
		}
		_, err = fmt.Fprintf(t.out, "%sAPI key:  %s\n", demo, demo.APIKey)
		return err
	})
}

// demoSeed creates the demo data. Its clock is the clock of the store.
type demoSeed struct {
	store *models.Store
	today time.Time
	now   atomic.Int64 // nanoseconds since 1970; the store reads it in the background too

	user   models.User
	keys   []models.Key
	secret string // of the first key
}

func (s *demoSeed) clock() time.Time { return time.Unix(0, s.now.Load()).UTC() }

func (s *demoSeed) setClock(now time.Time) { s.now.Store(now.UnixNano()) }

func (s *demoSeed) daysAgo(days int) time.Time { return s.today.AddDate(0, 0, -days) }

func (s *demoSeed) actor() models.Actor { return models.UserActor(s.user.ID, "192.0.2.10") }

// createKeys generates the active keys, one a day, and their usage.
func (s *demoSeed) createKeys(ctx context.Context) error {
	for i, demo := range demoKeys {
		s.setClock(s.daysAgo(33 - i))
		key, secret, err := s.store.Keys.Generate(ctx, s.user.AccountID, models.NewKey{Label: demo.label, FormID: uuid.New()}, s.actor())
		if err != nil {
			return err
		}
		s.keys = append(s.keys, key)
		if i == 0 {
			s.secret = secret
		}
		s.use(key, demo.requests, 33-i, 0)
	}
	s.setClock(s.daysAgo(20))
	_, err := s.store.Keys.Rename(ctx, s.user.AccountID, s.keys[3].ID, "Contact center", s.actor())
	return err
}

// use adds usage for each day of a range, which is given in days ago. Weekends have less usage, and
// the numbers vary by day.
func (s *demoSeed) use(key models.Key, weekday int64, from, to int) {
	for day := min(from, 30); day >= to; day-- {
		at := s.daysAgo(day)
		requests := weekday * int64(70+(day*37+int(key.LastFour[0]))%60) / 100
		if at.Weekday() == time.Saturday || at.Weekday() == time.Sunday {
			requests /= 4
		}
		for i, source := range demoSources {
			if share := requests * int64(i+1) / 6; share > 0 {
				s.store.Keys.AddUsage(key, source, at, share, 0)
			}
		}
	}
}

// revokeKeys generates the revoked keys. Clients still send requests with them.
func (s *demoSeed) revokeKeys(ctx context.Context) error {
	for i, demo := range demoRevokedKeys {
		s.setClock(s.daysAgo(demo.daysAgo).Add(-time.Hour))
		key, _, err := s.store.Keys.Generate(ctx, s.user.AccountID, models.NewKey{Label: demo.label, FormID: uuid.New()}, s.actor())
		if err != nil {
			return err
		}
		s.store.Keys.AddUsage(key, demoSources[0], s.clock(), int64(9*(i+1)), 0)
		s.setClock(s.daysAgo(demo.daysAgo))
		actor := s.actor()
		if i == 0 {
			actor = models.Operator()
		}
		if _, err := s.store.Keys.Revoke(ctx, s.user.AccountID, key.ID, "", actor); err != nil {
			return err
		}
		s.store.Keys.AddUsage(key, demoSources[0], s.daysAgo(demo.daysAgo-1), 0, int64(40*i))
	}
	return nil
}

// rotate begins to replace the first key: some requests still use the old one.
func (s *demoSeed) rotate(ctx context.Context) error {
	s.setClock(s.today.Add(-3 * time.Hour))
	old := s.keys[0]
	key, _, err := s.store.Keys.Generate(ctx, s.user.AccountID,
		models.NewKey{Label: old.Label, FormID: uuid.New(), Replaces: old.ID}, s.actor())
	if err != nil {
		return err
	}
	s.store.Keys.AddUsage(key, demoSources[0], s.today.Add(-20*time.Minute), 310, 0)
	return nil
}

// signIn starts two sessions one hour ago.
func (s *demoSeed) signIn(ctx context.Context) error {
	s.setClock(s.today.Add(-time.Hour))
	for _, browser := range []string{
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1",
	} {
		if _, err := s.store.SignIn.Start(ctx, s.user, models.Client{Address: "192.0.2.10", UserAgent: browser}); err != nil {
			return err
		}
	}
	s.setClock(s.today)
	return nil
}
