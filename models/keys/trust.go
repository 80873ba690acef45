package keys

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/keyset"
	"portal/models/value"
	"portal/models/workload"
)

// Exchange is an exchange of a token of a platform, whose issuer and signature were right, for an
// access token.
type Exchange struct {
	bun.BaseModel `bun:"table:exchanges,alias:exchange"`

	ID      uuid.UUID `bun:",pk"`
	KeyID   uuid.UUID `bun:"api_key_id"`
	At      time.Time
	Reason  string // why the token was refused; empty: accepted
	Address string // of the client
}

const (
	// MaxExchanges is how many exchanges of a key are listed. The others are deleted.
	MaxExchanges = 20
	// ExchangesKept is how long exchanges are kept.
	ExchangesKept = 90 * value.Day
	// UsedTokenSlack is how long a used token is remembered after it expired, because clocks
	// differ.
	UsedTokenSlack = time.Hour
)

// trust gives a key a trust rule, and the version of a new one. The error joins an
// [*value.InvalidError] for each mistake.
func (k *Keys) trust(key *Key, rule workload.Rule) error {
	rule, err := k.CheckTrust(rule)
	key.Trust, key.TrustVersion, key.TrustPins = &rule, new(uuid.New()), nil
	return err
}

// CheckTrust returns a trust rule in its one form. The error joins an [*value.InvalidError] for
// each mistake, whose field is "trust." and that of a [workload.Problem].
func (k *Keys) CheckTrust(rule workload.Rule) (workload.Rule, error) {
	rule, problems := rule.Clean(k.issuers)
	var errs []error
	for _, problem := range problems {
		errs = append(errs, &value.InvalidError{Field: "trust." + problem.Field, Message: problem.Message})
	}
	return rule, errors.Join(errs...)
}

// trustText returns a trust rule in one line.
func trustText(rule *workload.Rule) string {
	if rule == nil {
		return "none"
	}
	text := fmt.Sprintf("%s, issuer %s, audience %s", rule, rule.Issuer, rule.Audience)
	if len(rule.JWKS) > 0 {
		set, _ := keyset.ParseNamed(rule.JWKS)
		text += fmt.Sprintf(", %d pasted public keys", len(set.Keys))
	}
	return text
}
