package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"

	"portal/models"
	"portal/models/modelstest"
	"portal/models/record"
	"portal/models/widget"
)

const (
	oldSecret = "0123456789abcdef0123456789abcdef"
	newSecret = "fedcba9876543210fedcba9876543210"
)

// The three steps of the guide restart one instance at a time. At every moment, each instance
// accepts the sessions and tokens that the other has signed.
func TestSecretRotationHasNoGap(t *testing.T) {
	t.Parallel()
	secrets := func(secret, previous string) []string {
		return []string{"PORTAL_SECRET=" + secret, "PORTAL_SECRET_PREVIOUS=" + previous}
	}
	for _, algorithm := range widget.Algorithms() {
		t.Run(string(algorithm), func(t *testing.T) {
			t.Parallel()
			r := startRotation(t, append(secrets(oldSecret, ""), "PORTAL_WIDGET_TOKEN_ALG="+string(algorithm)))
			v := r.session(r.one)
			first := r.token(r.one)
			for _, step := range []struct{ name, secret, previous string }{
				{"publish", oldSecret, newSecret}, {"sign", newSecret, oldSecret},
			} {
				r.restart(step.name, secrets(step.secret, step.previous))
				v.At(r.two.URL).Get("/api-keys").Is(http.StatusOK)
				r.two.introspects(t, step.name, r.account.secret, first)
			}
			r.restart("drop", secrets(newSecret, ""))
			v.At(r.one.URL).Get("/api-keys").Is(http.StatusSeeOther)
		})
	}
}

// The same for the algorithm of widget tokens.
func TestAlgorithmChangeHasNoGap(t *testing.T) {
	t.Parallel()
	r := startRotation(t, []string{"PORTAL_SECRET=" + oldSecret})
	first := r.token(r.one)
	for _, algorithms := range []string{"EdDSA,ES256", "ES256,EdDSA", "ES256"} {
		r.restart(algorithms, []string{"PORTAL_WIDGET_TOKEN_ALG=" + algorithms})
		signing, _, _ := strings.Cut(algorithms, ",")
		if got := tokenHeader(t, r.token(r.one))["alg"]; got != signing {
			t.Errorf("%s: signed with %v", algorithms, got)
		}
		r.two.introspects(t, algorithms, r.account.secret, first)
		// Gateways too accept tokens of both algorithms.
		for _, token := range []string{first, r.token(r.one)} {
			r.two.Get("/widget/authorize", modelstest.Bearer(token)).Is(http.StatusOK)
		}
	}
}

// rotation is two instances on one database that restart with new settings.
type rotation struct {
	t        *testing.T
	env      []string
	account  accountWithKey
	one, two *instance
	cached   string // the JWKS before the last step, which verifiers may still have
}

func startRotation(t *testing.T, env []string) *rotation {
	t.Helper()
	databaseURL := modelstest.PostgresURL(t)
	r := &rotation{t: t, account: createAccount(t, modelstest.Open(t, databaseURL, models.Options{}))}
	r.env = append([]string{
		"DATABASE_URL=" + databaseURL, "PORTAL_BASE_URL=http://portal.test", anyPort,
	}, env...)
	r.one, r.two = start(t, r.env), start(t, r.env)
	return r
}

// restart restarts one instance after the other with these variables changed, and checks after each
// that both agree.
func (r *rotation) restart(step string, changed []string) {
	r.t.Helper()
	r.env = append(r.env, changed...) // the last value of a variable counts
	r.cached = r.one.Get("/.well-known/jwks.json").Body
	r.one.Kill()
	r.one = start(r.t, r.env)
	r.agree(step + ", half done")
	r.two.Kill()
	r.two = start(r.t, r.env)
	r.agree(step)
}

// agree checks that each instance accepts the sessions and the tokens of the other, and that
// verifiers need not fetch the keys again at once.
func (r *rotation) agree(step string) {
	r.t.Helper()
	for _, way := range [][2]*instance{{r.one, r.two}, {r.two, r.one}} {
		r.session(way[0]).At(way[1].URL).Get("/api-keys").Is(http.StatusOK)
		issued := r.token(way[0])
		for when, published := range map[string]string{"now": way[1].Get("/.well-known/jwks.json").Body, "before": r.cached} {
			keys := modelstest.Value(keyfunc.NewJWKSetJSON([]byte(published)))(r.t)
			if _, err := jwt.Parse(issued, keys.Keyfunc); err != nil {
				r.t.Errorf("%s: a verifier with the keys from %s refuses a token: %v", step, when, err)
			}
		}
		way[1].introspects(r.t, step, r.account.secret, issued)
	}
}

// session returns a visitor with a session of the instance. A link saves the hashing of a password.
func (r *rotation) session(i *instance) *modelstest.Visitor {
	r.t.Helper()
	store := r.account.store
	user := modelstest.Value(store.People.FindByEmail(r.t.Context(), testEmail))(r.t)
	link := modelstest.Value(store.SignIn.CreateLink(r.t.Context(), r.account.ID, user.ID, record.Operator()))(r.t)
	v := modelstest.NewVisitor(r.t, i.URL)
	v.Post("/sign-in-links/"+link.Token, nil).Is(http.StatusSeeOther)
	return v
}

// token returns a token that the instance has signed.
func (r *rotation) token(i *instance) string {
	r.t.Helper()
	return i.token(r.t, r.account.secret, r.account.agentID)
}

func tokenHeader(t *testing.T, token string) map[string]any {
	t.Helper()
	parsed, _, err := jwt.NewParser().ParseUnverified(token, jwt.MapClaims{})
	modelstest.Must(t, err)
	return parsed.Header
}
