package models

import (
	"bytes"

	"github.com/google/uuid"
)

// Device is a browser in which a user has signed in before. A signed cookie identifies it. Its
// attempts to sign in as this user have a limit of their own, so that strangers who guess the
// password cannot lock the user out (OWASP, device cookies).
type Device struct {
	ID        uuid.UUID
	EmailHash []byte // SHA-256 of the user's email
}

// NewDevice returns a device with a random id for the user with this email, who has signed in.
func NewDevice(email string) Device {
	return Device{ID: uuid.New(), EmailHash: hashEmail(email)}
}

func (d Device) belongsTo(email string) bool {
	return d.ID != uuid.Nil && bytes.Equal(d.EmailHash, hashEmail(email))
}
