package usage

import (
	"cmp"
	"net/netip"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
)

// Source is where requests with a key come from: the network of the client's address and the
// client's name. The zero Source is all others, which are not counted by themselves.
type Source struct {
	network netip.Addr // the first address of the network; zero: unknown
	client  string
}

// Network returns the part of an address that identifies one client: the IPv4 address, or the /64
// network of an IPv6 address, because a client can use any address in it. The network of the zero
// address is zero.
func Network(address netip.Addr) netip.Prefix {
	address = address.Unmap().WithZone("")
	network, _ := address.Prefix(min(address.BitLen(), 64)) // the length is valid
	return network
}

const (
	// sourcesByKey is how many sources of a key are counted by themselves in a bucket, and by
	// the database on a day.
	sourcesByKey = 20
	// maxSources bounds the sources in open buckets, not counting the first of each key.
	// accountSources is the share of one account in a bucket.
	maxSources     = 1 << 18
	accountSources = 100 * sourcesByKey

	maxClient = 64 // in characters
	unknown   = "Unknown"
)

// NewSource returns the source of a request from a client in the [Network] of address; the zero
// address is unknown. The client is the first product of the User-Agent with its version, at most
// 64 characters.
func NewSource(address netip.Addr, userAgent string) Source {
	return Source{Network(address).Addr(), clientOf(userAgent)}
}

// clientOf returns the first product of a User-Agent, which usually needs no memory of its own.
func clientOf(userAgent string) string {
	userAgent = strings.TrimLeft(userAgent, " \t")
	for i := range len(userAgent) {
		switch b := userAgent[i]; {
		case b == ' ' || b == '\t' || b == '(':
			return cmp.Or(userAgent[:i], unknown)
		case b < ' ' || b > '~' || i == maxClient:
			return cleanClient(userAgent)
		}
	}
	return cmp.Or(userAgent, unknown)
}

// cleanClient is clientOf for a User-Agent that is long or has characters besides visible ASCII.
// Such characters must be valid and visible.
func cleanClient(userAgent string) string {
	client := make([]rune, 0, maxClient)
	for _, r := range userAgent {
		if r == ' ' || r == '\t' || r == '(' || len(client) == maxClient {
			break
		}
		if unicode.IsPrint(r) && r != unicode.ReplacementChar {
			client = append(client, r)
		}
	}
	return cmp.Or(string(client), unknown)
}

// Client returns the name of the client; empty for all others.
func (s Source) Client() string { return s.client }

// Address returns the address of the client or, for IPv6, its network; empty for all others.
func (s Source) Address() string {
	network := Network(s.network)
	switch {
	case s.client == "":
		return ""
	case !network.IsValid():
		return unknown
	case network.IsSingleIP():
		return s.network.String()
	}
	return network.String()
}

// SourceEntry is the requests with a key from one source in one hour.
type SourceEntry struct {
	Key uuid.UUID
	Source
	sourceCounts
}

// Day returns the start of the day (UTC). All requests of an entry are of one day.
func (c sourceCounts) Day() time.Time { return c.FirstUse().Truncate(24 * time.Hour) }

// FirstUse and LastUse return the times of the first and the last request.
func (c sourceCounts) FirstUse() time.Time { return time.UnixMicro(c.first).UTC() }

// LastUse is like FirstUse.
func (c sourceCounts) LastUse() time.Time { return time.UnixMicro(c.last).UTC() }

type sourceCounts struct {
	id          uint32 // of the source in the bucket
	Requests    int64
	first, last int64 // times in microseconds since 1970
}

// countSource counts requests with a key by source, before their time is added to n. As long as
// the key has one source, n has its counts, so that most keys need no more memory. The caller holds
// mu.
func (r *Recorder) countSource(b *bucket, account uuid.UUID, n *counts, from Source, requests, micros int64) {
	if n.uses > 0 && n.sources == 0 && b.sources[n.source] == from {
		n.uses, n.first = n.uses+requests, min(n.first, micros)
		return
	}
	id, found := b.ids[from]
	if n.uses == 0 {
		if !found && r.admitSource(b, account) {
			id = b.addSource(from)
		}
		n.source, n.uses, n.first = id, requests, micros
		return
	}
	if n.sources == 0 {
		b.byKey = append(b.byKey, []sourceCounts{{n.source, n.uses, n.first, n.Last}})
		b.lists++
		n.sources = b.lists
	}
	of := &b.byKey[n.sources-1]
	one := find(*of, id)
	if !found || one == nil {
		switch {
		case len(*of) >= sourcesByKey || !r.admitSource(b, account):
			id = 0
		case !found:
			id = b.addSource(from)
		}
		if one = find(*of, id); one == nil {
			*of = append(*of, sourceCounts{id: id, first: micros, last: micros})
			one = &(*of)[len(*of)-1]
		}
	}
	one.Requests += requests
	one.first, one.last = min(one.first, micros), max(one.last, micros)
}

func find(sources []sourceCounts, id uint32) *sourceCounts {
	for i := range sources {
		if sources[i].id == id {
			return &sources[i]
		}
	}
	return nil
}

// admitSource reports whether one more source of an account may wait for a flush, and counts it.
func (r *Recorder) admitSource(b *bucket, account uuid.UUID) bool {
	if r.sources >= maxSources || b.sourcesOf[account] >= accountSources {
		return false
	}
	r.sources++
	b.sourcesOf[account]++
	return true
}

// addSource returns the id of a new source.
func (b *bucket) addSource(s Source) uint32 {
	// The client is a part of a header, which must not stay in memory.
	s.client = strings.Clone(s.client)
	b.lastID++
	b.ids[s], b.sources = b.lastID, append(b.sources, s)
	return b.lastID
}

// entriesBySource returns the entries of these keys by source.
func (b *bucket) entriesBySource(entries []Entry) []SourceEntry {
	sources := make([]SourceEntry, 0, len(entries))
	for _, entry := range entries {
		b.eachSource(entry.counts, func(one sourceCounts) {
			sources = append(sources, SourceEntry{Key: entry.Key, Source: b.sources[one.id], sourceCounts: one})
		})
	}
	return sources
}

// eachSource calls visit with the counts of a key by source.
func (b *bucket) eachSource(n counts, visit func(sourceCounts)) {
	switch {
	case n.sources > 0:
		for _, one := range b.byKey[n.sources-1] {
			visit(one)
		}
	case n.uses > 0:
		visit(sourceCounts{id: n.source, Requests: n.uses, first: n.first, last: n.Last})
	}
}

// UnwrittenSources is [Recorder.Unwritten] for the key's counts by source. The report has read the
// last of the stored times at which a source was seen.
func (r *Recorder) UnwrittenSources(key uuid.UUID, stored *time.Time, since Mark, visit func(SourceEntry)) (certain bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, held := range r.rests.held[key] {
		visit(held)
	}
	return r.unwritten(key, stored, since, (*counts).bySource, func(b *bucket, n counts) {
		b.eachSource(n, func(one sourceCounts) { visit(SourceEntry{Key: key, Source: b.sources[one.id], sourceCounts: one}) })
	})
}
