package templates

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/google/uuid"
)

// Factors are the sections of the account page about factors.
type Factors struct {
	Since         *Moment // when two-step verification was turned on; nil: it is off
	RecoveryCodes int     // unused ones
	// An authenticator app has no effect, because nobody signs in with a password.
	NoApp bool
	// The user signs in with the provider alone, so earlier factors have no effect.
	ByProvider bool

	Passkeys     bool // browsers support passkeys at the address of the portal
	PasskeyItems []PasskeyItem
	Confirmed    bool // the user has confirmed the sign-in to add a passkey

	Required   bool // the account requires a factor
	Owner      bool // the user may change the settings
	AppRefused bool // the app was not turned off, because it is the last factor

	Confirming FactorChange // asks whether to make this change
	Focused    bool         // the first button takes the focus
}

func (Factors) fragment() string { return "two-step" }

// LastApp reports whether the authenticator app is the only factor, and one is required.
func (f Factors) LastApp() bool { return f.Required && f.Since != nil && len(f.PasskeyItems) == 0 }

// LastPasskey reports whether a passkey is the only factor, and one is required.
func (f Factors) LastPasskey() bool { return f.Required && f.Since == nil && len(f.PasskeyItems) == 1 }

// Passkey returns a passkey of the list, or nil if the list does not have it.
func (f Factors) Passkey(id uuid.UUID) *PasskeyItem {
	for i := range f.PasskeyItems {
		if f.PasskeyItems[i].ID == id {
			return &f.PasskeyItems[i]
		}
	}
	return nil
}

// PasskeySection is the section of passkeys alone.
type PasskeySection struct{ Factors }

func (PasskeySection) fragment() string { return "passkeys" }

// FactorChange is a change of two-step verification that asks first.
type FactorChange string

// The changes.
const (
	FactorTurningOff FactorChange = "off"
	FactorNewCodes   FactorChange = "codes"
)

// PasskeyItem is a passkey of the user.
type PasskeyItem struct {
	ID      uuid.UUID
	Name    string // the device on which it was created
	Created Moment
	Used    *Moment // nil: never

	Confirming bool // asks whether to remove the passkey
	Refused    bool // says that the passkey is the last factor
	Focused    bool // the button that removes the passkey takes the focus
}

// SecondFactorPage asks a user to set up a second factor before anything else.
type SecondFactorPage struct {
	Passkeys  bool // offers passkeys
	NoApp     bool // does not offer an authenticator app
	Confirmed bool // the user has confirmed the sign-in to add a passkey
}

func (SecondFactorPage) screen() screen {
	return screen{file: "account/second_factor.html", layout: layoutPlain}
}

func (SecondFactorPage) fragment() string { return "second-factor" }

// TOTPPage sets up an authenticator app. Only its first response shows the secret.
type TOTPPage struct {
	Code    QRCode // empty after a wrong code
	Secret  string // empty after a wrong code
	Problem string // the error of the code
}

func (TOTPPage) screen() screen { return screen{file: "account/totp.html", section: SectionAccount} }

func (TOTPPage) fragment() string { return "totp" }

// Groups returns the secret in groups of four characters.
func (p TOTPPage) Groups() string {
	var groups strings.Builder
	for i, character := range p.Secret {
		if i > 0 && i%4 == 0 {
			groups.WriteByte(' ')
		}
		groups.WriteRune(character)
	}
	return groups.String()
}

// TOTPURL returns the URL that an authenticator app reads from a QR code, with the product and the
// email that the app shows. It leaves colons out of the product: apps divide the label at its first
// colon, and some refuse a URL whose issuer is not the part before it.
func TOTPURL(product, email, secret string) string {
	product = strings.ReplaceAll(product, ":", "")
	query := url.Values{"secret": {secret}, "issuer": {product}}
	// Apps do not decode "+" as a space.
	return "otpauth://totp/" + url.PathEscape(product) + ":" + url.PathEscape(email) +
		"?" + strings.ReplaceAll(query.Encode(), "+", "%20")
}

// QRCode is a QR code as a path of an SVG image.
type QRCode struct {
	Size int    // modules, with the quiet zone
	Path string // of the black modules
}

// quietZone is the number of white modules around a QR code (ISO/IEC 18004).
const quietZone = 4

// NewQRCode returns the QR code with size modules in each direction.
func NewQRCode(size int, black func(x, y int) bool) QRCode {
	var path strings.Builder
	for y := range size {
		for x := 0; x < size; x++ {
			start := x
			for x < size && black(x, y) {
				x++
			}
			if x > start {
				fmt.Fprintf(&path, "M%d %dh%dv1h-%dz", start+quietZone, y+quietZone, x-start, x-start)
			}
		}
	}
	return QRCode{Size: size + 2*quietZone, Path: path.String()}
}

// RecoveryCodesPage shows new recovery codes, in the only response with them.
type RecoveryCodesPage struct {
	Codes    []string
	TurnedOn bool // two-step verification has just been turned on
}

func (RecoveryCodesPage) screen() screen {
	return screen{file: "account/recovery_codes.html", section: SectionAccount}
}

func (RecoveryCodesPage) fragment() string { return "recovery-codes" }

// SecondStepPage asks for the code of the second step of a sign-in.
type SecondStepPage struct {
	Form        SecondStepForm
	Passkeys    bool   // offers to sign in with a passkey
	PasskeyOnly bool   // the user has no authenticator app
	Support     string // URL of the support; may be empty
}

func (SecondStepPage) screen() screen {
	return screen{file: "sign_in/second_step.html", layout: layoutPlain}
}

// SecondStepForm is the form of a [SecondStepPage].
type SecondStepForm struct {
	Next    string // path to open after the sign-in
	Problem string // why the code was refused
}

func (SecondStepForm) fragment() string { return "second-step" }
