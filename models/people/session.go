package people

import (
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// Session is a user's signed-in session in one browser.
type Session struct {
	bun.BaseModel `bun:"table:sessions,alias:session"`

	ID           uuid.UUID `bun:",pk"`
	UserID       uuid.UUID
	TokenHash    []byte // SHA-256 of the token in the browser's cookie
	CreatedAt    time.Time
	LastSeenAt   time.Time // up to a minute late in the database
	ExpiresAt    time.Time // the absolute end
	FirstAddress string
	LastAddress  string
	UserAgent    string
	// AuthenticatedAt is when the user last entered the password, or proved the identity in
	// another way.
	AuthenticatedAt time.Time

	AccountID   uuid.UUID `bun:",scanonly"`
	AccountName string    `bun:",scanonly"`
	Email       string    `bun:",scanonly"`
	Role        Role      `bun:",scanonly"` // of the user, at the time of the request
	// The account requires a second factor, and the user has none and signs in here.
	FactorDue  bool `bun:",scanonly"`
	NoPassword bool `bun:",scanonly"` // the user has no password that can be used
	ByProvider bool `bun:",scanonly"` // the identity provider decides about the user's access
}

// freshFor is how long a sign-in is fresh. Changes of the ways to sign in require a fresh one.
const freshFor = 10 * time.Minute

// Fresh reports whether the user signed in or entered the password less than ten minutes ago.
func (s Session) Fresh(now time.Time) bool { return now.Sub(s.AuthenticatedAt) < freshFor }

// Client describes the sender of a request to the portal.
type Client struct {
	Address   string // network address
	UserAgent string // the User-Agent header
	Device    Device // zero if unknown
	// Name of the OpenID Connect provider that the user has signed in with; or empty.
	Provider string

	// AuthenticatedAt is when the user entered credentials at the provider; zero: unknown.
	AuthenticatedAt time.Time
}

// Device is a browser in which a user has signed in before. A signed cookie identifies it until the
// user's password or email changes. Wrong passwords in it have limits of their own, so that
// strangers who guess the password cannot lock the user out (OWASP, device cookies).
type Device struct {
	ID         uuid.UUID
	UserID     uuid.UUID
	Generation int // the user's KnownBrowsers
}

// NewDevice returns a device with a random id for a user who has signed in.
func NewDevice(user User) Device {
	return Device{ID: uuid.New(), UserID: user.ID, Generation: user.KnownBrowsers}
}

func (d Device) belongsTo(user User) bool {
	return d.UserID == user.ID && d.Generation == user.KnownBrowsers
}

// signInMethod is how a user has proved an identity.
type signInMethod string

const (
	// Including one that a link for a forgotten password has just set.
	byPassword   signInMethod = "password"
	byLink       signInMethod = "link"       // an operator's sign-in link
	byInvitation signInMethod = "invitation" // a link that has just created the user
	byProvider   signInMethod = "provider"   // OpenID Connect
	byPasskey    signInMethod = "passkey"

	// A password, and a code of the authenticator app.
	byCode         signInMethod = "code"
	byRecoveryCode signInMethod = "recovery code" // a password, and a recovery code
)

// own reports whether the user proves the identity with something of their own, which no operator
// has just given and no provider has just checked.
func (m signInMethod) own() bool { return m != byLink && m != byInvitation && m != byProvider }

// signInLabels describe the methods in the activity log.
var signInLabels = map[signInMethod]string{
	byLink: "a sign-in link", byInvitation: "an invitation", byPasskey: "a passkey",
	byCode: "a code", byRecoveryCode: "a recovery code",
}
