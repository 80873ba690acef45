package models

import (
	"errors"
	"fmt"

	"portal/models/authn"
	"portal/models/database"
)

// ErrUnavailable is [database.ErrUnavailable].
var ErrUnavailable = database.ErrUnavailable

// failed is [database.Failed], and also knows the errors of the authenticator.
func failed(operation string, err error) error {
	if errors.Is(err, authn.ErrStandby) || errors.Is(err, authn.ErrNoEpoch) || errors.Is(err, authn.ErrBusy) {
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return database.Failed(operation, err)
}
