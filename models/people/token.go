package people

import "portal/models/value"

// userTokens is a table of users' tokens, which it stores as hashes. A token is in a link or in the
// cookie of a pending sign-in, and works once, until it expires.
type userTokens struct {
	table   string
	invalid error // for a token that is unknown, was used or has expired
}

var (
	pendingSignIns     = userTokens{"pending_sign_ins", value.ErrSignInNotPending}
	signInLinks        = userTokens{"sign_in_links", value.ErrLinkInvalid}
	passwordResetLinks = userTokens{"password_reset_links", value.ErrMailLinkInvalid}
	emailChanges       = userTokens{"email_changes", value.ErrMailLinkInvalid}
)

// tokenTables are the tables of all tokens of users.
var tokenTables = []string{pendingSignIns.table, signInLinks.table, passwordResetLinks.table, emailChanges.table}
