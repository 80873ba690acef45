package keys

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/google/uuid"

	"portal/models/internal/db"
	"portal/models/usage"
	"portal/models/value"
)

// KeySource is the requests with a key from one source in the last 30 days, also those that were
// refused for their address. The source with an empty address and client is all others.
type KeySource struct {
	Address, Client     string
	FirstSeen, LastSeen time.Time // FirstSeen may be earlier, up to 90 days ago
	Requests            int64
}

// In reports whether one of the networks has all addresses of the source, or else some of them. An
// IPv6 source is a network, and which of its addresses it used is not known.
func (s KeySource) In(networks []netip.Prefix) (all, some bool) {
	source, ok := value.ParseNetwork(s.Address)
	for _, network := range networks {
		overlaps := ok && network.Overlaps(source)
		all = all || overlaps && network.Bits() <= source.Bits()
		some = some || overlaps
	}
	return all, some && !all
}

const (
	// maxKeySources is how many sources of a key are listed by themselves.
	maxKeySources = 20
	// SourcesKept is how long sources are kept.
	SourcesKept = 90 * value.Day
)

// SourceDays are the days of the listed requests.
var SourceDays = Days(30)

// Sources returns the sources with the most requests in the last 30 days with one of the account's
// keys, at most 20, and after them all others, if there are any. Unwritten requests of this
// instance are among them.
func (u *Usage) Sources(ctx context.Context, accountID, keyID uuid.UUID) ([]KeySource, error) {
	var all map[[2]string]KeySource
	err := u.keys.usage.Read(ctx, func(since usage.Mark) (certain bool, err error) {
		all, certain, err = u.readSources(ctx, accountID, keyID, since)
		return certain, err
	})
	if err != nil {
		return nil, value.Failed("read the sources of an API key", err)
	}
	add := func(added KeySource) { addSource(all, added) }
	listed := slices.SortedFunc(maps.Values(all), func(a, b KeySource) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), b.LastSeen.Compare(a.LastSeen), cmp.Compare(a.Address+a.Client, b.Address+b.Client))
	})
	listed = slices.DeleteFunc(listed, func(one KeySource) bool { return one.Requests == 0 || one.Client == "" })
	last := min(maxKeySources, len(listed))
	for _, one := range listed[last:] {
		one.Address, one.Client = "", ""
		add(one)
	}
	if others := all[[2]string{}]; others.Requests > 0 {
		return append(listed[:last:last], others), nil
	}
	return listed[:last], nil
}

// readSources returns the sources of a key by address and client, and whether that is certain.
func (u *Usage) readSources(ctx context.Context, accountID, keyID uuid.UUID, since usage.Mark) (all map[[2]string]KeySource, certain bool, err error) {
	first := SourceDays.Starts(u.keys.db.Now())[0]
	var rows []KeySource
	err = u.keys.db.NewSelect().TableExpr("api_keys AS api_key").
		Join("LEFT JOIN api_key_sources AS source ON source.api_key_id = api_key.id").
		Where("api_key.account_id = ? AND api_key.id = ?", accountID, keyID).
		ColumnExpr("COALESCE(source.address, '') AS address, COALESCE(source.client, '') AS client").
		ColumnExpr("min(source.first_seen) AS first_seen, max(source.last_seen) AS last_seen").
		ColumnExpr("COALESCE(sum(CASE WHEN source.day >= ? THEN source.requests END), 0) AS requests", first).
		GroupExpr("source.address, source.client").Scan(ctx, &rows)
	if err != nil || len(rows) == 0 { // another account's key
		return nil, true, err
	}
	all = map[[2]string]KeySource{}
	var lastSeen *time.Time
	for _, row := range rows {
		if row.LastSeen.IsZero() {
			continue
		}
		if addSource(all, row); lastSeen == nil || row.LastSeen.After(*lastSeen) {
			lastSeen = &row.LastSeen
		}
	}
	certain = u.keys.usage.UnwrittenSources(keyID, lastSeen, since, func(unwritten usage.SourceEntry) {
		if unwritten.LastUse().Before(first) {
			unwritten.Requests = 0
		}
		addSource(all, KeySource{Address: unwritten.Address(), Client: unwritten.Client(), FirstSeen: unwritten.FirstUse(), LastSeen: unwritten.LastUse(), Requests: unwritten.Requests})
	})
	return all, certain, nil
}

// addSource adds requests to those of their source.
func addSource(all map[[2]string]KeySource, added KeySource) {
	id := [2]string{added.Address, added.Client}
	if one, found := all[id]; found {
		added.Requests += one.Requests
		added.FirstSeen = slices.MinFunc([]time.Time{one.FirstSeen, added.FirstSeen}, time.Time.Compare)
		added.LastSeen = db.Later(one.LastSeen, added.LastSeen)
	}
	all[id] = added
}
