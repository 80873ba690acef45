package portal_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/widget"
	"portal/models/workload"
)

// trusting returns the fields of the form for a new key without a secret.
func trusting(more ...string) url.Values {
	fields := restricted("credential", "workload", "provider", "github", "issuer", "https://token.actions.githubusercontent.com",
		"audience", httpBase, "claim.repository", "acme/site", "claim.environment", "production")
	for i := 0; i < len(more); i += 2 {
		fields.Set(more[i], more[i+1])
	}
	return fields
}

func TestGeneratingAKeyWithoutSecret(t *testing.T) {
	asCustomer(t, models.Options{}, func(t *testing.T, c customer, v *visitor) {
		credential := c.get("/api-keys").is(http.StatusOK).one("group", "Credential")
		if !credential.one("radio", "Secret key").has("checked") || credential.one("radio", "Workload identity (no secret)").has("checked") {
			t.Error("another credential is chosen")
		}
		// Style sheets hide the provider of a key with a secret.
		chosen := c.get("/api-keys").is(http.StatusOK)
		if names, _ := chosen.options("Provider"); strings.Join(names, ", ") != "Choose, GitHub Actions, GitLab, Google Cloud, AWS, Azure (Entra), Kubernetes, Vercel, Other" {
			t.Errorf("the providers are %q", names)
		}
		chosen.none("textbox", "Issuer")
		// Continue shows the fields of the provider and keeps the input.
		form := v.post("/api-keys/preview", url.Values{"label": {"deploy"}, "credential": {"workload"}, "provider": {"github"}, "networks": {"192.0.2.1"}}).is(http.StatusOK)
		modelstest.Facts(t, form.body, map[string]bool{
			"label":    form.one("textbox", "Label").attr("value") == "deploy",
			"issuer":   form.one("textbox", "Issuer").attr("value") == "https://token.actions.githubusercontent.com",
			"audience": form.one("textbox", "Audience").attr("value") == httpBase,
			"networks": strings.Contains(form.one("textbox", "Allowed networks").text(), "192.0.2.1"),
		})
		form.one("textbox", "Repository")
		form.one("textbox", "Environment")
		if other := v.post("/api-keys/preview", trusting("provider", "gitlab")).is(http.StatusOK); other.one("textbox", "Issuer").attr("value") != "https://gitlab.com" {
			t.Error("the issuer is that of the former provider")
		}
		v.post("/api-keys/preview", trusting()).is(http.StatusOK).says("Jobs of acme/site in environment production")
		if len(c.keys()) != 0 {
			t.Fatal("a preview has generated a key")
		}
		refused := v.post("/api-keys", trusting("claim.repository", "acme/*", "audience", " ")).is(http.StatusUnprocessableEntity)
		refused.says("Wildcards are not supported")
		refused.says("Enter an audience")
		if refused.one("textbox", "Repository").text() != "acme/*" {
			t.Error("the input is lost")
		}
		v.post("/api-keys", trusting("claim.repository", "")).is(http.StatusUnprocessableEntity).says("Enter a repository. All of GitHub shares this issuer")
		v.post("/api-keys", trusting("provider", "")).is(http.StatusUnprocessableEntity).says("Choose one of the providers")
		v.post("/api-keys", trusting("issuer", "https://ci.acme.com")).is(http.StatusUnprocessableEntity).says("Paste the public keys")
		fields := trusting()
		fields.Set("form_id", uuid.NewString())
		answer := v.post("/api-keys", fields)
		key := c.keys()[0]
		path := "/api-keys/" + key.ID.String()
		repeated := v.post("/api-keys", fields).is(http.StatusConflict)
		if strings.Contains(repeated.body, "cannot be shown again") {
			t.Error("a key without a secret has no value to show")
		}
		answer.redirects(path + "/trust?generated=yes")
		page := c.get(path + "/trust?generated=yes").is(http.StatusOK)
		page.one("heading", "Trust rule of production")
		if text := page.text(); strings.Index(text, "Ready to paste") > strings.Index(text, "Who can use the key") {
			t.Error("what to paste is not first")
		}
		page.none("textbox", "Repository")
		page = v.get(page.one("link", "Change").attr("href")).is(http.StatusOK)
		if v.htmx {
			page = c.get(path + "/trust").is(http.StatusOK)
		}
		page.one("heading", "Trust rule of production")
		page.one("button", "Cancel")
		page.one("button", "Save trust rule")
		page.says("Jobs of acme/site in environment production")
		page.says(key.ID.String())
		if row := c.get("/api-keys").byID("api-key-" + key.ID.String()); !strings.Contains(row.text(), "Workload identity") || strings.Contains(row.text(), "nas_") {
			t.Errorf("the row says %q", row.text())
		}
		row := c.get("/api-keys").byID("api-key-" + key.ID.String())
		row.one("link", "Trust rule")
		row.none("link", "Rotate")
		row.says("GitHub Actions: acme/site")
		c.get(path + "/rotation").redirects(path + "/trust")
	})
}

func TestTrustRule(t *testing.T) {
	asCustomer(t, models.Options{}, func(t *testing.T, c customer, v *visitor) {
		c.post("/api-keys", trusting())
		key := c.keys()[0]
		path := "/api-keys/" + key.ID.String() + "/trust"
		reason := ""
		subject := keys.WorkloadToken{
			Address: "203.0.113.9", Pins: map[string]string{"repository_id": "74"}, ExpiresAt: time.Now().Add(time.Hour),
			Check: func(map[string]string) string { return reason },
		}
		modelstest.Value(c.store.API.Exchange(t.Context(), key, subject))(t)
		reason = "environment is <b>staging</b>"
		modelstest.Value(c.store.API.Exchange(t.Context(), key, subject))(t)
		page := c.get(path).is(http.StatusOK)
		page.says("Pinned at the first exchange")
		page.says("74")
		usage := c.get("/api-keys/" + key.ID.String()).is(http.StatusOK)
		table := usage.one("table", "Exchanges").text()
		if !strings.Contains(table, "Accepted") || !strings.Contains(table, "Refused: environment is <b>staging</b>") || !strings.Contains(table, "203.0.113.9") {
			t.Errorf("the table says %q", table)
		}
		access := widget.AccessClaims{AccountID: key.AccountID, KeyID: key.ID, Rule: *key.TrustVersion}
		modelstest.Value(c.store.API.AuthenticateAccessToken(t.Context(), access, keys.Source{}))(t)
		if file := c.get("/usage/export?key=" + key.ID.String()).is(http.StatusOK).body; !strings.Contains(file, `","production","","1","0"`) {
			t.Errorf("the file of its usage is %s", file)
		}
		wrong := v.post(path, trusting("claim.environment", "a*")).is(http.StatusUnprocessableEntity)
		wrong.says("Wildcards are not supported")
		wrong.one("textbox", "Environment").with("aria-invalid", "true").with("autofocus", "")
		v.post(path+"/preview", trusting("claim.environment", "staging")).is(http.StatusOK).says("in environment staging")
		v.post(path, trusting("claim.environment", "staging\r\nproduction", "claim.run_attempt", "1")).redirects(path)
		saved := c.keys()[0]
		want := map[string][]string{"repository": {"acme/site"}, "environment": {"production", "staging"}, "run_attempt": {"1"}}
		if saved.TrustPins != nil || *saved.TrustVersion == *key.TrustVersion ||
			!saved.Trust.Equal(workload.Rule{Provider: workload.GitHub, Issuer: saved.Trust.Issuer, Audience: httpBase, Claims: want}) {
			t.Errorf("%+v", saved.Trust)
		}
		// A claim without a field of its own is kept.
		c.get(path).is(http.StatusOK).one("textbox", "run_attempt")
		c.get("/activity").says("saved the trust rule of the API key")
		foreign := c.customer(t)
		foreign.get(path).is(http.StatusNotFound)
		foreign.post(path, trusting()).is(http.StatusNotFound)
		withSecret := c.key("with a secret")
		c.get("/api-keys/" + withSecret.ID.String() + "/trust").is(http.StatusNotFound)
		c.revoke(key)
		v.post(path, trusting()).redirects("/api-keys")
	})
}

// Two users open the page of a rule. The first one narrows the rule, then the second one adds a
// repository.
func TestStaleFormOfATrustRuleDoesNotWidenIt(t *testing.T) {
	asCustomer(t, models.Options{}, func(t *testing.T, c customer, v *visitor) {
		c.post("/api-keys", trusting("claim.environment", "staging\nproduction"))
		path := "/api-keys/" + c.keys()[0].ID.String() + "/trust"
		opened := c.get(path).is(http.StatusOK).hidden("made_from")
		for range 2 { // a double click
			v.post(path, trusting("made_from", opened)).redirects(path)
		}
		narrowed := c.keys()[0]
		stale := trusting("made_from", opened, "claim.repository", "acme/site\nacme/shop", "claim.environment", "staging\nproduction")
		for way, wrong := range map[string]string{"/preview": "staging", "": "a*"} {
			form := trusting("made_from", opened, "claim.environment", wrong)
			if kept := v.post(path+way, form).hidden("made_from"); kept != opened {
				t.Errorf("after %q, the form is made from another version", way)
			}
		}
		refused := v.post(path, stale).is(http.StatusConflict)
		refused.one("alert", "This trust rule was changed after you opened the form, so nothing was saved.").
			with("autofocus", "").says("Who can use the key "+narrowed.Trust.String(), "Issuer https://token.actions", "Repository acme/site Environment production")
		if refused.written("Repository") != "acme/site\nacme/shop" {
			t.Error("the input is lost")
		}
		if same := c.keys()[0]; *same.TrustVersion != *narrowed.TrustVersion {
			t.Errorf("the stale form made %v", same.Trust)
		}
		stale.Set("made_from", refused.hidden("made_from"))
		v.post(path, stale).redirects(path)
		if changed := c.keys()[0]; len(changed.Trust.Claims["repository"]) != 2 {
			t.Errorf("saving again made %v", changed.Trust)
		}
	})
}

func TestTrustRuleOfAnotherProvider(t *testing.T) {
	asCustomer(t, models.Options{}, func(t *testing.T, c customer, v *visitor) {
		form := v.post("/api-keys/preview", trusting("provider", "other")).is(http.StatusOK)
		form.one("textbox", "Claims")
		form.one("textbox", "Public keys (JWKS)")
		const keys = `{"keys":[{"kty":"EC","kid":"1","crv":"P-256","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}]}`
		v.post("/api-keys", trusting("provider", "other", "issuer", "https://ci.acme.com", "claims", "sub", "jwks", keys)).
			is(http.StatusUnprocessableEntity).says("name=value")
		v.post("/api-keys", trusting("provider", "other", "issuer", "https://ci.acme.com", "claims", "sub=deploy\r\nref = main", "jwks", keys))
		rule := c.keys()[0].Trust
		if rule.Claims["sub"][0] != "deploy" || rule.Claims["ref"][0] != "main" || string(rule.JWKS) != keys {
			t.Errorf("%+v", rule)
		}
	})
}

func TestKeysWithoutSecretAreOff(t *testing.T) {
	asCustomer(t, models.Options{Issuers: workload.Issuers{Off: true}}, func(t *testing.T, c customer, v *visitor) {
		c.get("/api-keys").is(http.StatusOK).none("group", "Credential")
		fields := trusting()
		fields.Set("form_id", uuid.NewString())
		v.post("/api-keys", fields).is(http.StatusOK)
		if key := c.keys()[0]; key.IsWorkload() {
			t.Error("a key without a secret was generated")
		}
	})
}
