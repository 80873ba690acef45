package api

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

// User is a user in the operator API and in the output of commands.
type User struct {
	ID           uuid.UUID   `json:"id"`
	Email        string      `json:"email"`
	Role         people.Role `json:"role"`
	Disabled     bool        `json:"disabled"`
	LastSignInAt *time.Time  `json:"lastSignInAt"`
	TwoStep      *string     `json:"twoStep"` // "app", "passkey" or "both"
}

// NewUser returns the body of a user.
func NewUser(user people.User) User {
	var twoStep *string
	switch {
	case user.HasApp && user.HasPasskey:
		twoStep = new("both")
	case user.HasApp:
		twoStep = new("app")
	case user.HasPasskey:
		twoStep = new("passkey")
	}
	return User{
		ID: user.ID, Email: user.Email, Role: user.Role, Disabled: user.DisabledAt != nil, LastSignInAt: inUTC(user.LastSignInAt), TwoStep: twoStep,
	}
}

type usersBody struct {
	Users []User    `json:"users"`
	Next  uuid.UUID `json:"next,omitzero"`
}

func (o *operators) listUsers(c *gin.Context) error {
	users, err := listOf(o, c, o.store.People.List)
	return send(c, http.StatusOK, usersBody{bodiesOf(users.Items, NewUser), users.Next}, err)
}

// addUser adds a user without a password.
func (o *operators) addUser(c *gin.Context) error {
	account, err := accountID(c)
	if err != nil {
		return err
	}
	body := readObject(c, `{"email": "name@example.com", "role": "member"}`)
	email, role := body.text("email"), people.Role(body.text("role"))
	if body.err != nil {
		return body.err
	}
	user, err := query(o.site, c, 0, func(ctx context.Context) (people.User, error) {
		return o.store.People.Add(ctx, account, people.NewUser{Email: email, Role: role}, record.Operator())
	})
	return send(c, http.StatusCreated, NewUser(user), err)
}

// changeUser changes the role of a user, and disables or enables it.
func (o *operators) changeUser(c *gin.Context) error {
	account, id, err := accountAnd(c, "user")
	if err != nil {
		return err
	}
	body := readObject(c, `{"role": "member", "disabled": false}`)
	change := people.UserChange{Disabled: body.truth("disabled")}
	if body.has("role") {
		change.Role = new(people.Role(body.text("role")))
	}
	if body.err != nil {
		return body.err
	}
	user, err := query(o.site, c, 0, func(ctx context.Context) (people.User, error) {
		if _, err := o.store.Accounts.Find(ctx, account); err != nil {
			return people.User{}, err
		}
		return o.store.People.Change(ctx, account, id, change, record.Operator())
	})
	return send(c, http.StatusOK, NewUser(user), err)
}

// resetSecondFactor removes the factors of a user besides the password.
func (o *operators) resetSecondFactor(c *gin.Context) error {
	return o.remove(c, "user", nil, o.store.Credentials.ResetSecondFactor)
}

// removeUser removes a user, if it exists, and with erase=true also erases the user's data.
func (o *operators) removeUser(c *gin.Context) error {
	if values := queryValues(c.Request.URL.RawQuery, "erase"); len(values) > 0 {
		if len(values) > 1 || values[0] != "true" {
			return problem.InvalidRequest("The query parameter erase is not true.")
		}
		err := o.remove(c, "user", value.ErrUserNotFound, func(ctx context.Context, account, id uuid.UUID) error {
			return o.store.Erasures.BeginUser(ctx, account, id, record.Operator())
		})
		o.store.Erasures.FinishSoon()
		return err
	}
	return o.remove(c, "user", value.ErrUserNotFound, func(ctx context.Context, account, id uuid.UUID) error {
		return o.store.People.Remove(ctx, account, id, record.Operator())
	})
}

type signInLinkBody struct {
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expiresAt"`
	UserID    uuid.UUID `json:"userId"`
}

// linkPages are the pages that a sign-in link can lead to.
var linkPages = []string{"api-keys", "agents", callsPage, "usage", "activity", "integrate"}

const callsPage = "calls" // exists with a LiveKit server only

// createSignInLink returns a link that signs a user in once. If nobody has the email, it
// adds the user.
func (o *operators) createSignInLink(c *gin.Context) error {
	account, err := accountID(c)
	if err != nil {
		return err
	}
	body := readObject(c, `{"userId": "<uuid>"} or {"email": "name@example.com"}`)
	create := body.linkOf(o.store.SignIn, account)
	page := body.linkPage(o.store.Calls.Enabled())
	if body.err != nil {
		return body.err
	}
	link, err := query(o.site, c, 0, func(ctx context.Context) (body signInLinkBody, err error) {
		if _, err := o.store.Accounts.Find(ctx, account); err != nil {
			return body, err
		}
		link, err := create(ctx)
		return signInLinkBody{URL: o.signInLink(link.Token, page), ExpiresAt: link.ExpiresAt, UserID: link.UserID}, err
	})
	return send(c, http.StatusCreated, link, err)
}

// linkOf returns what creates the link of the user whom the fields userId, or email and role, name.
func (o *object) linkOf(signIn *people.SignIn, account uuid.UUID) func(context.Context) (people.SignInLink, error) {
	if o.null("email") {
		if !o.null("role") {
			o.refuse("The field role is only for a user with an email. Send " + o.example + ".")
		}
		user := o.id("userId")
		return func(ctx context.Context) (people.SignInLink, error) {
			return signIn.CreateLink(ctx, account, user, record.Operator())
		}
	}
	if !o.null("userId") {
		o.refuse("The fields userId and email exclude each other. Send " + o.example + ".")
	}
	user := people.NewUser{Email: o.text("email"), Role: people.RoleMember}
	if !o.null("role") {
		user.Role = people.Role(o.text("role"))
	}
	return func(ctx context.Context) (people.SignInLink, error) {
		return signIn.CreateLinkFor(ctx, account, user, record.Operator())
	}
}

// linkPage returns the field page, or "" if it is missing or null.
func (o *object) linkPage(calls bool) string {
	if o.null("page") {
		return ""
	}
	page := o.text("page")
	if !slices.Contains(linkPages, page) {
		o.refuse("The field page is none of " + strings.Join(linkPages, ", ") + ".")
	} else if page == callsPage && !calls {
		o.refuse("The portal has no page calls, because it has no LiveKit server.")
	}
	return page
}
