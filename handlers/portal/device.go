package portal

import (
	"time"

	"github.com/gin-gonic/gin"

	"portal/models"
)

// deviceAge is the lifetime of the cookie that identifies the device of a user who has signed in.
// The cookie gives no access, so sign-out keeps it.
const deviceAge = 365 * 24 * time.Hour

// newClient returns the client of a sign-in. Its device is zero if the browser is unknown.
func (p *Portal) newClient(c *gin.Context) models.Client {
	client := clientOf(c)
	p.devices.get(c, &client.Device)
	return client
}

// providerClient is [Portal.newClient] for a user with this identity.
func (p *Portal) providerClient(c *gin.Context, found models.Identity) models.Client {
	client := p.newClient(c)
	client.Provider, client.AuthenticatedAt = p.provider.Name(), found.AuthenticatedAt
	return client
}

// setDevice makes the browser a device of the user with this email.
func (p *Portal) setDevice(c *gin.Context, email string) error {
	return p.devices.set(c, models.NewDevice(email))
}
