package templates

import "github.com/google/uuid"

// RotationPage is /api-keys/:id/rotation: a new key takes the place of an old
// one, step by step.
type RotationPage struct {
	Old      RotatedKey
	Progress *RotationProgress // nil: the replacement is not made yet
	FormID   uuid.UUID         // of the form that makes the replacement: a repeat makes nothing
	Full     int               // how many active keys the account has, if it can have no more
	Problem  string            // why no replacement was made
}

func (RotationPage) screen() screen {
	return screen{file: "rotations/show.html", layout: layoutPortal, section: SectionAPIKeys}
}

func (RotationPage) fragment() string { return "rotation" }

// RotatedKey is the old or the new key of a rotation.
type RotatedKey struct {
	ID            uuid.UUID
	Label, Masked string
	Created       Moment
	LastUsed      *Moment // nil: never
	Requests      Count   // in the last 24 hours
	Hours         string  // path of the same hour by hour, to the scale of both keys
}

// RotationProgress is what has become of a rotation since the replacement was
// made. It is told again when it changes.
type RotationProgress struct {
	Old, Replacement RotatedKey
	Silent           bool                // the old key was not used for a while
	Version          string              // of what is told
	Confirmation     *APIKeyConfirmation // nil unless the last step asks whether to revoke the old key
	Focused          bool                // the last step's button takes the focus
}

// Received reports whether the replacement has received a request.
func (p RotationProgress) Received() bool { return p.Replacement.LastUsed != nil }

// News is what has changed, for those who do not see it.
func (p RotationProgress) News() string {
	switch {
	case !p.Received():
		return ""
	case !p.Silent:
		return "The replacement has received its first request. The old key is still in use."
	}
	return "The replacement has received its first request, and the old key is silent."
}

// RotationStarted is what changes on the page of a rotation when the replacement
// is made.
type RotationStarted struct {
	Rotation RotationPage
	Reveal   APIKeyReveal
}

func (RotationStarted) fragment() string { return "rotation-started" }
