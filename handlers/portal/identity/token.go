package identity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/google/uuid"
	"golang.org/x/oauth2"

	"portal/models"
)

const (
	maxSubject = 255 // characters (OpenID Connect Core, section 2)
	maxEmail   = 254 // bytes (RFC 5321, section 4.5.3.1.3)
)

// claims are the claims of an ID token or a UserInfo response that the portal reads.
type claims struct {
	Subject         string   `json:"sub"`
	AuthorizedParty string   `json:"azp"`
	Email           string   `json:"email"`
	EmailVerified   verified `json:"email_verified"`
	AuthTime        int64    `json:"auth_time"` // seconds since 1970; 0: unknown

	// Of any type, because only a portal that reads them may refuse a wrong one.
	Account any `json:"portal_account"`
	Role    any `json:"portal_role"`
}

// verified is true for true and "true". Some providers send a string.
type verified bool

func (v *verified) UnmarshalJSON(data []byte) error {
	var value any
	err := json.Unmarshal(data, &value)
	*v = value == true || value == "true"
	return err
}

// access returns the account and the role in the claims, or nil unless both are valid.
func (c claims) access() *models.IdentityAccess {
	account, _ := c.Account.(string)
	role, _ := c.Role.(string)
	id, ok := models.ParseID(account)
	if !ok || id == uuid.Nil || models.Role(role) != models.RoleOwner && models.Role(role) != models.RoleMember {
		return nil
	}
	return &models.IdentityAccess{AccountID: id, Role: models.Role(role)}
}

// redeem exchanges the code for the identity, and does not keep the tokens.
func (d *discovered) redeem(ctx context.Context, r AuthRequest, code string) (models.Identity, error) {
	ctx = oidc.ClientContext(ctx, d.metadata.client)
	tokens, err := d.oauth.Exchange(ctx, code, oauth2.VerifierOption(r.Verifier))
	if err != nil {
		return models.Identity{}, exchangeFailure(err)
	}
	found, err := d.verify(ctx, tokens, r.Nonce)
	if err != nil {
		// The provider may have changed its keys' algorithm since the metadata were read.
		if current, readErr := d.metadata.get(ctx, metadataPause); readErr == nil && current != d {
			found, err = current.verify(ctx, tokens, r.Nonce)
		}
	}
	if err != nil {
		return models.Identity{}, failure("the ID token", err)
	}
	access := found.access() // of the ID token only, which is signed
	if found.Email == "" && d.userInfo {
		if err := d.addEmail(ctx, tokens, &found); err != nil {
			return models.Identity{}, failure("the UserInfo response", err)
		}
	}
	identity := models.Identity{Issuer: d.metadata.config.Issuer, Subject: found.Subject, Access: access}
	if found.AuthTime > 0 {
		identity.AuthenticatedAt = time.Unix(found.AuthTime, 0)
	}
	if len(found.Email) <= maxEmail && isText(found.Email) {
		identity.Email, identity.EmailVerified = found.Email, bool(found.EmailVerified)
	}
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
	return failure("the token endpoint", fmt.Errorf("the error is %.100q", refused.ErrorCode))
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
	case found.AuthorizedParty != "" && found.AuthorizedParty != d.metadata.config.ClientID,
		found.AuthorizedParty == "" && len(token.Audience) > 1:
		return claims{}, fmt.Errorf("the authorized party is %.100q", found.AuthorizedParty)
	case found.Subject == "" || utf8.RuneCountInString(found.Subject) > maxSubject || !isText(found.Subject):
		return claims{}, errors.New("the subject is invalid")
	}
	return found, nil
}

// addEmail reads the email from the UserInfo endpoint, for providers whose ID tokens have none.
func (d *discovered) addEmail(ctx context.Context, tokens *oauth2.Token, found *claims) error {
	info, err := d.provider.UserInfo(ctx, oauth2.StaticTokenSource(tokens))
	if err != nil {
		return err
	}
	if info.Subject != found.Subject { // OpenID Connect Core, section 5.3.2
		return errors.New("it is about another subject")
	}
	token := *found
	err = info.Claims(found)
	found.Subject, found.AuthTime = token.Subject, token.AuthTime
	return err
}

// isText reports whether every database can store the value.
func isText(value string) bool { return utf8.ValidString(value) && !strings.ContainsRune(value, 0) }
