package portal

import (
	"slices"

	"github.com/gin-gonic/gin"

	"portal/models"
)

// permission is what a signed-in user may do.
type permission int

const (
	// useAccount is to see every page, to manage keys and agents, and to change one's own
	// sign-in.
	useAccount permission = iota
	// managePeople is to invite and remove people and to change roles, and to change settings
	// that apply to everyone in the account.
	managePeople
)

// permissions are the roles that have each permission.
var permissions = map[permission][]models.Role{
	useAccount:   {models.RoleOwner, models.RoleMember},
	managePeople: {models.RoleOwner},
}

// may reports whether the user of the session has the permission.
func may(session models.Session, needed permission) bool {
	return slices.Contains(permissions[needed], session.Role)
}

// require refuses the requests of users without the permission. It goes after requireSession.
func (p *Portal) require(needed permission) gin.HandlerFunc {
	return func(c *gin.Context) {
		if !may(sessionFrom(c), needed) {
			p.Render(c, models.ErrNotOwner)
			c.Abort()
		}
	}
}
