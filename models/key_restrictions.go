package models

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// The limits of the restrictions of a key.
const (
	MaxKeyAgents   = 100
	maxKeyNetworks = 20
	maxNoteLength  = 500 // in Unicode code points; of reasons too
)

// Restrictions are what a key cannot do. The zero value means no restrictions.
type Restrictions struct {
	ExpiresAt *time.Time     // the key is refused from then on; nil: never
	Agents    []uuid.UUID    // the agents that the key reaches; nil: all of the account
	Networks  []netip.Prefix // the networks that the key is accepted from; nil: any
}

// Restrictions returns the restrictions of the key.
func (k Key) Restrictions() Restrictions { return Restrictions{k.ExpiresAt, k.Agents, k.Networks} }

// Expired reports whether the key has expired and was not revoked before.
func (k Key) Expired(now time.Time) bool {
	return k.RevokedAt == nil && k.ExpiresAt != nil && !now.Before(*k.ExpiresAt)
}

// EndedAt returns when the key was revoked or, if it was not, when it expired. While the key is
// active, it returns nil.
func (k Key) EndedAt(now time.Time) *time.Time {
	if k.Expired(now) {
		return k.ExpiresAt
	}
	return k.RevokedAt
}

// reaches reports whether calls to an agent may go on: the key is active and its list has the
// agent.
func (k Key) reaches(agentID uuid.UUID, now time.Time) bool {
	return k.EndedAt(now) == nil && (k.Agents == nil || slices.Contains(k.Agents, agentID))
}

// whereActive selects the keys that are neither revoked nor expired.
func (k *Keys) whereActive(q *bun.SelectQuery) *bun.SelectQuery {
	return q.Where("api_key.revoked_at IS NULL AND (api_key.expires_at IS NULL OR api_key.expires_at > ?)", k.db.Now())
}

// ParseNetworks returns the networks with these texts, such as 192.0.2.0/24 or 2001:db8::1, without
// repetitions. Empty texts are ignored. The error may be an [*InvalidError] for the field
// "networks".
func ParseNetworks(texts []string) ([]netip.Prefix, error) {
	networks := []netip.Prefix{}
	for _, text := range texts {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		network, err := parseNetwork(text)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(networks, network) {
			networks = append(networks, network)
		}
	}
	if len(networks) == 0 || len(networks) > maxKeyNetworks {
		return nil, invalidNetworks(fmt.Sprintf("Enter 1 to %d networks. You entered %d.", maxKeyNetworks, len(networks)))
	}
	return networks, nil
}

// parseNetwork returns the network with this text. An address is the network of this address alone,
// and an IPv4 address in IPv6 notation is IPv4.
func parseNetwork(text string) (netip.Prefix, error) {
	wrong := invalidNetworks(fmt.Sprintf("%q is not an IP address or network, such as 192.0.2.0/24 or 2001:db8::1.", shorten(text)))
	network, err := netip.ParsePrefix(text)
	if err != nil {
		address, err := netip.ParseAddr(text)
		if err != nil || address.Zone() != "" {
			return netip.Prefix{}, wrong
		}
		network = netip.PrefixFrom(address, address.BitLen())
	}
	if network.Addr().Is4In6() {
		if network.Bits() < 96 {
			return netip.Prefix{}, wrong
		}
		network = netip.PrefixFrom(network.Addr().Unmap(), network.Bits()-96)
	}
	if network != network.Masked() {
		return netip.Prefix{}, invalidNetworks(fmt.Sprintf("%s has bits after its length of %d. Enter %s.",
			network, network.Bits(), network.Masked()))
	}
	return network, nil
}

func invalidNetworks(message string) error { return &InvalidError{"networks", message} }

// shorten returns the start of an input for a message.
func shorten(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), 64)], "")
}

// cleanNote trims a note or a reason. If the text is too long or has invisible characters other
// than line breaks, it returns an [*InvalidError].
func cleanNote(field, title, text string) (string, error) {
	text = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
	switch length := utf8.RuneCountInString(text); {
	case text == "":
		return "", nil
	case length > maxNoteLength:
		return "", &InvalidError{field, fmt.Sprintf("%s must be at most %d characters long. You entered %d.", title, maxNoteLength, length)}
	case !utf8.ValidString(text) || !readable(strings.ReplaceAll(text, "\n", " ")):
		return "", &InvalidError{field, title + " must not contain control characters or invisible characters."}
	}
	return text, nil
}

// Restrict gives one of the account's active keys other restrictions and another note, and records
// the old and new values unless nothing changes. After it returns the changed key, every instance
// refuses what the key cannot do any more.
//
// The error may be an [*InvalidError] for the field "expires", "agents", "networks" or "note", or
// several joined, [ErrKeyNotFound], or [ErrKeyAlreadyRevoked] with the unchanged key.
func (k *Keys) Restrict(ctx context.Context, accountID, id uuid.UUID, r Restrictions, note string, actor Actor) (Key, error) {
	note, invalidNote := cleanNote("note", "Note", note)
	return k.change(ctx, accountID, id, Tx.lockAccount, Tx.hasEnded, func(ctx context.Context, tx Tx, key *Key) error {
		old := *key
		if err := errors.Join(k.restrict(ctx, tx, key, r), invalidNote); err != nil {
			return err
		}
		key.Note = note
		detail, err := describeChange(ctx, tx, &old, key)
		if err != nil || detail == "" {
			return err
		}
		if err := tx.Update(ctx, key, "expires_at", "lifetime", "expiry_warned_at", "agents", "networks", "note"); err != nil {
			return err
		}
		activity := Activity{
			ID: newID(), AccountID: accountID, Action: ActionKeyRestricted, SubjectID: &id, Label: key.Label, Detail: detail,
		}
		if err := tx.RecordActivity(ctx, actor, activity); err != nil {
			return err
		}
		if !slices.Equal(old.Agents, key.Agents) {
			if err := tx.hangUp(ctx, activity.ID, id, tx.Now()); err != nil {
				return err
			}
		}
		return scheduleExpiry(ctx, tx, old, *key)
	})
}

// restrict validates restrictions and sets those that differ from the key's, in a transaction that
// has locked the account. It joins the errors of the restrictions.
func (k *Keys) restrict(ctx context.Context, tx Tx, key *Key, r Restrictions) error {
	var invalid error
	if !sameTime(r.ExpiresAt, key.ExpiresAt) {
		invalid = k.setExpiry(ctx, tx, key, r.ExpiresAt)
	}
	if agents := sortedIDs(r.Agents); (agents == nil) != (key.Agents == nil) || !slices.Equal(agents, key.Agents) {
		invalid = errors.Join(invalid, checkKeyAgents(ctx, tx, key.AccountID, agents))
		key.Agents = agents
	}
	if r.Networks != nil {
		texts := make([]string, len(r.Networks))
		for i, network := range r.Networks {
			texts[i] = network.String()
		}
		var err error
		r.Networks, err = ParseNetworks(texts)
		invalid = errors.Join(invalid, err)
	}
	key.Networks = r.Networks
	return invalid
}

// setExpiry sets a new expiry. A key without one keeps working when a maximum is set, but cannot
// lose an expiry.
func (k *Keys) setExpiry(ctx context.Context, tx Tx, key *Key, expiresAt *time.Time) error {
	key.ExpiryWarnedAt = nil
	if expiresAt == nil {
		if k.maxLifetime > 0 {
			return &InvalidError{"expires", "Choose when the key expires. This portal allows at most " + WholeDays(k.maxLifetime) + "."}
		}
		key.ExpiresAt, key.Lifetime = nil, 0
		return nil
	}
	now, err := tx.laterNow(ctx)
	if err != nil {
		return err
	}
	at := expiresAt.UTC().Truncate(time.Microsecond)
	if !at.After(now) {
		return &InvalidError{"expires", "Choose a date in the future."}
	}
	lifetime := at.Sub(tx.Now())
	if k.maxLifetime > 0 && lifetime > k.maxLifetime {
		return &InvalidError{"expires", "The key must expire within " + WholeDays(k.maxLifetime) + "."}
	}
	key.ExpiresAt, key.Lifetime = &at, max(1, lifetime)
	return nil
}

// RenewedExpiry returns when a key expires that replaces another one now; nil: never.
func (k *Keys) RenewedExpiry(replaced Key, now time.Time) *time.Time {
	lifetime := replaced.Lifetime
	if k.maxLifetime > 0 && (lifetime == 0 || lifetime > k.maxLifetime) {
		lifetime = k.maxLifetime
	}
	if lifetime == 0 {
		return nil
	}
	at := now.Add(lifetime)
	return &at
}

// MaxLifetime returns the longest time until a new key expires; 0 if keys need no expiry.
func (k *Keys) MaxLifetime() time.Duration { return k.maxLifetime }

// WholeDays returns a duration in days or, if it is not whole days, in hours.
func WholeDays(d time.Duration) string {
	n, unit := int64(d/time.Hour), "hour"
	if d%Day == 0 {
		n, unit = int64(d/Day), "day"
	}
	if n != 1 {
		unit += "s"
	}
	return fmt.Sprintf("%d %s", n, unit)
}

// checkKeyAgents returns an [*InvalidError] unless these are 1 to 100 agents of the account, or
// nil.
func checkKeyAgents(ctx context.Context, tx Tx, accountID uuid.UUID, agents []uuid.UUID) error {
	switch {
	case agents == nil:
		return nil
	case len(agents) == 0:
		return &InvalidError{"agents", "Choose at least one agent, or all agents."}
	case len(agents) > MaxKeyAgents:
		return &InvalidError{"agents", fmt.Sprintf("Choose at most %d agents. You chose %d.", MaxKeyAgents, len(agents))}
	}
	found, err := tx.NewSelect().Model((*Agent)(nil)).
		Where("account_id = ? AND id IN (?)", accountID, bun.List(agents)).Count(ctx)
	if err == nil && int(found) < len(agents) {
		err = &InvalidError{"agents", "One of these agents was removed. Choose again."}
	}
	return err
}

// dropFromKeys removes an agent from the lists of the account's keys, in a transaction that has
// locked the account.
func dropFromKeys(ctx context.Context, tx Tx, accountID, agentID uuid.UUID) error {
	var keys []Key
	err := tx.NewSelect().Model(&keys).
		Where("account_id = ? AND agents LIKE ?", accountID, "%"+agentID.String()+"%").Scan(ctx)
	for i := 0; i < len(keys) && err == nil; i++ {
		keys[i].Agents = slices.DeleteFunc(keys[i].Agents, func(id uuid.UUID) bool { return id == agentID })
		err = tx.Update(ctx, &keys[i], "agents")
	}
	return err
}

// describeChange returns the old and new values of what differs between two versions of a key, in
// one line for each. If the key is new, old is nil.
func describeChange(ctx context.Context, tx Tx, old, key *Key) (string, error) {
	created := old == nil
	if created {
		old = &Key{}
	}
	names, err := agentNames(ctx, tx, key.AccountID, slices.Concat(old.Agents, key.Agents))
	if err != nil {
		return "", err
	}
	agent := func(id uuid.UUID) string { return names[id] + " (" + id.String() + ")" }
	var lines []string
	for _, value := range []struct{ name, old, new string }{
		{"Expires", expiryText(old.ExpiresAt), expiryText(key.ExpiresAt)},
		{"Agents", listText(old.Agents, "all", agent), listText(key.Agents, "all", agent)},
		{"Networks", listText(old.Networks, "any", netip.Prefix.String), listText(key.Networks, "any", netip.Prefix.String)},
		{"Note", quoted(old.Note), quoted(key.Note)},
	} {
		switch {
		case value.old == value.new:
		case created:
			lines = append(lines, value.name+": "+value.new)
		default:
			lines = append(lines, value.name+": "+value.old+" → "+value.new)
		}
	}
	return strings.Join(lines, "\n"), nil
}

func agentNames(ctx context.Context, tx Tx, accountID uuid.UUID, ids []uuid.UUID) (map[uuid.UUID]string, error) {
	names := map[uuid.UUID]string{}
	if len(ids) == 0 {
		return names, nil
	}
	var agents []Agent
	err := tx.NewSelect().Model(&agents).Column("id", "name").
		Where("account_id = ? AND id IN (?)", accountID, bun.List(ids)).Scan(ctx)
	for _, agent := range agents {
		names[agent.ID] = agent.Name
	}
	return names, err
}

// expiryText returns when a key expires. What ends at midnight is valid until the end of a day.
func expiryText(at *time.Time) string {
	if at == nil {
		return "never"
	}
	if end := at.UTC(); end.Equal(end.Truncate(Day)) {
		return end.AddDate(0, 0, -1).Format("2 Jan 2006, end of day UTC")
	}
	return at.UTC().Format("2 Jan 2006, 15:04:05 UTC")
}

// listText returns the items of a list, or the text for a list that is not set.
func listText[T any](items []T, notSet string, text func(T) string) string {
	switch {
	case items == nil:
		return notSet
	case len(items) == 0:
		return "none"
	}
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = text(item)
	}
	return strings.Join(texts, ", ")
}

func quoted(note string) string {
	if note == "" {
		return "none"
	}
	return fmt.Sprintf("%q", note)
}

func sortedIDs(ids []uuid.UUID) []uuid.UUID {
	if ids == nil {
		return nil
	}
	sorted := append([]uuid.UUID{}, ids...)
	slices.SortFunc(sorted, compareIDs)
	return slices.Compact(sorted)
}

func compareIDs(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }

func sameTime(a, b *time.Time) bool {
	return a == b || a != nil && b != nil && a.Equal(*b)
}

// scheduleExpiry queues the end of the calls of a key for the time when it expires. Because there
// is no activity, the entry has the id of the key in its place.
func scheduleExpiry(ctx context.Context, tx Tx, old, key Key) error {
	if sameTime(old.ExpiresAt, key.ExpiresAt) {
		return nil
	}
	err := tx.Delete(ctx, (*hangUp)(nil), "activity_id = ?", key.ID)
	if err != nil || key.ExpiresAt == nil {
		return err
	}
	return tx.hangUp(ctx, key.ID, key.ID, *key.ExpiresAt)
}

// KeyExpiredError is [ErrKeyExpired], the reason to refuse an expired key.
type KeyExpiredError struct{ At time.Time }

// Is implements the interface of [errors.Is].
func (e *KeyExpiredError) Is(target error) bool { return target == ErrKeyExpired }

func (e *KeyExpiredError) Error() string {
	return "the API key expired at " + e.At.UTC().Format(time.RFC3339)
}

// Reasons to refuse a key because of its restrictions.
var (
	ErrKeyExpired        = errors.New("the API key has expired")
	ErrAgentNotAllowed   = errors.New("the agent is not one of the agents of the API key")
	ErrAddressNotAllowed = errors.New("the address is in none of the networks of the API key")
)
