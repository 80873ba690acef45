package identity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"portal/models/people"
)

// EmailUse is what a sign-in needs the email of an identity for.
type EmailUse int

// The uses.
const (
	EmailUnused   EmailUse = iota // the identity is connected to a user
	EmailShown                    // to people
	EmailRequired                 // it finds or proves the user
)

// userInfoTimeout leaves a part of the time for a step to the sign-in.
const userInfoTimeout = 3 * time.Second

// redeem exchanges the code for the identity, and does not keep the tokens. It asks the UserInfo
// endpoint only for an email that emailUse needs and the ID token lacks.
func (d *discovered) redeem(ctx context.Context, r AuthRequest, code string, emailUse func(context.Context, people.Identity) (EmailUse, error)) (people.Identity, error) {
	ctx = oidc.ClientContext(ctx, d.metadata.client)
	tokens, err := d.oauth.Exchange(ctx, code, oauth2.VerifierOption(r.Verifier))
	if err != nil {
		return people.Identity{}, exchangeFailure(err)
	}
	found, err := d.verify(ctx, tokens, r.Nonce)
	if err != nil {
		// The provider may have changed its keys' algorithm since the metadata were read.
		if current, readErr := d.metadata.get(ctx, metadataPause); readErr == nil && current != d {
			found, err = current.verify(ctx, tokens, r.Nonce)
		}
	}
	if err != nil {
		return people.Identity{}, failure("the ID token", err)
	}
	identity := found.identity(d.metadata.config.Issuer)
	use, err := emailUse(ctx, identity)
	if err != nil {
		return people.Identity{}, err
	}
	lacks := found.Email == "" || use == EmailRequired && found.EmailVerified.value == nil
	if use == EmailUnused || !lacks || !d.userInfo {
		return identity, nil
	}
	err = d.addEmail(ctx, tokens, &found)
	switch {
	case errors.Is(err, errOtherSubject), err != nil && use == EmailRequired && found.Email == "":
		return people.Identity{}, failure("the UserInfo response", err)
	case err != nil: // what the ID token has is enough
		d.metadata.config.Logger.WarnContext(ctx, "a sign-in at the identity provider goes on without UserInfo", slog.Any("error", failure("the UserInfo response", err)))
	}
	access := identity.Access // of the ID token only, which is signed
	identity = found.identity(d.metadata.config.Issuer)
	identity.Access = access
	return identity, nil
}

// exchangeFailure returns an [ErrFailed] without the body of the response.
func exchangeFailure(err error) error {
	refused, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		return failure("the token endpoint", err)
	}
	if refused.ErrorCode == "invalid_grant" { // the code has expired or was used before
		return ErrExpired
	}
	status := "unknown"
	if refused.Response != nil {
		status = refused.Response.Status
	}
	return failure("the token endpoint", fmt.Errorf("the status is %.100s, the error is %.100q", status, refused.ErrorCode))
}

// verify returns the claims of the ID token if it is valid and was issued for this request.
func (d *discovered) verify(ctx context.Context, tokens *oauth2.Token, nonce string) (claims, error) {
	raw, _ := tokens.Extra("id_token").(string)
	if raw == "" {
		return claims{}, errors.New("it is missing")
	}
	token, err := d.verifier.Verify(ctx, raw)
	if err != nil {
		return claims{}, err
	}
	var found claims
	if err := token.Claims(&found); err != nil {
		return claims{}, err
	}
	switch {
	case !equal(token.Nonce, nonce):
		return claims{}, errors.New("it has another nonce")
	case !found.isFor(d.metadata.config.ClientID, len(token.Audience)):
		return claims{}, fmt.Errorf("the authorized party is %.100q", fmt.Sprint(found.AuthorizedParty))
	case !found.hasSubject():
		return claims{}, errors.New("the subject is invalid")
	}
	return found, nil
}

var errOtherSubject = errors.New("it is about another subject")

// addEmail reads the email from the UserInfo endpoint, for providers whose ID tokens have none.
func (d *discovered) addEmail(ctx context.Context, tokens *oauth2.Token, found *claims) error {
	info, err := d.readUserInfo(ctx, tokens)
	if err != nil {
		return err
	}
	if info.Subject != found.Subject { // OpenID Connect Core, section 5.3.2
		return errOtherSubject
	}
	if info.Email != "" {
		found.Email, found.EmailVerified = info.Email, info.EmailVerified
	}
	return nil
}

// readUserInfo returns the claims of the UserInfo endpoint.
func (d *discovered) readUserInfo(ctx context.Context, tokens *oauth2.Token) (info claims, err error) {
	ctx, cancel := context.WithTimeout(ctx, userInfoTimeout)
	defer cancel()
	address := d.provider.UserInfoEndpoint()
	if err := d.metadata.checkEndpoint(address); err != nil {
		return info, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return info, err
	}
	tokens.SetAuthHeader(request)
	response, err := d.metadata.client.Do(request)
	if err != nil {
		return info, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return info, errors.New("the status is " + response.Status)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return info, err
	}
	if media, _, err := mime.ParseMediaType(response.Header.Get("Content-Type")); err == nil && media == "application/jwt" {
		if body, err = d.keys.VerifySignature(ctx, string(body)); err != nil {
			return info, err
		}
	}
	if err = json.Unmarshal(body, &info); err == nil && info.Subject == "" {
		err = errors.New("it has no subject")
	}
	return info, err
}
