package keys_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"portal/models"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/usage"
	"portal/models/value"
)

func source(address, userAgent string) keys.Source {
	parsed, _ := netip.ParseAddr(address)
	return usage.NewSource(parsed, userAgent)
}

func useFrom(t *testing.T, s *models.Store, secret string, from keys.Source, times int) {
	t.Helper()
	for range times {
		must(t, errOf(s.API.Authenticate(t.Context(), secret, from)))
	}
}

// sources returns the sources of a key as lines.
func (f *fixture) sources(t *testing.T, key keys.Key) (lines []string) {
	t.Helper()
	for _, one := range modelstest.Value(f.Usage.Sources(t.Context(), key.AccountID, key.ID))(t) {
		lines = append(lines, fmt.Sprintf("%s %s %s %s %d", one.Address, one.Client,
			one.FirstSeen.Format("01-02 15:04"), one.LastSeen.Format("01-02 15:04"), one.Requests))
	}
	return lines
}

// Requests of two instances, stored or not, are added to one source.
func TestSourcesOfAKey(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		key, secret := f.Key(t, c)
		_, otherSecret := f.Key(t, c)
		server, laptop := source("192.0.2.7", "python-requests/2.32.3"), source("2001:db8::7:1:2:3", "curl/8.5.0 (x)")
		first := f.Clock.Now()
		at := func(after time.Duration) string { return first.Add(after).Format("01-02 15:04") }
		isListed := func(want ...string) {
			t.Helper()
			if got := f.sources(t, key); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("sources %q, want %q", got, want)
			}
		}
		isListed()
		for range 2 {
			f.Briefly(t, models.Options{}, func(s *models.Store) {
				useFrom(t, s, secret, server, 2)
				useFrom(t, s, otherSecret, server, 1)
			})
			f.Clock.Advance(time.Minute)
		}
		useFrom(t, f.Store, secret, server, 1)
		useFrom(t, f.Store, secret, laptop, 2)
		// The same network.
		useFrom(t, f.Store, secret, source("2001:db8::7:9:9:9", "curl/8.5.0"), 1)
		useFrom(t, f.Store, secret, source("", ""), 1)
		isListed("192.0.2.7 python-requests/2.32.3 "+at(0)+" "+at(2*time.Minute)+" 5",
			"2001:db8::/64 curl/8.5.0 "+at(2*time.Minute)+" "+at(2*time.Minute)+" 3",
			"Unknown Unknown "+at(2*time.Minute)+" "+at(2*time.Minute)+" 1")
		if foreign := modelstest.Value(f.Usage.Sources(t.Context(), f.Customer(t).ID, key.ID))(t); len(foreign) != 0 {
			t.Errorf("another account sees %v", foreign)
		}
		// Later requests are those of the last 30 days, but the first time is older.
		f.Clock.Advance(40 * value.Day)
		useFrom(t, f.Store, secret, laptop, 1)
		f.Revoke(t, key)
		modelstest.Refuse(t, f.Store, secret, 3)
		isListed("2001:db8::/64 curl/8.5.0 " + at(2*time.Minute) + " " + at(40*value.Day+2*time.Minute) + " 1")
	})
}

// A network that has only a part of an IPv6 source may refuse it.
func TestNetworksOfASource(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{"192.0.2.7": "all", "198.51.100.7": "", "2001:db8:1::7": "all", "2001:db8:2::7": "some", "2001:db8:3::7": "", "": ""} {
		one := keys.KeySource{Address: source(address, "").Address()}
		all, some := one.In(prefixes("192.0.2.0/24", "2001:db8:1::/48", "2001:db8:2::7/128", "2001:db8:2::8/128"))
		if all != (want == "all") || some != (want == "some") {
			t.Errorf("%s: all %v, some %v, want %q", one.Address, all, some, want)
		}
	}
}

// A request that is refused for its address counts for its source, whether or not a flush falls
// between its authentication and its refusal.
func TestRefusedAddressesAreSources(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		key, secret := f.Key(t, f.Customer(t))
		at := f.Clock.Now().Format("01-02 15:04")
		from := func(i int) keys.Source { return source(fmt.Sprint("192.0.2.", i), "client/1.0") }
		isListed := func(requests ...int) {
			t.Helper()
			var want []string
			for i, n := range requests {
				want = append(want, fmt.Sprintf("192.0.2.%d client/1.0 %s %s %d", i+1, at, at, n))
			}
			if got := f.sources(t, key); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("sources %q, want %q", got, want)
			}
		}
		var caller keys.Principal
		f.Briefly(t, models.Options{}, func(s *models.Store) {
			caller = modelstest.Value(s.API.Authenticate(t.Context(), secret, from(1)))(t)
		})
		f.Briefly(t, models.Options{}, func(s *models.Store) { s.API.CountRefusal(caller) })
		isListed(1)
		authenticate := func(i, requests, refused int) {
			for range requests {
				// A report tells batches apart by their last uses, and a flush may
				// begin between two requests.
				f.Clock.Advance(time.Millisecond)
				useFrom(t, f.Store, secret, from(i), 1)
			}
			for range refused {
				f.API.CountRefusal(caller)
			}
		}
		authenticate(1, 3, 3)
		isListed(4)
		authenticate(2, 2, 2)
		authenticate(3, 1, 0)
		isListed(4, 2, 1)
		f.CheckCount(t, 0, "SELECT count(*) FROM api_key_sources WHERE client = ''")
	})
}

// A client that changes its name with each request has at most 20 rows a day and one for all
// others. A client with more requests is listed although it comes later.
func TestSourcesAreBounded(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		key, secret := f.Key(t, c)
		f.Clock.Advance(value.Day - f.Clock.Now().Sub(f.Clock.Now().Truncate(value.Day)))
		noise := 0
		for range 3 {
			f.Briefly(t, models.Options{}, func(s *models.Store) {
				for range 50 {
					noise++
					useFrom(t, s, secret, source("192.0.2.7", fmt.Sprint("noise/", noise)), 1)
				}
			})
			f.Clock.Advance(time.Minute)
		}
		server := source("192.0.2.8", "server/1.0")
		for range 3 {
			f.Briefly(t, models.Options{}, func(s *models.Store) {
				useFrom(t, s, secret, server, 2)
				for range 50 {
					noise++
					useFrom(t, s, secret, source("192.0.2.7", fmt.Sprint("noise/", noise)), 1)
				}
			})
			f.Clock.Advance(time.Minute)
		}
		if rows := f.Count(t, "SELECT count(*) FROM api_key_sources"); rows != 21 {
			t.Errorf("%d rows, want 21", rows)
		}
		useFrom(t, f.Store, secret, source("192.0.2.9", ""), 7)
		sources := modelstest.Value(f.Usage.Sources(t.Context(), c.ID, key.ID))(t)
		if len(sources) != 21 || sources[0].Address != "192.0.2.9" || sources[1].Client != "server/1.0" || sources[1].Requests != 6 {
			t.Fatalf("%d sources: %v", len(sources), sources)
		}
		sum := int64(0)
		for _, one := range sources {
			sum += one.Requests
		}
		if others := sources[20]; sum != int64(noise)+6+7 || others.Address != "" || others.Client != "" || others.Requests != int64(noise-18) {
			t.Errorf("%d requests, want %d; all others %v", sum, noise+6+7, others)
		}
	})
}
