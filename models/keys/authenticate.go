package keys

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"

	"portal/models/authn"
	"portal/models/calls"
	"portal/models/internal/db"
	"portal/models/value"
	"portal/models/widget"
)

// Stats returns the state of the authenticator.
func (a *API) Stats() authn.Stats { return a.authn.Stats() }

// Close ends the connections of the authenticator.
func (a *API) Close() error { return a.authn.Close() }

// Principal is the account and the key of an authenticated API request.
type Principal struct {
	AccountID uuid.UUID
	KeyID     uuid.UUID

	epoch        authn.Epoch         // the epoch at which the key was active
	restrictions *authn.Restrictions // of the key; nil: none
	waited       time.Duration
	usedAt       time.Time // when the request was counted; zero for one with a widget token
}

// ExpiresAt returns when the key expires; zero: never.
func (p Principal) ExpiresAt() time.Time {
	if p.restrictions == nil {
		return time.Time{}
	}
	return p.restrictions.ExpiresAt
}

// AllowsAddress reports whether the key is accepted from a client's address. If the address is
// unknown, it is the zero address, which is in no network.
func (p Principal) AllowsAddress(address netip.Addr) bool {
	if p.restrictions == nil || p.restrictions.Networks == nil {
		return true
	}
	return value.Contains(p.restrictions.Networks, address)
}

// Allows reports whether the key has this access.
func (p Principal) Allows(access Access) bool {
	return (access == AccessReports) == (p.restrictions != nil && p.restrictions.Reports)
}

// AllowedAgents returns the agents that the key reaches; nil: all of the account.
func (p Principal) AllowedAgents() []uuid.UUID {
	if p.restrictions == nil {
		return nil
	}
	return p.restrictions.Agents
}

// Waited returns how long authentication took, which the rest of the request subtracts from the
// time limit of the database.
func (p Principal) Waited() time.Duration { return p.waited }

// Authenticate returns the principal of an API key and counts the request, which comes from this
// source. Because the result reflects the database at a moment after the call began, a key is
// refused as soon as its revocation is confirmed.
//
// It returns [value.ErrKeyMissingPrefix] or [value.ErrKeyMalformed] without using the database, and
// otherwise [value.ErrKeyUnknown], [value.ErrKeyRevoked], a [*value.KeyExpiredError],
// [value.ErrAccountDisabled] or [value.ErrUnavailable]. With an error the principal has at most the
// account, the id and the expiry of the refused key. All of this takes at most the time limit of
// the database. Then the caller must check the address of the client with
// [Principal.AllowsAddress], and count its refusals with [API.CountRefusal].
func (a *API) Authenticate(ctx context.Context, key string, from Source) (Principal, error) {
	if err := checkKeySecret(key); err != nil {
		return Principal{}, err
	}
	if a.db.Tracer != nil {
		var span trace.Span
		ctx, span = a.startSpan(ctx)
		defer span.End()
	}
	started := time.Now()
	found, epoch, err := a.authn.Lookup(ctx, hashKey(key))
	if errors.Is(err, authn.ErrKeyUnknown) {
		return Principal{}, value.ErrKeyUnknown
	}
	if err != nil {
		return Principal{}, value.Failed("authenticate", err)
	}
	return a.count(found, newPrincipal(found, epoch, started), from, inactive(found))
}

// count counts a request with a key that was found. It returns the principal, or the reason to
// refuse the key.
func (a *API) count(found authn.Key, caller Principal, from Source, refused error) (Principal, error) {
	at := a.db.Now()
	if refused != nil {
		a.usage.Count(found.AccountID, found.ID, from, at, 0, 1)
		return Principal{AccountID: found.AccountID, KeyID: found.ID, restrictions: found.Restrictions}, refused
	}
	caller.usedAt = at
	a.usage.Count(found.AccountID, found.ID, from, at, 1, 0)
	return caller, nil
}

func newPrincipal(key authn.Key, epoch authn.Epoch, started time.Time) Principal {
	return Principal{
		AccountID: key.AccountID, KeyID: key.ID, epoch: epoch, restrictions: key.Restrictions, waited: time.Since(started),
	}
}

// inactive returns the reason to refuse a key that is not active, otherwise nil.
func inactive(key authn.Key) error {
	switch {
	case key.Active:
		return nil
	case key.Revoked:
		return value.ErrKeyRevoked
	case key.Expired:
		return &value.KeyExpiredError{At: key.Restrictions.ExpiresAt}
	default:
		return value.ErrAccountDisabled
	}
}

// CountRefusal counts the request of a caller that Authenticate has returned as refused, and no
// longer as accepted. It stays a use of the key from its source.
func (a *API) CountRefusal(p Principal) {
	a.usage.Count(p.AccountID, p.KeyID, Source{}, p.usedAt, -1, 1)
}

// AuthenticateAccessToken is [API.Authenticate] for the access token, with these verified claims,
// of a key without a secret. It also returns [value.ErrTrustChanged] if the key's trust rule was
// saved since the token was issued.
func (a *API) AuthenticateAccessToken(ctx context.Context, claims widget.AccessClaims, from Source) (Principal, error) {
	found, caller, err := a.lookUpAccessToken(ctx, claims)
	if found.ID == uuid.Nil {
		return Principal{}, err
	}
	return a.count(found, caller, from, err)
}

// CheckAccessToken returns the error of [API.AuthenticateAccessToken] without counting a use of the
// key.
func (a *API) CheckAccessToken(ctx context.Context, claims widget.AccessClaims) error {
	_, _, err := a.lookUpAccessToken(ctx, claims)
	return err
}

// lookUpAccessToken returns the key of an access token, zero if it is unknown or the database does
// not answer, and its principal or the reason to refuse it.
func (a *API) lookUpAccessToken(ctx context.Context, claims widget.AccessClaims) (authn.Key, Principal, error) {
	if claims.Rule == uuid.Nil {
		return authn.Key{}, Principal{}, widget.ErrInvalid
	}
	found, caller, err := a.lookUpClaims(ctx, claims.AccountID, claims.KeyID, "authenticate an access token")
	if err == nil && (found.Restrictions == nil || found.Restrictions.Trust != claims.Rule) {
		return found, Principal{}, value.ErrTrustChanged
	}
	return found, caller, err
}

// lookUpClaims is lookUpAccessToken for the account and the key of any token.
func (a *API) lookUpClaims(ctx context.Context, accountID, keyID uuid.UUID, operation string) (authn.Key, Principal, error) {
	if keyID == uuid.Nil {
		return authn.Key{}, Principal{}, widget.ErrInvalid
	}
	if a.db.Tracer != nil {
		var span trace.Span
		ctx, span = a.startSpan(ctx)
		defer span.End()
	}
	started := time.Now()
	found, epoch, err := a.authn.LookupID(ctx, keyID)
	switch {
	case errors.Is(err, authn.ErrKeyUnknown):
		return authn.Key{}, Principal{}, value.ErrKeyRevoked
	case err != nil:
		return authn.Key{}, Principal{}, value.Failed(operation, err)
	case found.AccountID != accountID:
		return authn.Key{}, Principal{}, widget.ErrInvalid
	case !found.Active:
		return found, Principal{}, inactive(found)
	}
	return found, newPrincipal(found, epoch, started), nil
}

// AuthenticateToken returns the principal of a widget token with these verified claims. Like
// [API.Authenticate] it asks the database, but it does not count the request as a use of the key.
// [API.CheckAgent] checks the token's agent.
//
// It returns [value.ErrKeyRevoked] if the token's key is revoked or no longer exists, and otherwise
// a [*value.KeyExpiredError], [widget.ErrInvalid], [value.ErrAccountDisabled] or
// [value.ErrUnavailable], all within the time limit of the database.
func (a *API) AuthenticateToken(ctx context.Context, claims widget.Claims) (Principal, error) {
	_, caller, err := a.lookUpClaims(ctx, claims.AccountID, claims.KeyID, "authenticate a token")
	return caller, err
}

// CheckAgent returns nil if the agent belongs to the principal's account and the key reaches it. If
// the account has no such agent, it returns [value.ErrAgentNotFound], and otherwise
// [value.ErrAgentPaused], [value.ErrAgentNotAllowed] or [value.ErrUnavailable]. The result was true
// at some moment between the start of Authenticate and the end of CheckAgent, which together take
// at most the time limit of the database.
func (a *API) CheckAgent(ctx context.Context, p Principal, agentID uuid.UUID) error {
	if err := a.findAgent(ctx, p, agentID); err != nil {
		return err
	}
	if agents := p.AllowedAgents(); agents != nil && !slices.Contains(agents, agentID) {
		return value.ErrAgentNotAllowed
	}
	return nil
}

// CallsLimited reports whether the key or its account has limits of calls, which [API.CheckCalls]
// checks.
func (p Principal) CallsLimited() bool { return p.restrictions != nil && p.restrictions.Calls }

// CheckCalls returns a [*calls.LimitError] if the principal's key or account has as many calls as
// it may have at a time, or has used up its minutes of the month. It returns nil while the calls
// are unknown, because LiveKit does not answer. The error may also be [value.ErrUnavailable].
func (a *API) CheckCalls(ctx context.Context, p Principal) error {
	ctx, cancel := context.WithTimeout(ctx, a.db.Timeout-p.waited)
	defer cancel()
	return value.Failed("check the limits of calls", calls.CheckCalls(ctx, a.db.API, a.db, p.AccountID, p.KeyID))
}

func (a *API) findAgent(ctx context.Context, p Principal, agentID uuid.UUID) error {
	agent := authn.Agent{AccountID: p.AccountID, ID: agentID}
	if a.authn.HasAgent(p.epoch, agent) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, a.db.Timeout-p.waited)
	defer cancel()
	var epoch []byte
	var exists, paused bool
	query := a.db.API.NewSelect().TableExpr("auth_epoch").Column("value").
		ColumnExpr("agent.id IS NOT NULL, agent.paused_at IS NOT NULL").
		Join("LEFT JOIN agents AS agent ON agent.account_id = ? AND agent.id = ?", p.AccountID, agentID)
	if err := value.NoRows(a.db.OnPrimary(query).Scan(ctx, &epoch, &exists, &paused), authn.ErrNoEpoch); err != nil {
		return value.Failed("find agent", err)
	}
	if !exists {
		return value.ErrAgentNotFound
	}
	if paused {
		return value.ErrAgentPaused
	}
	a.authn.RememberAgent(authn.EpochValue(epoch), agent)
	return nil
}

// Key returns the principal's key and its calls, or [value.ErrKeyNotFound] if it was deleted since.
func (a *API) Key(ctx context.Context, p Principal) (key Key, used calls.Used, err error) {
	err = a.db.API.NewSelect().Model(&key).Where("account_id = ? AND id = ?", p.AccountID, p.KeyID).Scan(ctx)
	if err != nil {
		return key, used, value.NotFound("find the API key of a request", err, value.ErrKeyNotFound)
	}
	used, err = calls.UsedCalls(ctx, a.db.API, a.db, p.AccountID, p.KeyID, a.db.Now())
	return key, used, value.Failed("read the calls of an API key", err)
}

// Ready returns [value.ErrUnavailable] unless the database answers all that a token request asks:
// about the key, and about the agent, which uses another connection. So an instance that is asked
// regularly keeps both connections.
func (a *API) Ready(ctx context.Context) error {
	// No key has this hash, so the lookup reads the database.
	_, _, err := a.authn.Lookup(ctx, authn.KeyHash{})
	if err != nil && !errors.Is(err, authn.ErrKeyUnknown) {
		return value.Failed("authenticate", err)
	}
	if err := a.CheckAgent(ctx, Principal{}, uuid.Nil); !errors.Is(err, value.ErrAgentNotFound) {
		return err
	}
	return nil
}

// startSpan starts the span of a look-up of a key.
func (a *API) startSpan(ctx context.Context) (context.Context, trace.Span) {
	return a.db.Tracer.Start(ctx, "authenticate", trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(db.SystemOf(a.db)...))
}
