package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"portal/models"
	"portal/models/modelstest"
)

func TestResetSecondFactorLetsThePasswordSignIn(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		ctx, store := t.Context(), modelstest.Open(t, url, models.Options{})
		createAccount(t, store)
		user, err := store.SignIn.VerifyPassword(ctx, testEmail, testPassword, models.Client{Address: "192.0.2.1"})
		modelstest.Must(t, err)
		token, err := store.Sessions.Create(ctx, user, models.Client{})
		modelstest.Must(t, err)
		session, err := store.Sessions.Find(ctx, token, models.Client{})
		modelstest.Must(t, err)
		secret, err := store.Credentials.StartTOTP(ctx, session)
		modelstest.Must(t, err)
		code, err := totp.GenerateCode(secret, time.Now())
		modelstest.Must(t, err)
		actor := models.UserActor(user.ID, "192.0.2.1")
		_, err = store.Credentials.EnableTOTP(ctx, session, code, actor)
		modelstest.Must(t, err)
		passkey := models.Passkey{CredentialID: []byte("a passkey"), Credential: "{}", Name: "Phone"}
		modelstest.Must(t, store.Credentials.AddPasskey(ctx, session, passkey, "a challenge", actor))
		if signedIn, err := store.SignIn.Start(ctx, user, models.WithPassword, models.Client{}); err != nil || !signedIn.Pending {
			t.Fatalf("second step due: %t, %v", signedIn.Pending, err)
		}

		reset := func(email string) result {
			return portal(t, databaseEnv(url), "", "user", "reset-second-factor", "--email", email)
		}
		reset("bob@example.com").failsWith(t, "bob@example.com", "not found", "portal user list")
		if _, err := store.Sessions.Find(ctx, token, models.Client{}); err != nil {
			t.Errorf("a reset of another user ends the session: %v", err)
		}
		if r := reset(strings.ToUpper(testEmail)); r.status != 0 || r.stdout != "" || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("want one line on standard error, got %+v", r)
		}

		if _, err := store.Sessions.Find(ctx, token, models.Client{}); !errors.Is(err, models.ErrSessionNotFound) {
			t.Errorf("a session is still valid: %v", err)
		}
		if signedIn, err := store.SignIn.Start(ctx, user, models.WithPassword, models.Client{}); err != nil || signedIn.Pending {
			t.Errorf("second step due: %t, %v", signedIn.Pending, err)
		}
		factors, err := store.Credentials.Factors(ctx, session)
		modelstest.Must(t, err)
		passkeys, err := store.Credentials.Passkeys(ctx, session)
		if err != nil || factors.AuthenticatorSince != nil || factors.RecoveryCodes != 0 || len(passkeys) != 0 {
			t.Errorf("left: %+v, %d passkeys, %v", factors, len(passkeys), err)
		}
	})
}
