package identity

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"portal/models/people"
	"portal/models/value"
)

const (
	maxSubject = 255 // characters (OpenID Connect Core, section 2)
	maxEmail   = 254 // bytes (RFC 5321, section 4.5.3.1.3)
)

// claims are the claims of an ID token or a UserInfo response that the portal reads. Providers send
// them in different shapes. One that cannot be read counts as absent, because only what needs it
// may fail.
type claims struct {
	Subject         string `json:"sub"`
	AuthorizedParty any    `json:"azp"`
	Email           text   `json:"email"`
	EmailVerified   truth  `json:"email_verified"`
	AuthTime        moment `json:"auth_time"`

	Account text `json:"portal_account"`
	Role    text `json:"portal_role"`
}

// text is a string, or a list of one.
type text string

// UnmarshalJSON never fails.
func (t *text) UnmarshalJSON(data []byte) error {
	read, _ := single(valueOf(data)).(string)
	if isText(read) {
		*t = text(read)
	}
	return nil
}

// truth is true or false, also as a string or as 1 or 0, or a list of one of them. It is nil if the
// claim is absent.
type truth struct{ value *bool }

// UnmarshalJSON never fails.
func (t *truth) UnmarshalJSON(data []byte) error {
	value := strings.TrimSpace(fmt.Sprint(single(valueOf(data))))
	if read, err := strconv.ParseBool(strings.ToLower(value)); err == nil {
		t.value = &read
	}
	return nil
}

func (t truth) is(value bool) bool { return t.value != nil && *t.value == value }

// moment is a time in seconds since 1970, as a number of any kind or as a string. It is zero if the
// claim is absent.
type moment struct{ time.Time }

// maxMoment is the end of the year 9999.
const maxMoment = 253402300799

// UnmarshalJSON never fails.
func (m *moment) UnmarshalJSON(data []byte) error {
	value := valueOf(data)
	if read, ok := value.(string); ok {
		value, _ = strconv.ParseFloat(strings.TrimSpace(read), 64)
	}
	if seconds, ok := value.(float64); ok && seconds >= 1 && seconds <= maxMoment {
		m.Time = time.Unix(int64(math.Floor(seconds)), 0)
	}
	return nil
}

// valueOf returns the value of valid JSON, or nil.
func valueOf(data []byte) (value any) {
	_ = json.Unmarshal(data, &value) // valid: an Unmarshaler gets nothing else
	return value
}

// single returns the one value of a list, or a value that is no such list.
func single(value any) any {
	if list, ok := value.([]any); ok && len(list) == 1 {
		return list[0]
	}
	return value
}

// isText reports whether every database can store the value.
func isText(value string) bool { return utf8.ValidString(value) && !strings.ContainsRune(value, 0) }

// hasSubject reports whether the subject is one that the standard allows.
func (c claims) hasSubject() bool {
	return c.Subject != "" && utf8.RuneCountInString(c.Subject) <= maxSubject && isText(c.Subject)
}

// checkParty returns an error unless the ID token, with so many audiences, is for a client.
func (c claims) checkParty(clientID string, audiences int) error {
	none := c.AuthorizedParty == nil || c.AuthorizedParty == ""
	switch {
	case none && audiences > 1:
		return fmt.Errorf("it has %d audiences (aud) and no authorized party (azp)", audiences)
	case !none && c.AuthorizedParty != clientID:
		return fmt.Errorf("the authorized party (azp) is %.100q, not the client", fmt.Sprint(c.AuthorizedParty))
	}
	return nil
}

// access returns the account and the role in the claims, or nil unless both are valid.
func (c claims) access() *people.IdentityAccess {
	role := people.Role(c.Role)
	id, ok := value.ParseID(string(c.Account))
	if !ok || id == uuid.Nil || role != people.RoleOwner && role != people.RoleMember {
		return nil
	}
	return &people.IdentityAccess{AccountID: id, Role: role}
}

// identity returns the identity at an issuer that the claims describe.
func (c claims) identity(issuer string) people.Identity {
	identity := people.Identity{Issuer: issuer, Subject: c.Subject, Access: c.access(), AuthenticatedAt: c.AuthTime.Time}
	if len(c.Email) <= maxEmail {
		identity.Email, identity.EmailVerified = string(c.Email), c.EmailVerified.is(true)
	}
	return identity
}
