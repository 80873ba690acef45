package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
	"portal/models"
	"portal/models/people"
	"portal/models/value"
)

const (
	// The default and the maximum number of entries on a page.
	operatorPage    = 100
	maxOperatorPage = 1000
)

// operators have the endpoints of the operator API, which the platform calls with a shared token.
type operators struct {
	*site

	store      *models.Store
	baseURL    *url.URL
	token      sharedToken // nil: the operator API is off
	signInLink func(token, page string) string
}

// handle adapts a handler that requires the operator token. If no token is configured, the response
// is a 404.
func (o *operators) handle(h handler) gin.HandlerFunc {
	return handle(func(c *gin.Context) error {
		c.Header("Cache-Control", "no-store")
		if o.token == nil {
			return problem.NotFound()
		}
		const header = "Authorization: Bearer <operator token>."
		err := o.token.check(c, "The request has no operator token. Send it as: "+header,
			"The operator token is wrong. Send the value of PORTAL_OPERATOR_TOKEN as: "+header)
		if err != nil {
			return err
		}
		return operatorError(h(c))
	})
}

// operatorError replaces an error whose status in the operator API differs from the usual one, and
// returns any other as it is.
func operatorError(err error) error {
	if invalid, ok := errors.AsType[*value.InvalidError](err); ok {
		return problem.InvalidRequest(invalid.Message)
	}
	for _, row := range []struct {
		err     error
		problem problem.Problem
	}{
		{value.ErrKeyMissingPrefix, problem.InvalidRequest("The field key is not an API key: API keys begin with nas_.")},
		{value.ErrKeyMalformed, problem.InvalidRequest("The field key is incomplete or mistyped. Copy the whole key again.")},
		{value.ErrEmailTaken, problem.Conflict("A user with this email already exists.")},
		{value.ErrSignInDisabled, problem.Conflict("The user or the account is disabled.")},
		{value.ErrAccountEnabled, problem.Conflict("The account is not disabled. Disable it first.")},
		{value.ErrKeyLimit, problem.Conflict(problem.From(value.ErrKeyLimit).Message)},
		{value.ErrAgentLimit, problem.Conflict(problem.From(value.ErrAgentLimit).Message)},
	} {
		if errors.Is(err, row.err) {
			return row.problem
		}
	}
	return err
}

// accountID returns the id of the account in the path, or [value.ErrAccountNotFound] if it is
// malformed.
func accountID(c *gin.Context) (uuid.UUID, error) {
	id, ok := value.ParseID(c.Param("account"))
	if !ok {
		return uuid.Nil, value.ErrAccountNotFound
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
	id, ok := value.ParseID(c.Param(name))
	if !ok || id == uuid.Nil {
		return uuid.Nil, problem.InvalidRequest("The " + name + " id in the path is not a UUID of 36 characters, such as 0198c2f4-7a31-7c6e-9d52-3f8be6a1c004.")
	}
	return id, nil
}

// listOf returns a page of a list of the account in the path, such as its users. It returns
// [value.ErrAccountNotFound] if the account does not exist.
func listOf[T any](
	o *operators, c *gin.Context, list func(context.Context, uuid.UUID, value.Page) (value.List[T], error),
) (value.List[T], error) {
	page, pageErr := readPage(c, operatorPage, maxOperatorPage)
	id, err := accountID(c)
	if err := cmp.Or(pageErr, err); err != nil {
		return value.List[T]{}, err
	}
	return query(o.site, c, 0, func(ctx context.Context) (found value.List[T], err error) {
		if _, err := o.store.Accounts.Find(ctx, id); err != nil {
			return found, err
		}
		return list(ctx, id, page)
	})
}

// remove calls f with the account and the other id of the path, and ignores the error gone, which f
// returns if there is nothing to remove. With nil, no error is ignored.
func (o *operators) remove(c *gin.Context, name string, gone error, f func(ctx context.Context, account, id uuid.UUID) error) error {
	account, id, err := accountAnd(c, name)
	if err != nil {
		return err
	}
	_, err = query(o.site, c, 0, func(ctx context.Context) (found people.Account, err error) {
		if found, err = o.store.Accounts.Find(ctx, account); err != nil {
			return found, err
		}
		return found, f(ctx, account, id)
	})
	if err != nil && !errors.Is(err, gone) {
		return err
	}
	c.Status(http.StatusNoContent)
	return nil
}
