package keys

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/value"
)

// Exchanges returns the last exchanges of one of the account's keys, at most [MaxExchanges], the
// latest first.
func (w *Workload) Exchanges(ctx context.Context, accountID, keyID uuid.UUID) ([]Exchange, error) {
	found := []Exchange{}
	err := w.keys.db.NewSelect().Model(&found).
		Join("JOIN api_keys AS api_key ON api_key.id = exchange.api_key_id AND api_key.account_id = ?", accountID).
		Where("exchange.api_key_id = ?", keyID).OrderExpr("exchange.id DESC").Limit(MaxExchanges).Scan(ctx)
	return found, value.Failed("list exchanges", err)
}

// WorkloadKey returns the active key without a secret that has this id. If there is none, or its
// account is disabled, the error is [value.ErrKeyUnknown].
func (a *API) WorkloadKey(ctx context.Context, id uuid.UUID) (key Key, err error) {
	query := a.db.API.NewSelect().Model(&key).Join("JOIN accounts AS a ON a.id = api_key.account_id AND a.disabled_at IS NULL").
		Where("api_key.id = ? AND api_key.credential = ?", id, CredentialWorkload).
		Where("api_key.revoked_at IS NULL AND (api_key.expires_at IS NULL OR api_key.expires_at > ?)", a.db.ClockExpr())
	if err := a.db.OnPrimary(query).Scan(ctx); err != nil {
		return Key{}, value.NotFound("find the API key of a workload", err, value.ErrKeyUnknown)
	}
	return key, nil
}

// WorkloadToken is a token whose issuer and signature are right.
type WorkloadToken struct {
	// Of a token that is accepted once; otherwise empty.
	Issuer, ID string
	ExpiresAt  time.Time                           // of the token
	Pins       map[string]string                   // what a first exchange pins; nil: nothing
	Check      func(pins map[string]string) string // returns why the pins do not fit, or ""
	Address    string                              // of the client
}

// Exchange records the exchange of a token for an access token of the key, pins the claims of a
// first one, and remembers a token that is accepted once. It returns why the token is refused, or
// "". A refused token stays unused. If the key has ended or its rule has changed since it was read,
// the error is [value.ErrKeyUnknown].
func (a *API) Exchange(ctx context.Context, key Key, t WorkloadToken) (reason string, err error) {
	err = a.db.InTx(ctx, "exchange a token", func(ctx context.Context, tx db.Tx) error {
		if err := tx.LockAccountsTable(ctx, key.AccountID); err != nil {
			return err
		}
		var current Key
		query := tx.NewSelect().Model(&current).Column("trust_pins").
			Where("id = ? AND trust_version = ? AND revoked_at IS NULL", key.ID, key.TrustVersion)
		err := a.db.Locked(query, "NO KEY UPDATE").Scan(ctx)
		if err != nil {
			return value.NotFound("lock the API key of a workload", err, value.ErrKeyUnknown)
		}
		if reason = t.Check(current.TrustPins); reason == "" {
			reason, err = t.use(ctx, tx, key)
		}
		first := current.TrustPins == nil && t.Pins != nil
		if err == nil && reason == "" && first {
			err = tx.Update(ctx, &Key{ID: key.ID, TrustPins: t.Pins}, "trust_pins")
		}
		if err != nil {
			return err
		}
		return recordExchange(ctx, tx, Exchange{KeyID: key.ID, Reason: reason, Address: t.Address})
	})
	return reason, err
}

// UsedBefore reports whether a token for the key that is accepted once was used. [API.Exchange]
// checks it again.
func (a *API) UsedBefore(ctx context.Context, key Key, t WorkloadToken) (used bool, err error) {
	if t.ID == "" {
		return false, nil
	}
	used, err = a.db.OnPrimary(a.db.API.NewSelect().Model((*usedToken)(nil)).Where("token_hash = ?", t.hash(key))).Exists(ctx)
	return used, value.Failed("look up a used token", err)
}

// hash returns the hash of a token for the key that is accepted once. If the public keys of its
// issuer were pasted, it depends on the account, because each account can paste others and sign
// what it likes.
func (t WorkloadToken) hash(key Key) []byte {
	name := t.Issuer + "\x00" + t.ID
	if len(key.Trust.JWKS) > 0 {
		name = key.AccountID.String() + "\x00" + name
	}
	hash := sha256.Sum256([]byte(name))
	return hash[:]
}

// use remembers a token for the key that is accepted once, and returns a reason if it was used
// before.
func (t WorkloadToken) use(ctx context.Context, tx db.Tx, key Key) (reason string, err error) {
	if t.ID == "" {
		return "", nil
	}
	n, err := value.Affected(tx.NewInsert().Model(&usedToken{TokenHash: t.hash(key), ExpiresAt: t.ExpiresAt}).On("CONFLICT DO NOTHING").Exec(ctx))
	if err == nil && n == 0 {
		reason = "the token was used before"
	}
	return reason, err
}

// usedToken is a token that was accepted once.
type usedToken struct {
	bun.BaseModel `bun:"table:used_tokens"`

	TokenHash []byte `bun:",pk"`
	ExpiresAt time.Time
}

// recordExchange adds an exchange to those of its key and deletes the oldest ones beyond the limit,
// in a transaction that has locked the key.
func recordExchange(ctx context.Context, tx db.Tx, e Exchange) error {
	e.ID, e.At = value.NewID(), tx.Now()
	if err := tx.Insert(ctx, &e); err != nil {
		return err
	}
	kept := tx.NewSelect().Model((*Exchange)(nil)).Column("id").Where("api_key_id = ?", e.KeyID).OrderExpr("id DESC").Limit(MaxExchanges)
	return tx.Delete(ctx, (*Exchange)(nil), "api_key_id = ? AND id NOT IN (?)", e.KeyID, kept)
}
