package keys

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/record"
	"portal/models/value"
)

// Restrict gives one of the account's active keys other restrictions and another note, and records
// the old and new values unless nothing changes. After it returns the changed key, every instance
// refuses what the key cannot do any more.
//
// The change was made from a version of the key, see [Key.RestrictionsVersion]; "" is any version.
// If the key has another version and differs from the change, the error is [value.ErrKeyRestricted]
// with the unchanged key.
//
// The error may also be an [*value.InvalidError] for the field "expires", "agents", "networks" or
// "note", those of [value.CheckLimits], or several joined, [value.ErrKeyNotFound], or
// [value.ErrKeyAlreadyRevoked] with the unchanged key.
func (k *Keys) Restrict(ctx context.Context, accountID, id uuid.UUID, version string, r Restrictions, note string, actor record.Actor) (Key, error) {
	note, invalidNote := value.CleanNote("note", "Note", note)
	return db.InTx(ctx, k.db, "restrict API key", func(ctx context.Context, tx db.Tx) (Key, error) {
		if err := tx.LockAccount(ctx, accountID); err != nil {
			return Key{}, err
		}
		key, err := k.lockActive(ctx, tx, accountID, id)
		if err != nil {
			return key, err
		}
		old := key
		stale := version != "" && version != old.RestrictionsVersion()
		if stale && closeTo(r.ExpiresAt, old.ExpiresAt) {
			// A double click on "30 days" is no other change.
			r.ExpiresAt = old.ExpiresAt
		}
		if err := errors.Join(k.setRestrictions(ctx, tx, &key, r), invalidNote); err != nil {
			return Key{}, err
		}
		key.Note = note
		if stale {
			detail, err := describeChange(ctx, tx, &old, &key)
			if err != nil || detail == "" {
				return key, err
			}
			// The caller gets the key too.
			return old, db.Committed(value.ErrKeyRestricted)
		}
		return saveRestrictions(ctx, tx, old, key, actor)
	})
}

// CheckRestrictions returns the error that restrictions of a key would have, and changes nothing. A
// key without an id is a new one.
func (k *Keys) CheckRestrictions(ctx context.Context, key Key, r Restrictions) error {
	return k.db.InTx(ctx, "check restrictions", func(ctx context.Context, tx db.Tx) error {
		return k.setRestrictions(ctx, tx, &key, r)
	})
}

// saveRestrictions writes the restrictions and the note of a key and records the old and new
// values, unless nothing has changed.
func saveRestrictions(ctx context.Context, tx db.Tx, old, key Key, actor record.Actor) (Key, error) {
	detail, err := describeChange(ctx, tx, &old, &key)
	if err != nil || detail == "" {
		return key, err
	}
	if err := tx.Update(ctx, &key, "expires_at", "lifetime", "expiry_warned_at", "expiry_recorded", "agents", "networks", "limits", "note"); err != nil {
		return Key{}, err
	}
	return key, record.Add(ctx, tx, actor, record.Activity{
		AccountID: key.AccountID, Action: record.ActionKeyRestricted, SubjectID: &key.ID, Label: key.Label, Detail: detail,
	})
}

// setRestrictions validates restrictions and sets those that differ from the key's, in a
// transaction that has locked the account. It joins the errors of the restrictions.
func (k *Keys) setRestrictions(ctx context.Context, tx db.Tx, key *Key, r Restrictions) error {
	var invalid error
	if !sameTime(r.ExpiresAt, key.ExpiresAt) {
		invalid = k.setExpiry(ctx, tx, key, r.ExpiresAt)
	}
	if agents := value.SortedIDs(r.Agents); (agents == nil) != (key.Agents == nil) || !slices.Equal(agents, key.Agents) {
		invalid = errors.Join(invalid, checkKeyAgents(ctx, tx, key.AccountID, agents))
		key.Agents = agents
	}
	if r.Networks != nil {
		texts := make([]string, len(r.Networks))
		for i, network := range r.Networks {
			texts[i] = network.String()
		}
		var err error
		r.Networks, err = value.ParseNetworks(texts)
		invalid = errors.Join(invalid, err)
	}
	key.Networks, key.Limits = r.Networks, r.Limits
	if key.OnlyReports() && (r.Agents != nil || !r.Limits.IsZero()) {
		invalid = errors.Join(invalid, &value.InvalidError{Field: "agents", Message: "A reports key reaches no agents. Remove the agents and limits."})
	}
	return errors.Join(invalid, value.CheckLimits(r.Limits))
}

// setExpiry sets a new expiry. A key without one keeps working when a maximum is set, but cannot
// lose an expiry.
func (k *Keys) setExpiry(ctx context.Context, tx db.Tx, key *Key, expiresAt *time.Time) error {
	key.ExpiryWarnedAt, key.ExpiryRecorded = nil, ExpiryUnrecorded
	if expiresAt == nil {
		if k.maxLifetime > 0 {
			return &value.InvalidError{Field: "expires", Message: "Choose when the key expires. This portal allows at most " + value.WholeDays(k.maxLifetime) + "."}
		}
		key.ExpiresAt, key.Lifetime = nil, 0
		return nil
	}
	now, err := tx.DatabaseNow(ctx)
	if err != nil {
		return err
	}
	at := expiresAt.UTC().Truncate(time.Microsecond)
	if !at.After(now) {
		return &value.InvalidError{Field: "expires", Message: "Choose a date in the future."}
	}
	lifetime := at.Sub(tx.Now())
	if k.maxLifetime > 0 && lifetime > k.maxLifetime {
		return &value.InvalidError{Field: "expires", Message: "The key must expire within " + value.WholeDays(k.maxLifetime) + "."}
	}
	key.ExpiresAt, key.Lifetime = &at, max(1, lifetime)
	return nil
}

// checkKeyAgents returns an [*value.InvalidError] unless these are 1 to 100 agents of the account,
// or nil.
func checkKeyAgents(ctx context.Context, tx db.Tx, accountID uuid.UUID, agents []uuid.UUID) error {
	switch {
	case agents == nil:
		return nil
	case len(agents) == 0:
		return &value.InvalidError{Field: "agents", Message: "Choose at least one agent, or all agents."}
	case len(agents) > value.MaxKeyAgents:
		return &value.InvalidError{Field: "agents", Message: fmt.Sprintf("Choose at most %d agents. You chose %d.", value.MaxKeyAgents, len(agents))}
	}
	found, err := tx.NewSelect().Table("agents").
		Where("account_id = ? AND id IN (?)", accountID, bun.List(agents)).Count(ctx)
	if err == nil && int(found) < len(agents) {
		err = &value.InvalidError{Field: "agents", Message: "One of these agents was removed. Choose again."}
	}
	return err
}

// DropFromKeys removes an agent from the lists of the account's keys, in a transaction that has
// locked the account.
func DropFromKeys(ctx context.Context, tx db.Tx, accountID, agentID uuid.UUID) error {
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
func describeChange(ctx context.Context, tx db.Tx, old, key *Key) (string, error) {
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
		{"Access", accessText(old.Access), accessText(key.Access)},
		{"Expires", expiryText(old.ExpiresAt), expiryText(key.ExpiresAt)},
		{"Agents", listText(old.Agents, "all", agent), listText(key.Agents, "all", agent)},
		{"Networks", listText(old.Networks, "any", netip.Prefix.String), listText(key.Networks, "any", netip.Prefix.String)},
		{"Limits", old.Limits.String(), key.Limits.String()},
		{"Credential", credentialText(old.Credential), credentialText(key.Credential)},
		{"Trust rule", trustText(old.Trust), trustText(key.Trust)},
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

func agentNames(ctx context.Context, tx db.Tx, accountID uuid.UUID, ids []uuid.UUID) (map[uuid.UUID]string, error) {
	names := map[uuid.UUID]string{}
	if len(ids) == 0 {
		return names, nil
	}
	var agents []struct {
		ID   uuid.UUID
		Name string
	}
	err := tx.NewSelect().Table("agents").Column("id", "name").
		Where("account_id = ? AND id IN (?)", accountID, bun.List(ids)).Scan(ctx, &agents)
	for _, agent := range agents {
		names[agent.ID] = agent.Name
	}
	return names, err
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

func credentialText(credential Credential) string {
	if credential == CredentialWorkload {
		return "workload identity"
	}
	return "secret key"
}

func accessText(access Access) string {
	if access == AccessReports {
		return "reports only"
	}
	return "agents and tokens"
}

// quoted returns a note in quotes and on one line, so that it cannot look like another change.
func quoted(note string) string {
	if note == "" {
		return "none"
	}
	text := strconv.Quote(note)
	return "“" + text[1:len(text)-1] + "”"
}

func sameTime(a, b *time.Time) bool {
	return a == b || a != nil && b != nil && a.Equal(*b)
}

// closeTo reports whether two times are less than a minute apart.
func closeTo(a, b *time.Time) bool { return a != nil && b != nil && a.Sub(*b).Abs() < time.Minute }
