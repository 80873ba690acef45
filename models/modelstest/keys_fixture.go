package modelstest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"portal/models"
	"portal/models/agents"
	"portal/models/keys"
	"portal/models/value"
	"portal/models/widget"
)

// ManyKeys stores n active keys with random hashes.
func (f *Fixture) ManyKeys(t *testing.T, c Customer, n int) {
	t.Helper()
	ofAccount := make([]keys.Key, n)
	for i := range ofAccount {
		hash := sha256.Sum256([]byte(value.NewID().String()))
		ofAccount[i] = keys.Key{
			ID: value.NewID(), AccountID: c.ID, Label: fmt.Sprint(i), KeyHash: hash[:], LastFour: "0000",
			FormID: value.NewID(), CreatedAt: f.Clock.Now(), Access: keys.AccessAgents, Credential: keys.CredentialSecret,
		}
	}
	Must(t, ErrOf(f.DB.NewInsert().Model(&ofAccount).Exec(t.Context())))
}

// UnknownKey is well-formed, but no account has it.
const UnknownKey = "nas_0123456789ABCDEFGHIJKLMNOPQRST49UbFO"

// In returns the time of the fixture plus d, in microseconds.
func (f *Fixture) In(d time.Duration) *time.Time {
	at := f.Clock.Now().Add(d).UTC().Truncate(time.Microsecond)
	return &at
}

// InRealTime moves the clock to the real time, which is the time of the database.
func (f *Fixture) InRealTime() { f.Clock.Advance(time.Since(f.Clock.Now())) }

// Use authenticates requests with a key.
func Use(t *testing.T, s *models.Store, secret string, times int) {
	t.Helper()
	for range times {
		Must(t, ErrOf(s.API.Authenticate(t.Context(), secret, keys.Source{})))
	}
}

// Refuse authenticates requests with a key that is revoked.
func Refuse(t *testing.T, s *models.Store, secret string, times int) {
	t.Helper()
	for range times {
		CheckError(t, "a revoked key", ErrOf(s.API.Authenticate(t.Context(), secret, keys.Source{})), value.ErrKeyRevoked)
	}
}

// Refusals returns how many requests with the key were refused.
func (f *Fixture) Refusals(t *testing.T, key keys.Key) (refusals int64) {
	t.Helper()
	for _, day := range f.Days(t, key) {
		refusals += day.Refusals
	}
	return refusals
}

// Sum returns the requests of all periods.
func Sum(periods []Period) (requests int64) {
	for _, p := range periods {
		requests += p.Requests
	}
	return requests
}

// Days returns the usage of the key by day, as stored.
func (f *Fixture) Days(t *testing.T, key keys.Key) []Period {
	t.Helper()
	days := f.Periods(t, `SELECT day AS start, requests, refusals FROM api_key_daily_usage WHERE api_key_id = ?
		UNION ALL SELECT hour, requests, refusals FROM api_key_last_uses WHERE api_key_id = ? AND hour IS NOT NULL ORDER BY start`, key)
	var sums []Period
	for _, one := range days {
		one.Start = one.Start.Truncate(value.Day)
		if last := len(sums) - 1; last >= 0 && sums[last].Start.Equal(one.Start) {
			sums[last].Requests += one.Requests
			sums[last].Refusals += one.Refusals
		} else {
			sums = append(sums, one)
		}
	}
	return sums
}

// Hours returns the usage of the key by hour, as stored.
func (f *Fixture) Hours(t *testing.T, key keys.Key) []Period {
	t.Helper()
	return f.Periods(t, `SELECT hour AS start, requests, refusals FROM api_key_hourly_usage WHERE api_key_id = ?
		UNION ALL SELECT hour, requests, refusals FROM api_key_last_uses WHERE api_key_id = ? AND hour IS NOT NULL ORDER BY start`, key)
}

// Periods returns what a query of the usage of the key returns.
func (f *Fixture) Periods(t *testing.T, query string, key keys.Key) (periods []Period) {
	t.Helper()
	Must(t, f.DB.NewRaw(query, key.ID, key.ID).Scan(t.Context(), &periods))
	for i := range periods {
		periods[i].Start = periods[i].Start.UTC()
	}
	return periods
}

// Period is one row of usage: the requests with a key in an hour or on a day.
type Period struct {
	Start              time.Time
	Requests, Refusals int64
}

// CheckToken checks the key, the account and the agent of a verified token.
func CheckToken(ctx context.Context, store *models.Store, claims widget.Claims) error {
	p, err := store.API.AuthenticateToken(ctx, claims)
	if err != nil {
		return err
	}
	if p.AccountID != claims.AccountID || p.KeyID != claims.KeyID {
		return fmt.Errorf("authenticated as %+v", p)
	}
	return store.API.CheckAgent(ctx, p, claims.AgentID)
}

// ClaimsOf returns the claims that the store checks, for a token of this key and agent.
func ClaimsOf(c Customer, key keys.Key, agent agents.Agent) widget.Claims {
	return widget.Claims{AccountID: c.ID, KeyID: key.ID, AgentID: agent.ID}
}
