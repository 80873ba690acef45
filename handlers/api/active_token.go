package api

import (
	"context"
	"errors"

	"portal/handlers/problem"
	"portal/models"
	"portal/models/widget"
)

// checkActive asks the database about the key, the account and the agent of a verified widget
// token. [tokenProblem] returns the response to the error of a token that is not active.
func (w *widgetTokens) checkActive(ctx context.Context, claims widget.Claims) error {
	caller, err := w.Store.API.AuthenticateToken(ctx, claims)
	if err != nil {
		return err
	}
	return w.queries.Run(func() error { return w.Store.API.CheckAgent(ctx, caller, claims.AgentID) })
}

// tokenProblems are the responses to a widget token that is not active, by reason, in order of
// precedence.
var tokenProblems = []struct {
	err     error
	problem problem.Problem
}{
	{widget.ErrExpired, problem.Unauthorized(problem.ReasonTokenExpired,
		"The widget token has expired. Request a new one.")},
	{widget.ErrInvalid, problem.Unauthorized(problem.ReasonTokenInvalid,
		"The widget token is malformed or was not issued by this service. Request a new one.")},
	{models.ErrKeyRevoked, problem.Unauthorized(problem.ReasonTokenRevoked,
		"The API key of the widget token has been revoked. Request a new token with an active key.")},
	{models.ErrKeyExpired, problem.Unauthorized(problem.ReasonTokenExpired,
		"The API key of the widget token has expired. Request a new token with an active key.")},
	{models.ErrAgentNotAllowed, problem.Unauthorized(problem.ReasonAgent,
		"The API key of the widget token no longer reaches its agent. Request a token for another agent.")},
	{models.ErrAccountDisabled, problem.Unauthorized(problem.ReasonAccountDisabled,
		"The account of the widget token is disabled. Contact the operator.")},
	{models.ErrAgentNotFound, problem.Unauthorized(problem.ReasonAgent,
		"The agent of the widget token has been removed. Request a token for another agent.")},
}

// tokenProblem returns the 401 for a widget token that is not active, and false for any other
// error.
func tokenProblem(err error) (problem.Problem, bool) {
	for _, known := range tokenProblems {
		if errors.Is(err, known.err) {
			return known.problem, true
		}
	}
	return problem.Problem{}, false
}
