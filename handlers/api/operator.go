package api

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
	"portal/models"
)

const (
	operatorPath = "/operator"

	// The default and the maximum number of entries on a page.
	operatorPage    = 100
	maxOperatorPage = 1000
)

// sharedToken is the hash of a token that callers share with the configuration. Guesses are not
// limited: a token has at least 32 bytes.
type sharedToken [sha256.Size]byte

// newSharedToken returns nil for an empty token.
func newSharedToken(token string) *sharedToken {
	if token == "" {
		return nil
	}
	hash := sharedToken(sha256.Sum256([]byte(token)))
	return &hash
}

func (a *API) registerOperator(r gin.IRouter) {
	g := r.Group(operatorPath)
	g.GET("/accounts", a.operated(a.listAccounts))
	g.GET("/accounts/:account", a.operated(a.showAccount))
	g.PUT("/accounts/:account", a.operated(a.putAccount))
	g.GET("/accounts/:account/agents", a.operated(a.listAccountAgents))
	g.PUT("/accounts/:account/agents/:agent", a.operated(a.putAgent))
	g.DELETE("/accounts/:account/agents/:agent", a.operated(a.removeAgent))
	g.GET("/accounts/:account/users", a.operated(a.listUsers))
	g.POST("/accounts/:account/users", a.operated(a.addUser))
	g.DELETE("/accounts/:account/users/:user", a.operated(a.removeUser))
	g.POST("/accounts/:account/sign-in-links", a.operated(a.createSignInLink))
	g.GET("/accounts/:account/keys", a.operated(a.listKeys))
	g.POST("/keys/revocations", a.operated(a.revokeKey))
}

// operated adapts a handler that requires the operator token. If no token is configured, the
// response is a 404.
func (a *API) operated(h handler) gin.HandlerFunc {
	return a.public(func(c *gin.Context) error {
		c.Header("Cache-Control", "no-store")
		if a.operator == nil {
			return problem.NotFound()
		}
		const header = "Authorization: Bearer <operator token>."
		err := a.operator.check(c, false, "The request has no operator token. Send it as: "+header,
			"The operator token is wrong. Send the value of PORTAL_OPERATOR_TOKEN as: "+header)
		if err != nil {
			return err
		}
		return operatorError(h(c))
	})
}

// check returns a 401 unless the one Authorization header is the token after Bearer or, if bare,
// also alone. The messages are those for no header and for a wrong one.
func (t *sharedToken) check(c *gin.Context, bare bool, missing, wrong string) error {
	values := c.Request.Header.Values("Authorization")
	if len(values) == 1 {
		scheme, token, _ := strings.Cut(values[0], " ")
		isBearer := strings.EqualFold(scheme, "Bearer")
		if isBearer && t.is(strings.Trim(token, " ")) || bare && t.is(values[0]) {
			return nil
		}
	}
	setChallenge(c, len(values) > 0)
	if len(values) == 0 {
		return problem.Unauthorized(problem.ReasonMissing, missing)
	}
	return problem.Unauthorized(problem.ReasonUnknown, wrong)
}

// is reports whether text is the token, in a time that does not depend on it.
func (t *sharedToken) is(text string) bool {
	hash := sha256.Sum256([]byte(text))
	return subtle.ConstantTimeCompare(hash[:], t[:]) == 1
}

// operatorError replaces an error whose status in the operator API differs from the usual one, and
// returns any other as it is.
func operatorError(err error) error {
	if invalid, ok := errors.AsType[*models.InvalidError](err); ok {
		return problem.InvalidRequest(invalid.Message)
	}
	for _, row := range []struct {
		err     error
		problem problem.Problem
	}{
		{models.ErrKeyMissingPrefix, problem.InvalidRequest("The field key is not an API key: API keys begin with nas_.")},
		{models.ErrKeyMalformed, problem.InvalidRequest("The field key is incomplete or mistyped. Copy the whole key again.")},
		{models.ErrEmailTaken, problem.Conflict("A user with this email already exists.")},
		{models.ErrSignInDisabled, problem.Conflict("The user or the account is disabled.")},
		{models.ErrAgentLimit, problem.Conflict(problem.From(models.ErrAgentLimit).Message)},
	} {
		if errors.Is(err, row.err) {
			return row.problem
		}
	}
	return err
}

// query calls f in a slot of a.queries, within the time limit of the database, less the time that
// the request has already waited for the database.
func query[T any](a *API, c *gin.Context, waited time.Duration, f func(context.Context) (T, error)) (found T, err error) {
	ctx, cancel := a.withTimeout(c, waited)
	defer cancel()
	err = a.queries.Run(func() (err error) {
		found, err = f(ctx)
		return err
	})
	return found, err
}

// send sends the body, unless there is an error.
func send(c *gin.Context, status int, body any, err error) error {
	if err == nil {
		c.PureJSON(status, body)
	}
	return err
}

// accountID returns the id of the account in the path, or [models.ErrAccountNotFound] if it is
// malformed.
func accountID(c *gin.Context) (uuid.UUID, error) {
	id, ok := models.ParseID(c.Param("account"))
	if !ok {
		return uuid.Nil, models.ErrAccountNotFound
	}
	return id, nil
}

// accountAnd returns the ids of the account and of another object in the path, or the error of
// [accountID] or [pathID].
func accountAnd(c *gin.Context, name string) (account, id uuid.UUID, err error) {
	if account, err = accountID(c); err == nil {
		id, err = pathID(c, name)
	}
	return account, id, err
}

// pathID returns an id in the path, or a 400.
func pathID(c *gin.Context, name string) (uuid.UUID, error) {
	id, ok := models.ParseID(c.Param(name))
	if !ok || id == uuid.Nil {
		return uuid.Nil, problem.InvalidRequest("The " + name + " id in the path is not a UUID of 36 characters, such as 0198c2f4-7a31-7c6e-9d52-3f8be6a1c004.")
	}
	return id, nil
}

// listOf returns a page of a list of the account in the path, such as its users. It returns
// [models.ErrAccountNotFound] if the account does not exist.
func listOf[T any](
	a *API, c *gin.Context, list func(context.Context, uuid.UUID, models.Page) (models.List[T], error),
) (models.List[T], error) {
	page, pageErr := readPage(c, operatorPage, maxOperatorPage)
	id, err := accountID(c)
	if err := cmp.Or(pageErr, err); err != nil {
		return models.List[T]{}, err
	}
	return query(a, c, 0, func(ctx context.Context) (found models.List[T], err error) {
		if _, err := a.store.Accounts.Find(ctx, id); err != nil {
			return found, err
		}
		return list(ctx, id, page)
	})
}

// bodiesOf returns the bodies of the items of a list, never nil.
func bodiesOf[T, B any](items []T, body func(T) B) []B {
	bodies := make([]B, 0, len(items))
	for _, item := range items {
		bodies = append(bodies, body(item))
	}
	return bodies
}

// putStatus returns the status of the response to a PUT.
func putStatus(created bool) int {
	if created {
		return http.StatusCreated
	}
	return http.StatusOK
}
