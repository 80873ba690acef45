package portal

import (
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
	"github.com/gorilla/securecookie"

	"portal/models"
)

// A signed cookie identifies the device of a user who has signed in. It gives no access, so
// sign-out keeps it.
const (
	deviceCookie = "device"
	deviceAge    = 365 * 24 * time.Hour
)

// deviceOf returns the device of the request. It is zero if the cookie is missing, forged or too
// old.
func (p *Portal) deviceOf(c *gin.Context) models.Device {
	cookie, err := c.Request.Cookie(p.cookies.name(deviceCookie))
	if err != nil {
		return models.Device{}
	}
	var value []byte
	err = securecookie.DecodeMulti(deviceCookie, cookie.Value, &value, p.devices...)
	if err != nil || len(value) < len(uuid.UUID{}) {
		return models.Device{}
	}
	return models.Device{ID: uuid.UUID(value[:len(uuid.UUID{})]), EmailHash: value[len(uuid.UUID{}):]}
}

// setDevice sets the cookie that makes the browser a device of the user with this email.
func (p *Portal) setDevice(c *gin.Context, email string) error {
	device := models.NewDevice(email)
	value, err := securecookie.EncodeMulti(deviceCookie, append(device.ID[:], device.EmailHash...), p.devices...)
	if err != nil {
		return err
	}
	p.cookies.set(c.Writer, deviceCookie, value, int(deviceAge/time.Second))
	return nil
}
