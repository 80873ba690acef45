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
	"net/url"
	"strings"
	"time"

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
	tokens, err := d.exchange(ctx, code, r.Verifier)
	if err != nil {
		return people.Identity{}, err
	}
	found, err := d.verify(ctx, tokens, r.Nonce)
	if err != nil {
		// The provider's keys may have another address since the metadata were read.
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

// tokenResponse is the part of a response of the token endpoint that the portal reads. What it does
// not need may have any form.
type tokenResponse struct {
	IDToken     text `json:"id_token"`
	AccessToken text `json:"access_token"`
	Error       text `json:"error"`
	Description text `json:"error_description"`
}

// exchange exchanges the code for tokens, or returns an [ErrExpired] or [ErrFailed]. If the
// provider does not accept the secret in the way that its metadata name first, exchange sends it in
// the other way: some providers name ways that they do not support, or decode a secret in a header
// wrongly.
func (d *discovered) exchange(ctx context.Context, code, verifier string) (tokens tokenResponse, err error) {
	tokens, refused, err := d.requestTokens(ctx, code, verifier, d.secretInBody)
	if refused {
		others, refused, otherErr := d.requestTokens(ctx, code, verifier, !d.secretInBody)
		switch {
		case otherErr == nil:
			return others, nil
		case !refused:
			place := "body"
			if d.secretInBody {
				place = "header"
			}
			return others, fmt.Errorf("%s; then with the secret in the %s: %w", err.Error(), place, otherErr)
		}
	}
	return tokens, err
}

// requestTokens sends the request of exchange, with the client secret in the body or in a header.
// The result refused means that the provider does not accept the secret.
func (d *discovered) requestTokens(ctx context.Context, code, verifier string, secretInBody bool) (tokens tokenResponse, refused bool, err error) {
	config := d.metadata.config
	form := url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "code_verifier": {verifier}, "redirect_uri": {config.RedirectURL},
	}
	if secretInBody {
		form.Set("client_id", config.ClientID)
		form.Set("client_secret", config.ClientSecret)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.oauth.Endpoint.TokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		return tokens, false, failure("the token endpoint", err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept", "application/json")
	if !secretInBody { // RFC 6749, section 2.3.1
		request.SetBasicAuth(url.QueryEscape(config.ClientID), url.QueryEscape(config.ClientSecret))
	}
	response, err := d.metadata.client.Do(request)
	if err != nil {
		return tokens, false, failure("the token endpoint", err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return tokens, false, failure("the token endpoint", err)
	}
	err = json.Unmarshal(body, &tokens)
	if response.StatusCode < 300 && tokens.Error == "" {
		if err != nil {
			err = failure("the token endpoint", err)
		}
		return tokens, false, err
	}
	cause := fmt.Errorf("the status is %.100s, the error is %s", response.Status,
		described(string(tokens.Error), strings.ReplaceAll(string(tokens.Description), config.ClientSecret, "…")))
	if tokens.Error == "invalid_grant" { // such as a code that has expired or was used before
		return tokens, false, expired("the token endpoint", cause)
	}
	return tokens, response.StatusCode == http.StatusUnauthorized || tokens.Error == "invalid_client", failure("the token endpoint", cause)
}

// verify returns the claims of the ID token if it is valid and was issued for this request.
func (d *discovered) verify(ctx context.Context, tokens tokenResponse, nonce string) (claims, error) {
	if tokens.IDToken == "" {
		return claims{}, errors.New("it is missing")
	}
	token, err := d.verifier.Verify(ctx, string(tokens.IDToken))
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
	case !found.hasSubject():
		return claims{}, errors.New("the subject is invalid")
	}
	return found, found.checkParty(d.metadata.config.ClientID, len(token.Audience))
}

var errOtherSubject = errors.New("it is about another subject")

// addEmail reads the email from the UserInfo endpoint, for providers whose ID tokens have none.
func (d *discovered) addEmail(ctx context.Context, tokens tokenResponse, found *claims) error {
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
func (d *discovered) readUserInfo(ctx context.Context, tokens tokenResponse) (info claims, err error) {
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
	request.Header.Set("Authorization", "Bearer "+string(tokens.AccessToken))
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
