package calls

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/value"
)

// callAccess is what decides whether calls may go on, as it is now.
type callAccess struct {
	keys   map[uuid.UUID]callKey
	agents map[uuid.UUID]callAgent
}

// callKey is a key with its account.
type callKey struct {
	bun.BaseModel `bun:"table:api_keys,alias:api_key"`

	ID              uuid.UUID
	AccountID       uuid.UUID
	Label           string
	RevokedAt       *time.Time
	Expired         bool         `bun:",scanonly"` // by the clock of the database
	Agents          []uuid.UUID  `bun:",nullzero"`
	Limits          value.Limits `bun:",nullzero"`
	AccountName     string       `bun:",scanonly"`
	AccountDisabled bool         `bun:",scanonly"`
	AccountLimits   value.Limits `bun:",scanonly"`
}

// callAgent is an agent with what decides about its calls.
type callAgent struct {
	bun.BaseModel `bun:"table:agents"`

	ID        uuid.UUID
	AccountID uuid.UUID
	PausedAt  *time.Time
}

func (k callKey) limited() bool { return !k.Limits.IsZero() || !k.AccountLimits.IsZero() }

// readCallAccess reads keys and agents by their primary keys.
func readCallAccess(ctx context.Context, db bun.IDB, d *db.DB, keys, agents []uuid.UUID) (callAccess, error) {
	access := callAccess{keys: map[uuid.UUID]callKey{}, agents: map[uuid.UUID]callAgent{}}
	for batch := range slices.Chunk(keys, value.MaintenanceBatch) {
		var found []callKey
		err := db.NewSelect().Model(&found).
			Column("api_key.id", "api_key.account_id", "api_key.label", "api_key.revoked_at", "api_key.agents", "api_key.limits").
			ColumnExpr("(api_key.expires_at IS NOT NULL AND api_key.expires_at <= ?) AS expired", d.ClockExpr()).
			ColumnExpr("a.name AS account_name, a.disabled_at IS NOT NULL AS account_disabled, a.limits AS account_limits").
			Join("JOIN accounts AS a ON a.id = api_key.account_id").
			Where("api_key.id IN (?)", bun.List(batch)).Scan(ctx)
		if err != nil {
			return access, err
		}
		for _, key := range found {
			access.keys[key.ID] = key
		}
	}
	for batch := range slices.Chunk(agents, value.MaintenanceBatch) {
		var found []callAgent
		err := db.NewSelect().Model(&found).Column("id", "account_id", "paused_at").Where("id IN (?)", bun.List(batch)).Scan(ctx)
		if err != nil {
			return access, err
		}
		for _, agent := range found {
			access.agents[agent.ID] = agent
		}
	}
	return access, nil
}

// denies returns why a call of a known key may not go on, or "".
func (a callAccess) denies(call *Call) EndReason {
	key := a.keys[call.KeyID]
	agent, exists := a.agents[call.AgentID]
	switch {
	case key.AccountDisabled:
		return EndAccountDisabled
	case key.RevokedAt != nil:
		return EndKeyRevoked
	case key.Expired:
		return EndKeyExpired
	case !exists || agent.AccountID != key.AccountID:
		return EndAgentRemoved
	case agent.PausedAt != nil:
		return EndAgentPaused
	case key.Agents != nil && !slices.Contains(key.Agents, call.AgentID):
		return EndKeyRestricted
	default:
		return ""
	}
}
