package portal

import (
	"slices"

	"github.com/gin-gonic/gin"

	"portal/models"
)

// permission is what a signed-in user may do.
type permission int

const (
	// useAccount allows a user to see every page, manage keys and agents, and change the user's
	// own sign-in.
	useAccount permission = iota
	// managePeople allows a user to invite and remove people, change roles, and change settings
	// that apply to everyone in the account.
	managePeople
)

// permissions lists the roles that have each permission.
var permissions = map[permission][]models.Role{
	useAccount:   {models.RoleOwner, models.RoleMember},
	managePeople: {models.RoleOwner},
}

// may reports whether the user of the session has the permission.
func may(session models.Session, needed permission) bool {
	return slices.Contains(permissions[needed], session.Role)
}

// require refuses the requests of users without the permission. It must run after requireSession.
func (s *site) require(needed permission) gin.HandlerFunc {
	return func(c *gin.Context) {
		if !may(sessionFrom(c), needed) {
			s.Render(c, models.ErrNotOwner)
			c.Abort()
		}
	}
}
