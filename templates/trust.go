package templates

import (
	"time"

	"portal/models/keys"
	"portal/models/workload"
)

// TrustForm has the controls of a trust rule.
type TrustForm struct {
	Offered   bool // keys without a secret are on
	Workload  bool // "Workload identity" is chosen
	Platforms []workload.Platform
	Provider  workload.Provider // as submitted; empty: none is chosen

	Issuer, Audience TrustField
	Fields           []TrustField // of the claims
	Claims           TrustField   // other claims, one a line
	JWKS             TrustField
	ProviderProblem  string

	OwnIssuers bool   // the provider may have an issuer whose keys are pasted
	Sentence   string // who can use the key; empty while the rule is incomplete
	Preview    string // the address that shows the form anew and saves nothing
}

// TrustField is a text of the form.
type TrustField struct {
	ID, Name, Title, Value, Example, Problem string

	Needed bool
}

// Chosen returns whether a provider is chosen, whose fields are shown.
func (f TrustForm) Chosen() bool {
	_, known := f.Provider.Platform()
	return known
}

// AdvancedOpen reports whether the folded fields are shown: one of them is needed or has an error.
func (f TrustForm) AdvancedOpen() bool {
	return f.Issuer.Needed || f.Issuer.Problem+f.Audience.Problem+f.JWKS.Problem != ""
}

// AnyClaims reports whether the provider has no fields of its own.
func (f TrustForm) AnyClaims() bool { return f.Provider == workload.Other }

// Filled returns the texts that are not empty.
func (f TrustForm) Filled() (filled []TrustField) {
	for _, field := range append([]TrustField{f.Issuer, f.Audience, f.Claims, f.JWKS}, f.Fields...) {
		if field.Value != "" {
			filled = append(filled, field)
		}
	}
	return filled
}

// TrustPage is /api-keys/:id/trust.
type TrustPage struct {
	Key     keys.Key
	Trust   TrustForm
	Version string // of the rule that the form was made from

	// The key's rule if it has changed since the form was made; otherwise nil.
	Current *TrustForm

	Pins  []TrustPin
	Paste []Snippet // what the provider needs

	Generated bool // the key is new: the page shows what to paste, and not the form
	Exchanged bool // a token was exchanged
}

// TrustPin is a claim that the first exchange has pinned.
type TrustPin struct{ Name, Value string }

func (TrustPage) screen() screen {
	return screen{file: "api_keys/trust.html", section: SectionAPIKeys}
}

func (TrustPage) fragment() string { return "trust-form" }

// ExchangeRow is an exchange of a token for access with a key.
type ExchangeRow struct {
	At              Moment
	Result, Address string
}

// NewExchangeRows formats exchanges.
func NewExchangeRows(exchanges []keys.Exchange, now time.Time) (rows []ExchangeRow) {
	for _, exchange := range exchanges {
		row := ExchangeRow{At: NewMoment(exchange.At, now), Result: "Accepted", Address: exchange.Address}
		if exchange.Reason != "" {
			row.Result = "Refused: " + exchange.Reason
		}
		rows = append(rows, row)
	}
	return rows
}
