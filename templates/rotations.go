package templates

import (
	"github.com/google/uuid"

	"portal/models/keys"
)

// RotationPage is /api-keys/:id/rotation, which replaces an old key with a new one step by step.
type RotationPage struct {
	RotationWords

	Old      RotatedKey
	Progress *RotationProgress // nil before the replacement is created
	FormID   uuid.UUID         // unique for each rendered form; a repeat creates nothing
	// Number of active keys if the account has reached the maximum, or 0.
	Full    int
	Problem string      // why no replacement was created
	Expires *KeyExpires // of the replacement that this page creates; nil: never
}

// Kept returns what restricts the old key and its replacement.
func (p RotationPage) Kept() string {
	switch {
	case p.Old.Agents != nil && p.Old.Networks != nil:
		return "agents and networks"
	case p.Old.Agents != nil:
		return "agents"
	case p.Old.Networks != nil:
		return "networks"
	}
	return ""
}

func (RotationPage) screen() screen {
	return screen{file: "rotations/show.html", section: SectionAPIKeys}
}

func (RotationPage) fragment() string { return "rotation" }

// RotationWords says how a rotation names the old key.
type RotationWords struct {
	Lost bool // the user has lost the value of the old key
}

// Name returns the word for the old key.
func (w RotationWords) Name() string {
	if w.Lost {
		return "lost"
	}
	return "old"
}

// RotatedKey is the old or the new key of a rotation.
type RotatedKey struct {
	keys.Key

	Created  Moment
	LastUsed *Moment     // nil if never used
	Expires  *KeyExpires // nil: never
	Requests Count       // in the last 24 hours
	Hours    string      // SVG path of the hourly requests, scaled for both keys
}

// RotationProgress is the state of a rotation after the replacement was created.
type RotationProgress struct {
	RotationWords

	Old, Replacement RotatedKey
	Silent           bool                // the old key has not been used for an hour
	Version          string              // changes when the progress changes
	Confirmation     *APIKeyConfirmation // not nil while the last step confirms the revocation
	Focused          bool                // the button of the last step takes the focus
}

// Received reports whether the replacement has received a request.
func (p RotationProgress) Received() bool { return p.Replacement.LastUsed != nil }

// News describes the progress for screen readers.
func (p RotationProgress) News() string {
	switch {
	case !p.Received():
		return ""
	case !p.Silent:
		return "The replacement has received its first request. The " + p.Name() + " key is still in use."
	}
	return "The replacement has received its first request, and the " + p.Name() + " key is no longer used."
}

// RotationStarted updates the page after the replacement was created.
type RotationStarted struct {
	Rotation RotationPage
	Reveal   APIKeyReveal
}

func (RotationStarted) fragment() string { return "rotation-started" }
