package people_test

import (
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"portal/models"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/secret"
	"portal/models/value"
)

// firstStep returns the token of a pending sign-in.
func (f *fixture) firstStep(t *testing.T, c customer) string {
	t.Helper()
	signedIn, err := f.SignIn.Start(t.Context(), c.User, modelstest.Browser)
	if err != nil || !signedIn.Pending {
		t.Fatalf("pending %t, %v", signedIn.Pending, err)
	}
	return signedIn.Token
}

func (f *fixture) secondStep(t *testing.T, token, code string) (sessionToken string, err error) {
	t.Helper()
	signedIn, err := f.SignIn.Finish(t.Context(), token, code, modelstest.Browser)
	return signedIn.Token, err
}

func TestSecondStep(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		lost := f.Session(t, c)
		a, recovery := f.TwoSteps(t, c)
		checkError(t, "a session from before", errOf(f.Sessions.Find(ctx, lost, modelstest.Browser)), value.ErrSessionNotFound)

		pending := f.firstStep(t, c)
		checkError(t, "the pending sign-in as a session", errOf(f.Sessions.Find(ctx, pending, modelstest.Browser)), value.ErrSessionNotFound)
		for name, code := range map[string]string{
			"empty": "", "another": "abcdef", "too early": a.Code(t, 90*time.Second), "too late": a.Code(t, -90*time.Second),
			"another recovery code": strings.Repeat("a", 24), "the secret": a.Secret,
		} {
			checkError(t, name, errOf(f.secondStep(t, pending, code)), value.ErrWrongCode)
		}
		checkError(t, "another token", errOf(f.secondStep(t, pending+"x", a.Code(t, 0))), value.ErrSignInNotPending)
		code := a.Code(t, 0)
		token := modelstest.Value(f.secondStep(t, pending, code[:3]+" "+code[3:]))(t)
		must(t, errOf(f.Sessions.Find(ctx, token, modelstest.Browser)))
		checkError(t, "the same sign-in again", errOf(f.secondStep(t, pending, a.Code(t, 30*time.Second))), value.ErrSignInNotPending)
		pending = f.firstStep(t, c)
		checkError(t, "the same code again", errOf(f.secondStep(t, pending, code)), value.ErrWrongCode)
		checkError(t, "an older code", errOf(f.secondStep(t, pending, a.Code(t, -30*time.Second))), value.ErrWrongCode)
		must(t, errOf(f.secondStep(t, pending, a.Code(t, 30*time.Second))))

		typed := strings.ToUpper(strings.ReplaceAll(recovery[3], "-", " "))
		must(t, errOf(f.secondStep(t, f.firstStep(t, c), typed)))
		checkError(t, "a used recovery code", errOf(f.secondStep(t, f.firstStep(t, c), recovery[3])), value.ErrWrongCode)
		session := f.Find(t, token)
		if factors, err := f.Credentials.Factors(ctx, session); err != nil || factors.AuthenticatorSince == nil || factors.RecoveryCodes != 9 {
			t.Errorf("%+v, %v", factors, err)
		}
		renewed, err := f.Credentials.RenewRecoveryCodes(ctx, session, c.Actor)
		if err != nil || len(renewed) != 10 {
			t.Fatalf("%v, %v", renewed, err)
		}
		checkError(t, "a replaced recovery code", errOf(f.secondStep(t, f.firstStep(t, c), recovery[4])), value.ErrWrongCode)
		pending = f.firstStep(t, c)
		must(t, f.Credentials.DisableTOTP(ctx, session, c.Actor))
		checkError(t, "a sign-in from before", errOf(f.secondStep(t, pending, renewed[0])), value.ErrSignInNotPending)
		if signedIn, err := f.SignIn.Start(ctx, c.User, modelstest.Browser); err != nil || signedIn.Pending {
			t.Errorf("pending %t, %v", signedIn.Pending, err)
		}
		f.CheckCount(t, 0, "SELECT count(*) FROM recovery_codes")
		for _, action := range []record.Action{
			record.ActionTOTPOn, record.ActionTOTPOff, record.ActionRecoveryCodeUsed, record.ActionRecoveryCodesRenewed,
		} {
			if recorded := f.Recorded(t, c, action); len(recorded) != 1 || recorded[0].ActorName != c.User.Email {
				t.Errorf("%s: recorded %+v", action, recorded)
			}
		}
		eventually(t, "the wrong codes are recorded", func() bool { return len(f.Recorded(t, c, record.ActionCodeRefused)) > 0 })
	})
}

// Only a password needs a second step, because the other ways to sign in prove more than a password
// does.
func TestSecondStepIsDueAfterAPasswordOnly(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		passkey := f.Passkey(t, f.SignedIn(t, c), c.Actor)
		passkey.SignCount++
		f.TwoSteps(t, c)
		identity := people.Identity{Issuer: "https://a.example", Subject: "ada"}
		must(t, f.Credentials.ConnectIdentity(ctx, f.Find(t, f.linkSession(t, c)), identity, "Acme ID", c.Actor))
		for name, signIn := range map[string]func() (people.SignedIn, error){
			"link": func() (people.SignedIn, error) {
				return f.SignIn.UseLink(ctx, f.link(t, c, c.User), modelstest.Browser)
			},
			"passkey": func() (people.SignedIn, error) {
				return f.SignIn.WithPasskey(ctx, passkey, "challenge", modelstest.Browser)
			},
			"identity": func() (people.SignedIn, error) {
				return f.SignIn.WithIdentity(ctx, identity, false, modelstest.Browser)
			},
		} {
			if signedIn, err := signIn(); err != nil || signedIn.Pending {
				t.Errorf("%s: pending %t, %v", name, signedIn.Pending, err)
			}
		}
		f.firstStep(t, c)
	})
}

func TestPendingSignInEnds(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		for name, test := range map[string]struct {
			end  func(c customer) error
			want error
		}{
			"after ten minutes":     {func(customer) error { f.Clock.Advance(10 * time.Minute); return nil }, value.ErrSignInNotPending},
			"by a new password":     {func(c customer) error { return f.Credentials.ResetPassword(ctx, c.User.Email, newPassword) }, value.ErrSignInNotPending},
			"by disabling the user": {func(c customer) error { return f.People.SetDisabled(ctx, c.User.Email, true) }, value.ErrSignInNotPending},
			"by a reset":            {func(c customer) error { return f.Credentials.ResetSecondFactor(ctx, c.User.AccountID, c.User.ID) }, value.ErrSignInNotPending},
			"with ten newer ones": {func(c customer) error {
				f.Clock.Advance(time.Second)
				for range 10 {
					f.firstStep(t, c)
				}
				return nil
			}, value.ErrSignInNotPending},
		} {
			c := f.Customer(t)
			f.Owner(t, c)
			a, _ := f.TwoSteps(t, c)
			pending := f.firstStep(t, c)
			must(t, test.end(c))
			checkError(t, name, errOf(f.secondStep(t, pending, a.Code(t, 0))), test.want)
		}
		f.Clock.Advance(2 * time.Hour)
		must(t, f.Erasures.Purge(ctx))
		f.CheckCount(t, 0, "SELECT count(*) FROM pending_sign_ins")
	})
}

func TestGuessesOfCodesAreLimited(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, other := f.Customer(t), f.Customer(t)
		a, recovery := f.TwoSteps(t, c)
		b, _ := f.TwoSteps(t, other)
		stores := []*models.Store{f.Store, f.Open(t, models.Options{})}
		pending := []string{f.firstStep(t, c), f.firstStep(t, c)}
		guess := func(i int, code string) error {
			client := people.Client{Address: fmt.Sprintf("198.51.100.%d", i)}
			for {
				err := errOf(stores[i%2].SignIn.Finish(t.Context(), pending[i%2], code, client))
				// A busy machine: the guesses wait for each other.
				if !errors.Is(err, value.ErrUnavailable) {
					return err
				}
			}
		}
		_, errs := modelstest.AtOnce(20, func(i int) error { return guess(i, "abcdef") })
		limited := 0
		for _, err := range errs {
			if _, ok := errors.AsType[*value.SignInLimitError](err); ok {
				limited++
			} else {
				checkError(t, "a guess", err, value.ErrWrongCode)
			}
		}
		if limited != 10 {
			t.Errorf("%d of 20 guesses were limited, want 10", limited)
		}
		for name, code := range map[string]string{"the code": a.Code(t, 0), "a recovery code": recovery[0]} {
			if limit, ok := errors.AsType[*value.SignInLimitError](guess(0, code)); !ok || !limit.Codes {
				t.Errorf("%s is not limited", name)
			}
		}
		must(t, errOf(f.secondStep(t, f.firstStep(t, other), b.Code(t, 0))))
		f.Clock.Advance(time.Minute)
		must(t, guess(0, a.Code(t, 0)))
	})
}

// The limit of a day holds on every instance. Recovery codes still work, and so does the app of
// another user.
func TestGuessesOfCodesAreLimitedForADay(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, other := f.Customer(t), f.Customer(t)
		a, recovery := f.TwoSteps(t, c)
		b, _ := f.TwoSteps(t, other)
		stores := []*models.Store{f.Store, f.Open(t, models.Options{})}
		end := f.Clock.Now().Add(24 * time.Hour)
		guessTenTimes := func() {
			pending := f.firstStep(t, c)
			_, errs := modelstest.AtOnce(10, func(i int) error {
				return errOf(stores[i%2].SignIn.Finish(t.Context(), pending, "abcdef", modelstest.Browser))
			})
			checkErrors(t, "a guess", errs, value.ErrWrongCode)
			f.Clock.Advance(time.Minute)
		}
		refused := func(store *models.Store) {
			t.Helper()
			_, err := store.SignIn.Finish(t.Context(), f.firstStep(t, c), a.Code(t, 0), modelstest.Browser)
			limit, ok := errors.AsType[*value.SignInLimitError](err)
			if !ok || !limit.Codes || !limit.AppCodes || limit.RetryAfter != end.Sub(f.Clock.Now()) {
				t.Errorf("the right code: %+v", err)
			}
		}
		guessTenTimes()
		f.CheckCount(t, 10, "SELECT refused_codes FROM authenticators WHERE user_id = ?", c.User.ID)
		f.Exec(t, "UPDATE authenticators SET refused_codes = 90 WHERE user_id = ?", c.User.ID)
		// The sign-in of the user gives the attacker no further guesses.
		must(t, errOf(f.secondStep(t, f.firstStep(t, c), a.Code(t, 0))))
		guessTenTimes()
		for i := range 12 { // more than the limit of a minute
			refused(stores[i%2])
		}
		must(t, errOf(f.secondStep(t, f.firstStep(t, c), recovery[0])))
		must(t, errOf(f.secondStep(t, f.firstStep(t, other), b.Code(t, 0))))
		f.Clock.Advance(end.Sub(f.Clock.Now()) - time.Second)
		refused(f.Store)
		f.Clock.Advance(time.Second)
		must(t, errOf(f.secondStep(t, f.firstStep(t, c), a.Code(t, 0))))
	})
}

// An attacker who reads the user's emails must not get further guesses with each link.
func TestNewPasswordEndsTheLimitOfCodesUnlessSetByEmail(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		a, _ := f.TwoSteps(t, c)
		session := f.Find(t, f.linkSession(t, c))
		newest := password
		secondStep := func() error {
			t.Helper()
			f.Clock.Advance(time.Minute) // to the next code
			c.User = modelstest.Value(f.SignIn.VerifyPassword(ctx, c.User.Email, newest, modelstest.Browser))(t)
			return errOf(f.secondStep(t, f.firstStep(t, c), a.Code(t, 0)))
		}
		set := func(password string, err error) {
			t.Helper()
			must(t, err)
			newest = password
		}
		f.Exec(t, "UPDATE authenticators SET refused_codes = 100, refused_since = ?", f.Clock.Now())
		set(newPassword, errOf(f.Credentials.ChangePassword(ctx, session, newest, newPassword, c.Actor)))
		must(t, secondStep())

		f.Exec(t, "UPDATE authenticators SET refused_codes = 100, refused_since = ?", f.Clock.Now())
		set(password, errOf(f.Credentials.UsePasswordReset(ctx, f.ResetToken(t, c.User.Email), password, modelstest.Browser)))
		if _, limited := errors.AsType[*value.SignInLimitError](secondStep()); !limited {
			t.Error("a password that was set with a link ends the limit")
		}
		set(newPassword, f.Credentials.ResetPassword(ctx, c.User.Email, newPassword))
		must(t, secondStep())
	})
}

// Ten wrong codes within a day warn the user once.
func TestWrongCodesWarnTheUser(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		f.Member(t, c, people.RoleOwner)
		a, _ := f.TwoSteps(t, c)
		f.Store = f.Open(t, models.Options{Mail: true})
		guess := func(times int) {
			t.Helper()
			for range times {
				checkError(t, "a guess", errOf(f.secondStep(t, f.firstStep(t, c), "abcdef")), value.ErrWrongCode)
				f.Clock.Advance(time.Minute) // slower than the limit of a minute
			}
		}
		warnings := func(want int) {
			t.Helper()
			recorded := f.Recorded(t, c, record.ActionCodesRefused)
			if len(recorded) != want || recorded[0].Label != c.User.Email || recorded[0].Address != modelstest.Browser.Address {
				t.Errorf("want %d activities: %+v", want, recorded)
			}
			mails := "SELECT count(*) FROM outbox WHERE kind = 'codes.refused' AND recipient = ?"
			if n := f.Count(t, mails, c.User.Email); n != want || f.Count(t, "SELECT count(*) FROM outbox WHERE kind = 'codes.refused'") != want {
				t.Errorf("%d mails, want %d", n, want)
			}
		}
		guess(9)
		if recorded := f.Recorded(t, c, record.ActionCodesRefused); len(recorded) != 0 {
			t.Errorf("after nine codes: %+v", recorded)
		}
		must(t, errOf(f.secondStep(t, f.firstStep(t, c), a.Code(t, 0))))
		guess(1)
		warnings(1)
		guess(20)
		warnings(1)
		f.Clock.Advance(24 * time.Hour)
		guess(10)
		warnings(2)
	})
}

// Of several concurrent requests with one code, one signs in.
func TestCodeSignsInOnce(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		a, recovery := f.TwoSteps(t, c)
		stores := []*models.Store{f.Store, f.Open(t, models.Options{})}
		for _, code := range []string{a.Code(t, 0), recovery[0]} {
			pending := []string{f.firstStep(t, c), f.firstStep(t, c)}
			done, errs := modelstest.AtOnce(4, func(i int) error {
				return errOf(stores[i%2].SignIn.Finish(t.Context(), pending[i%2], code, modelstest.Browser))
			})
			if done != 1 {
				t.Errorf("%d requests signed in: %v", done, errs)
			}
		}
	})
}

func TestAuthenticatorSecretIsEncrypted(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		a, recovery := f.TwoSteps(t, c)
		raw := modelstest.Value(base32.StdEncoding.DecodeString(a.Secret))(t)
		dump := f.Dump(t)
		for _, secret := range append(recovery, a.Secret, string(raw), fmt.Sprintf("%x", raw), strings.ReplaceAll(recovery[0], "-", "")) {
			if strings.Contains(dump, secret) {
				t.Errorf("the database contains %q", secret)
			}
		}
		// The secret of one user is useless in the row of another.
		other := f.Customer(t)
		f.TwoSteps(t, other)
		f.Exec(t, "UPDATE authenticators SET secret = (SELECT secret FROM authenticators WHERE user_id = ?), last_step = 0 WHERE user_id = ?", c.User.ID, other.User.ID)
		checkError(t, "another user's secret", errOf(f.secondStep(t, f.firstStep(t, other), a.Code(t, 0))), value.ErrWrongCode)
	})
}

func TestSecretOfThePortalRotates(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		before, after := strings.Repeat("before", 8), strings.Repeat("after.", 8)
		use := func(current, previous string) {
			t.Helper()
			keyring := modelstest.Value(secret.NewKeyring(current, previous))(t)
			f.Store = f.Open(t, models.Options{Keyring: keyring})
		}
		use(before, "")
		a, recovery := f.TwoSteps(t, c)
		for _, secrets := range [][2]string{{before, after}, {after, before}} {
			use(secrets[0], secrets[1])
			must(t, errOf(f.secondStep(t, f.firstStep(t, c), a.Code(t, 0))))
			f.Clock.Advance(time.Minute)
		}
		must(t, f.Credentials.ResealTOTP(ctx))
		use(after, "")
		must(t, errOf(f.secondStep(t, f.firstStep(t, c), a.Code(t, 0))))
		use(before, "") // a lost secret
		f.Clock.Advance(time.Minute)
		checkError(t, "with a lost secret", errOf(f.secondStep(t, f.firstStep(t, c), a.Code(t, 0))), value.ErrWrongCode)
		must(t, errOf(f.secondStep(t, f.firstStep(t, c), recovery[0])))
	})
}

// Apps, keyboards and mail programs write codes differently.
func TestCodesAreReadAsPeopleTypeThem(t *testing.T) {
	wide := func(code string) string {
		return strings.Map(func(r rune) rune { return r - '!' + '！' }, code)
	}
	arabic := func(code string) string {
		return strings.Map(func(r rune) rune {
			if '0' <= r && r <= '9' {
				return r - '0' + '٠'
			}
			return r
		}, code)
	}
	eachDatabase(t, func(t *testing.T, f *fixture) {
		for name, typed := range map[string]func(code string) string{
			"a space":              func(code string) string { return " " + code[:3] + "\u00a0" + code[3:] + "\n" },
			"dashes":               func(code string) string { return strings.ReplaceAll(code[:3]+"-"+code[3:], "-", "–") },
			"full-width digits":    wide,
			"Arabic digits":        arabic,
			"a left-to-right mark": func(code string) string { return "\u200e" + code },
		} {
			c := f.Customer(t)
			a, session := modelstest.App{Fixture: f.Fixture}, f.SignedIn(t, c)
			a.Secret = modelstest.Value(f.Credentials.StartTOTP(t.Context(), session))(t)
			recovery, err := f.Credentials.EnableTOTP(t.Context(), session, typed(a.Code(t, 0)), c.Actor)
			if err != nil {
				t.Errorf("the first code with %s: %v", name, err)
				continue
			}
			f.Clock.Advance(time.Minute)
			for kind, code := range map[string]string{"a code": a.Code(t, 0), "a recovery code": recovery[0]} {
				if _, err := f.secondStep(t, f.firstStep(t, c), typed(code)); err != nil {
					t.Errorf("%s with %s: %v", kind, name, err)
				}
			}
		}
	})
}

func TestAuthenticatorSetUp(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		session := f.SignedIn(t, c)
		enable := func(code string) error { return errOf(f.Credentials.EnableTOTP(ctx, session, code, c.Actor)) }
		checkError(t, "nothing to confirm", enable("123456"), value.ErrTOTPOff)
		first := modelstest.App{Fixture: f.Fixture}
		first.Secret = modelstest.Value(f.Credentials.StartTOTP(ctx, session))(t)
		second := modelstest.App{Fixture: f.Fixture}
		second.Secret = modelstest.Value(f.Credentials.StartTOTP(ctx, session))(t)
		checkError(t, "the code of a replaced secret", enable(first.Code(t, 0)), value.ErrWrongCode)
		if signedIn, err := f.SignIn.Start(ctx, c.User, modelstest.Browser); err != nil || signedIn.Pending {
			t.Errorf("an unconfirmed app: pending %t, %v", signedIn.Pending, err)
		}
		f.Clock.Advance(time.Hour)
		checkError(t, "too late", enable(second.Code(t, 0)), value.ErrTOTPOff)
		f.TwoSteps(t, c)
		checkError(t, "started again", errOf(f.Credentials.StartTOTP(ctx, session)), value.ErrTOTPOn)
		checkError(t, "confirmed again", enable(second.Code(t, 0)), value.ErrTOTPOn)
	})
}
