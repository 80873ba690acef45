package keys

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"

	"portal/models/value"
)

// NoteRefusal keeps a refused request of the principal, which need not be accepted but must have a
// key, for the key's page.
func (a *API) NoteRefusal(p Principal, refused Refusal) {
	if p.KeyID == uuid.Nil {
		return
	}
	a.refusals.add(p.AccountID, KeyRefusal{
		KeyID: p.KeyID, ID: value.NewID(), At: a.db.Now(), Reason: refused.Reason, Route: strings.Clone(refused.Route),
		Address: refused.From.Address(), Client: strings.Clone(refused.From.Client()), RequestID: refused.RequestID,
	})
}

// Refusals returns the last refused requests of one of the account's keys, the newest first: at
// most 50 of the last 7 days, with the unwritten ones of this instance.
func (u *Usage) Refusals(ctx context.Context, accountID, keyID uuid.UUID) ([]KeyRefusal, error) {
	// Before the statement, so that none is missed that is written meanwhile.
	unwritten, since := u.keys.refusals.of(accountID, keyID), u.keys.db.Now().Add(-KeyRefusalsKept)
	found := []KeyRefusal{}
	err := u.keys.db.NewSelect().Model(&found).
		Join("JOIN api_keys AS api_key ON api_key.id = refusal.api_key_id").
		Where("api_key.account_id = ? AND api_key.id = ? AND refusal.at > ?", accountID, keyID, since).
		OrderExpr("refusal.at DESC, refusal.id DESC").Limit(MaxKeyRefusals).Scan(ctx)
	if err != nil {
		return nil, value.Failed("list the refused requests of an API key", err)
	}
	found = append(found, unwritten...)
	slices.SortFunc(found, KeyRefusal.compare)
	found = slices.CompactFunc(found, func(a, b KeyRefusal) bool { return a.ID == b.ID })
	return found[:min(len(found), MaxKeyRefusals)], nil
}

// FlushRefusals writes the refused requests that wait.
func (u *Usage) FlushRefusals(ctx context.Context) error { return u.keys.refusals.flush(ctx) }
