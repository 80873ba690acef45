package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/handlers/api"
	"portal/handlers/handlerstest"
	"portal/models"
	"portal/models/modelstest"
)

// operate sends a request with the operator token. An empty content sends no body.
func (s *service) operate(method, path, content string) answer {
	s.t.Helper()
	options := []option{bearer(operatorToken)}
	if content != "" {
		options = append(options, jsonBody(content))
	}
	return s.send(method, path, options...)
}

// account creates an account and returns its path.
func (s *service) account() (id uuid.UUID, path string) {
	s.t.Helper()
	id = uuid.New()
	path = "/operator/accounts/" + id.String()
	s.operate(http.MethodPut, path, `{"name": "Acme"}`).is(http.StatusCreated)
	return id, path
}

// user adds a user and returns the id.
func (s *service) user(account, role string) string {
	s.t.Helper()
	var user struct{ ID string }
	s.operate(http.MethodPost, account+"/users", `{"email": "`+uuid.NewString()+`@example.com", "role": "`+role+`"}`).is(http.StatusCreated).into(&user)
	return user.ID
}

// activities returns the actions and actors of an account's activities, oldest first.
func (s *service) activities(id uuid.UUID) string {
	s.t.Helper()
	list, err := s.store.Activities(s.t.Context(), id, models.ActivityPage{Limit: 1000})
	if err != nil {
		s.t.Fatal(err)
	}
	var lines []string
	for _, activity := range list {
		line := string(activity.Action)
		if activity.ActorName != "Operator" {
			line += " by " + activity.ActorName
		}
		lines = append([]string{line}, lines...)
	}
	return strings.Join(lines, ", ")
}

func eachOperated(t *testing.T, run func(t *testing.T, s *service)) {
	t.Helper()
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, databaseURL string) { run(t, newService(t, databaseURL)) })
}

func TestOperatorAPIIsOffWithoutAToken(t *testing.T) {
	store := modelstest.Open(t, modelstest.SQLiteURL(t), models.Options{})
	handler := handlerstest.New(t, handlerstest.Deps(t, store, issuer, nil))
	for _, path := range []string{"/operator", "/operator/accounts", "/operator/nothing", "/operator/accounts/" + uuid.NewString()} {
		for _, credential := range []string{"", "Bearer ", "Bearer " + operatorToken} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
			r.Header.Set("Authorization", credential)
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, r)
			a := answer{t: t, status: recorder.Code, header: recorder.Header(), body: recorder.Body.Bytes()}
			a.fails(http.StatusNotFound, "NOT_FOUND")
			a.lacks("WWW-Authenticate")
		}
	}
}

func TestOperatorTokenIsRequired(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, c customer) {
		for _, path := range []string{"/operator", "/operator/accounts", "/operator/nothing", "/operator/keys/revocations"} {
			message := s.get(path).fails(http.StatusUnauthorized, "UNAUTHORIZED")
			if want := exampleMessage(t, "OperatorUnauthorized", "missing"); message != want || !strings.Contains(message, "operator token") {
				t.Errorf("%s: message %q, want %q", path, message, want)
			}
		}
		s.get("/operator/accounts").has("WWW-Authenticate", `Bearer realm="api"`)
		for _, wrong := range []option{
			bearer(c.secret), bearer("x"), bearer(""), bearer(operatorToken + "x"), bearer(operatorToken[1:]),
			header("Authorization", "Basic "+operatorToken), header("Authorization", operatorToken),
			func(r *http.Request) {
				r.Header["Authorization"] = []string{"Bearer " + operatorToken, "Bearer " + operatorToken}
			},
		} {
			a := s.get("/operator/accounts", wrong)
			if message := a.fails(http.StatusUnauthorized, "UNAUTHORIZED"); message != exampleMessage(t, "OperatorUnauthorized", "wrong") {
				t.Errorf("message %q", message)
			}
			a.has("WWW-Authenticate", `Bearer realm="api", error="invalid_token"`)
			s.clock.Advance(time.Second)
		}
		s.get("/operator/accounts", header("Authorization", "bearer  "+operatorToken+" ")).is(http.StatusOK)
		s.get("/api/agents", bearer(operatorToken)).fails(http.StatusUnauthorized, "UNAUTHORIZED")
		if strings.Contains(s.log.String(), operatorToken) {
			t.Error("the log contains the operator token")
		}
	})
}

func TestWrongOperatorTokensAreLimited(t *testing.T) {
	s := newService(t, modelstest.SQLiteURL(t))
	for range 10 {
		s.get("/operator/accounts", bearer("guess")).is(http.StatusUnauthorized)
	}
	limited := s.get("/operator/accounts", bearer("guess"))
	limited.fails(http.StatusTooManyRequests, "RATE_LIMITED")
	limited.has("Retry-After", "1")
	s.operate(http.MethodGet, "/operator/accounts", "").is(http.StatusOK)
	s.clock.Advance(time.Second)
	s.get("/operator/accounts", bearer("guess")).is(http.StatusUnauthorized)
	s.get("/operator/accounts", bearer("guess")).is(http.StatusTooManyRequests)
}

func TestOperatorPathsAndMethods(t *testing.T) {
	s := newService(t, modelstest.SQLiteURL(t))
	_, account := s.account()
	s.operate(http.MethodGet, "/operator", "").fails(http.StatusNotFound, "NOT_FOUND")
	s.operate(http.MethodGet, account+"/", "").fails(http.StatusNotFound, "NOT_FOUND")
	s.operate(http.MethodPost, account, `{"name": "Acme"}`).has("Allow", "GET, PUT, HEAD")
	s.operate(http.MethodDelete, account+"/users", "").fails(http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED")
	s.operate(http.MethodHead, account, "").is(http.StatusOK)
	s.send(http.MethodDelete, account).is(http.StatusUnauthorized).lacks("Allow")
}

func TestAccountsAreCreatedChangedAndListed(t *testing.T) {
	eachOperated(t, func(t *testing.T, s *service) {
		id := uuid.New()
		path := "/operator/accounts/" + strings.ToUpper(id.String())
		var created, same, got api.Account
		s.operate(http.MethodPut, path, `{"name": " Acme "}`).is(http.StatusCreated).into(&created)
		if created != (api.Account{ID: id, Name: "Acme", CreatedAt: created.CreatedAt}) || created.CreatedAt.Sub(s.clock.Now()).Abs() > time.Millisecond {
			t.Errorf("created %+v", created)
		}
		s.clock.Advance(time.Minute)
		for _, repeat := range []string{`{"name": "Acme"}`, `{"name": "Acme", "disabled": false, "more": 1}`} {
			s.operate(http.MethodPut, path, repeat).is(http.StatusOK).into(&same)
			if same != created {
				t.Errorf("repeated: %+v, want %+v", same, created)
			}
		}
		s.operate(http.MethodPut, path, `{"name": "Acme Ltd", "disabled": true}`).is(http.StatusOK).into(&got)
		if !got.Disabled || got.Name != "Acme Ltd" {
			t.Errorf("changed: %+v", got)
		}
		s.operate(http.MethodPut, path, `{"name": "Acme Ltd"}`).is(http.StatusOK).into(&got)
		if !got.Disabled {
			t.Error("a change of the name enabled the account")
		}
		s.operate(http.MethodPut, path, `{"name": "Acme Ltd", "disabled": false}`).is(http.StatusOK)
		if got, want := s.activities(id), "account.created, account.renamed, account.disabled, account.enabled"; got != want {
			t.Errorf("activities %s, want %s", got, want)
		}
		s.operate(http.MethodGet, path, "").is(http.StatusOK).into(&got)
		if got.ID != id || got.Disabled || got.Name != "Acme Ltd" {
			t.Errorf("got %+v", got)
		}
		other := "/operator/accounts/" + uuid.NewString()
		s.operate(http.MethodPut, other, `{"name": "New", "disabled": true}`).is(http.StatusCreated).into(&got)
		if !got.Disabled {
			t.Error("the new account is enabled")
		}
		for _, missing := range []string{uuid.NewString(), "x", uuid.Nil.String()} {
			for _, rest := range []string{"", "/agents", "/users", "/keys"} {
				s.operate(http.MethodGet, "/operator/accounts/"+missing+rest, "").fails(http.StatusNotFound, "ACCOUNT_NOT_FOUND")
			}
		}
	})
}

func TestInvalidOperatorInputChangesNothing(t *testing.T) {
	eachOperated(t, func(t *testing.T, s *service) {
		id, account := s.account()
		valid := map[string]string{
			"PUT " + account: `{"name": "Acme"}`,
			"PUT " + account + "/agents/" + id.String():       `{"name": "Reception"}`,
			"POST " + account + "/users":                      `{"email": "ada@example.com", "role": "member"}`,
			"POST " + account + "/sign-in-links":              `{"userId": "` + id.String() + `"}`,
			"POST /operator/keys/revocations":                 `{"keyId": "` + id.String() + `"}`,
			"PUT /operator/accounts/" + uuid.Nil.String():     "",
			"PUT /operator/accounts/7":                        "",
			"PUT " + account + "/agents/7":                    "",
			"PUT " + account + "/agents/" + uuid.Nil.String(): "",
		}
		for route, body := range valid {
			method, path, _ := strings.Cut(route, " ")
			invalid := []string{`[]`, `null`, `{`, `{"name": 7}`, `{"name": ""}`, `{"name": "` + strings.Repeat("x", 101) + `"}`, `{"name": "a\u0000b"}`, `{}`}
			if body == "" {
				invalid = append(invalid, `{"name": "Acme"}`)
			}
			for _, content := range invalid {
				s.operate(method, path, content).fails(http.StatusBadRequest, "INVALID_REQUEST")
			}
			if body != "" {
				s.send(method, path, bearer(operatorToken)).fails(http.StatusUnsupportedMediaType, "UNSUPPORTED_MEDIA_TYPE")
				s.operate(method, path, body+strings.Repeat(" ", 17<<10)).fails(http.StatusRequestEntityTooLarge, "PAYLOAD_TOO_LARGE")
			}
		}
		for path, contents := range map[string][]string{
			account: {`{"name": "Acme", "disabled": "yes"}`, `{"name": "Acme", "disabled": null}`, `{"disabled": true}`},
			account + "/users": {
				`{"email": "ada@example.com"}`, `{"email": "ada@example.com", "role": "admin"}`, `{"email": "ada", "role": "owner"}`, `{"role": "owner"}`,
			},
			account + "/sign-in-links": {`{"userId": "7"}`, `{"userid": "` + id.String() + `"}`},
			"/operator/keys/revocations": {
				`{"key": "pk_live"}`, `{"key": "nas_short"}`, `{"keyId": "7"}`, `{"key": null}`, `{"key": "nas_x", "keyId": "` + id.String() + `"}`,
			},
		} {
			method := http.MethodPost
			if path == account {
				method = http.MethodPut
			}
			for _, content := range contents {
				s.operate(method, path, content).fails(http.StatusBadRequest, "INVALID_REQUEST")
			}
		}
		for _, query := range []string{"?limit=0", "?limit=1001", "?limit=x", "?limit=", "?after=x", "?after=", "?limit=%zz", "?limit=1&limit=1", "?after=%zz"} {
			for _, list := range []string{"/operator/accounts", account + "/agents", account + "/users", account + "/keys"} {
				s.operate(http.MethodGet, list+query, "").fails(http.StatusBadRequest, "INVALID_REQUEST")
			}
		}
		if got := s.activities(id); got != "account.created" {
			t.Errorf("activities %s", got)
		}
	})
}

func TestConcurrentPutsCreateOnce(t *testing.T) {
	eachOperated(t, func(t *testing.T, s *service) {
		id := uuid.New()
		account := "/operator/accounts/" + id.String()
		agent := account + "/agents/" + uuid.NewString()
		for _, path := range []string{account, agent} {
			const clients = 12
			statuses := make([]int, clients)
			var running sync.WaitGroup
			for i := range clients {
				running.Go(func() { statuses[i] = s.operate(http.MethodPut, path, `{"name": "Acme"}`).status })
			}
			running.Wait()
			counts := map[int]int{}
			for _, status := range statuses {
				counts[status]++
			}
			if counts[http.StatusCreated] != 1 || counts[http.StatusOK] != clients-1 {
				t.Errorf("%s: statuses %v", path, counts)
			}
		}
		if got := s.activities(id); got != "account.created, agent.created" {
			t.Errorf("activities %s", got)
		}
	})
}

func TestAgentsOfAnAccount(t *testing.T) {
	eachOperated(t, func(t *testing.T, s *service) {
		id, account := s.account()
		_, other := s.account()
		agent := uuid.NewString()
		s.operate(http.MethodPut, account+"/agents/"+agent, `{"name": "Reception"}`).is(http.StatusCreated)
		s.operate(http.MethodPut, account+"/agents/"+agent, `{"name": "Reception"}`).is(http.StatusOK)
		var got api.Agent
		s.operate(http.MethodPut, account+"/agents/"+agent, `{"name": "Front desk"}`).is(http.StatusOK).into(&got)
		if got.ID.String() != agent || got.Name != "Front desk" {
			t.Errorf("got %+v", got)
		}
		message := s.operate(http.MethodPut, other+"/agents/"+agent, `{"name": "Stolen"}`).fails(http.StatusConflict, "CONFLICT")
		if want := exampleMessage(t, "Conflict", "agent"); message != want {
			t.Errorf("message %q, want %q", message, want)
		}
		s.operate(http.MethodPut, "/operator/accounts/"+uuid.NewString()+"/agents/"+uuid.NewString(), `{"name": "None"}`).
			fails(http.StatusNotFound, "ACCOUNT_NOT_FOUND")
		s.operate(http.MethodDelete, other+"/agents/"+agent, "").is(http.StatusNoContent) // it is not the other's
		list := func() string { return string(s.operate(http.MethodGet, account+"/agents", "").is(http.StatusOK).body) }
		if want := fmt.Sprintf(`{"agents":[{"id":%q,"name":"Front desk"}]}`, agent); strings.TrimSpace(list()) != want {
			t.Errorf("list %s, want %s", list(), want)
		}
		for range 2 {
			a := s.operate(http.MethodDelete, account+"/agents/"+agent, "").is(http.StatusNoContent)
			if len(a.body) > 0 {
				t.Errorf("body %s", a.body)
			}
		}
		s.operate(http.MethodDelete, account+"/agents/7", "").fails(http.StatusBadRequest, "INVALID_REQUEST")
		if got, want := s.activities(id), "account.created, agent.created, agent.renamed, agent.removed"; got != want {
			t.Errorf("activities %s, want %s", got, want)
		}
		s.operate(http.MethodPut, account+"/agents/"+agent, `{"name": "Again"}`).is(http.StatusCreated)
	})
}

func TestListsArePaged(t *testing.T) {
	eachOperated(t, func(t *testing.T, s *service) {
		id, account := s.account()
		for range 4 {
			s.account()
			s.operate(http.MethodPut, account+"/agents/"+uuid.NewString(), `{"name": "Reception"}`).is(http.StatusCreated)
			s.user(account, "member")
			s.generateKey(id)
		}
		for path, want := range map[string]int{"/operator/accounts": 5, account + "/agents": 4, account + "/users": 4, account + "/keys": 4} {
			seen, pages := map[string]bool{}, 0
			for after := ""; pages == 0 || after != ""; pages++ {
				query := "?limit=2"
				if after != "" {
					query += "&after=" + after
				}
				var page map[string]any
				s.operate(http.MethodGet, path+query, "").is(http.StatusOK).into(&page)
				after, _ = page["next"].(string)
				for _, item := range page[path[strings.LastIndex(path, "/")+1:]].([]any) {
					seen[item.(map[string]any)["id"].(string)] = true
				}
			}
			if len(seen) != want || pages != (want+1)/2 {
				t.Errorf("%s: %d entries on %d pages, want %d", path, len(seen), pages, want)
			}
		}
	})
}

func TestUsersOfAnAccount(t *testing.T) {
	eachOperated(t, func(t *testing.T, s *service) {
		id, account := s.account()
		var owner api.User
		s.operate(http.MethodPost, account+"/users", `{"email": "Ada@example.com", "role": "owner"}`).is(http.StatusCreated).into(&owner)
		if owner.Email != "Ada@example.com" || owner.Role != models.RoleOwner {
			t.Errorf("owner %+v", owner)
		}
		_, other := s.account()
		message := s.operate(http.MethodPost, other+"/users", `{"email": "ADA@example.com", "role": "member"}`).fails(http.StatusConflict, "CONFLICT")
		if want := exampleMessage(t, "Conflict", "email"); message != want {
			t.Errorf("message %q, want %q", message, want)
		}
		message = s.operate(http.MethodDelete, account+"/users/"+owner.ID.String(), "").fails(http.StatusConflict, "CONFLICT")
		if want := exampleMessage(t, "Conflict", "owner"); message != want {
			t.Errorf("message %q, want %q", message, want)
		}
		member := s.user(account, "member")
		for range 2 {
			s.operate(http.MethodDelete, account+"/users/"+member, "").is(http.StatusNoContent)
		}
		s.operate(http.MethodDelete, other+"/users/"+owner.ID.String(), "").is(http.StatusNoContent) // of another account
		list := s.operate(http.MethodGet, account+"/users", "").is(http.StatusOK)
		if want := fmt.Sprintf(`{"users":[{"id":%q,"email":"Ada@example.com","role":"owner"}]}`, owner.ID); string(bytes.TrimSpace(list.body)) != want {
			t.Errorf("list %s, want %s", list.body, want)
		}
		if got, want := s.activities(id), "account.created, user.added, user.added, user.removed"; got != want {
			t.Errorf("activities %s, want %s", got, want)
		}
		s.operate(http.MethodPost, "/operator/accounts/"+uuid.NewString()+"/users", `{"email": "eve@example.com", "role": "member"}`).
			fails(http.StatusNotFound, "ACCOUNT_NOT_FOUND")
	})
}

func TestSignInLinks(t *testing.T) {
	eachOperated(t, func(t *testing.T, s *service) {
		id, account := s.account()
		user := s.user(account, "member")
		request := `{"userId": "` + user + `"}`
		var link struct {
			URL       string
			ExpiresAt time.Time
		}
		s.operate(http.MethodPost, account+"/sign-in-links", request).is(http.StatusCreated).into(&link)
		if left := link.ExpiresAt.Sub(s.clock.Now()); left < 299*time.Second || left > 5*time.Minute {
			t.Errorf("it expires in %s", left)
		}
		token, found := strings.CutPrefix(link.URL, issuer+"/sign-in-links/")
		if !found || len(token) < 40 {
			t.Errorf("URL %s", link.URL)
		}
		if got, err := s.store.SignInLinkUser(t.Context(), token); err != nil || got.ID.String() != user {
			t.Errorf("the link signs in %+v, %v", got, err)
		}
		_, other := s.account()
		s.operate(http.MethodPost, other+"/sign-in-links", request).fails(http.StatusNotFound, "USER_NOT_FOUND")
		s.operate(http.MethodPost, account+"/sign-in-links", `{"userId": "`+uuid.NewString()+`"}`).fails(http.StatusNotFound, "USER_NOT_FOUND")
		s.operate(http.MethodPost, "/operator/accounts/"+uuid.NewString()+"/sign-in-links", request).fails(http.StatusNotFound, "ACCOUNT_NOT_FOUND")
		s.operate(http.MethodPut, account, `{"name": "Acme", "disabled": true}`).is(http.StatusOK)
		message := s.operate(http.MethodPost, account+"/sign-in-links", request).fails(http.StatusConflict, "CONFLICT")
		if want := exampleMessage(t, "Conflict", "disabled"); message != want {
			t.Errorf("message %q, want %q", message, want)
		}
		if got, want := s.activities(id), "account.created, user.added, sign_in_link.created, account.disabled"; got != want {
			t.Errorf("activities %s, want %s", got, want)
		}
		if strings.Contains(s.log.String(), token) {
			t.Error("the log contains the link")
		}
	})
}

func TestKeysAreListedAndRevoked(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, c customer) {
		kept, keptSecret := s.generateKey(c.accountID)
		s.get("/api/agents", bearer(c.secret)).is(http.StatusOK)
		account := "/operator/accounts/" + c.accountID.String()
		var first, again struct {
			KeyID, AccountID uuid.UUID
			RevokedAt        time.Time
		}
		s.operate(http.MethodPost, "/operator/keys/revocations", `{"key": "`+c.secret+`"}`).is(http.StatusOK).into(&first)
		if first.KeyID != c.key.ID || first.AccountID != c.accountID || first.RevokedAt.Sub(s.clock.Now()).Abs() > time.Millisecond {
			t.Errorf("revoked %+v", first)
		}
		s.get("/api/agents", bearer(c.secret)).fails(http.StatusUnauthorized, "UNAUTHORIZED")
		s.clock.Advance(time.Minute)
		for _, body := range []string{`{"key": "` + c.secret + `"}`, `{"keyId": "` + c.key.ID.String() + `"}`} {
			s.operate(http.MethodPost, "/operator/keys/revocations", body).is(http.StatusOK).into(&again)
			if again != first {
				t.Errorf("again: %+v, want %+v", again, first)
			}
		}
		var list struct{ Keys []map[string]any }
		s.operate(http.MethodGet, account+"/keys", "").is(http.StatusOK).into(&list)
		if len(list.Keys) != 2 {
			t.Fatalf("keys %v", list.Keys)
		}
		revoked, active := list.Keys[0], list.Keys[1]
		if len(active) != 6 || active["id"] != kept.ID.String() || active["label"] != "backend" || active["maskedKey"] != kept.Masked() ||
			active["lastUsedAt"] != nil || active["revokedAt"] != nil || revoked["revokedAt"] == nil || revoked["lastUsedAt"] == nil {
			t.Errorf("keys %v", list.Keys)
		}
		s.get("/api/agents", bearer(keptSecret)).is(http.StatusOK)
		s.operate(http.MethodPost, "/operator/keys/revocations", `{"keyId": "`+uuid.NewString()+`"}`).fails(http.StatusNotFound, "KEY_NOT_FOUND")
		s.operate(http.MethodPost, "/operator/keys/revocations", `{"key": "`+wellFormedKey(strings.Repeat("z", 30))+`"}`).
			fails(http.StatusNotFound, "KEY_NOT_FOUND")
		if got := s.activities(c.accountID); !strings.HasSuffix(got, ", api_key.revoked") || strings.Count(got, "revoked") != 1 {
			t.Errorf("activities %s", got)
		}
		if strings.Contains(s.log.String(), c.secret) {
			t.Error("the log contains the key")
		}
	})
}

func TestDisabledAccountIsRefusedOnEveryInstance(t *testing.T) {
	databaseURL := modelstest.PostgresURL(t)
	one, two := newService(t, databaseURL), newService(t, databaseURL)
	c := one.customer()
	account := "/operator/accounts/" + c.accountID.String()
	user, err := two.store.AddUser(t.Context(), c.accountID, models.NewUser{Email: "ada@example.com", Role: models.RoleMember}, models.Operator())
	if err != nil {
		t.Fatal(err)
	}
	session, err := two.store.CreateSession(t.Context(), user, models.Client{Address: "192.0.2.1"})
	if err != nil {
		t.Fatal(err)
	}
	token := two.token(c)
	one.get("/api/agents", bearer(c.secret)).is(http.StatusOK)

	one.operate(http.MethodPut, account, `{"name": "Acme", "disabled": true}`).is(http.StatusOK)
	message := two.get("/api/agents", bearer(c.secret)).fails(http.StatusUnauthorized, "UNAUTHORIZED")
	if want := exampleMessage(t, "Unauthorized", "disabled"); message != want {
		t.Errorf("message %q, want %q", message, want)
	}
	two.post("/api/widget/introspect", bearer(c.secret), tokenForm(token)).fails(http.StatusUnauthorized, "UNAUTHORIZED")
	if _, err := two.store.PeekSession(t.Context(), session); err == nil {
		t.Error("the session is valid")
	}

	two.operate(http.MethodPut, account, `{"name": "Acme", "disabled": false}`).is(http.StatusOK)
	one.get("/api/agents", bearer(c.secret)).is(http.StatusOK)
	if _, err := one.store.PeekSession(t.Context(), session); err == nil {
		t.Error("enabling the account revived the session")
	}
}

func TestOperatorAPIWithoutDatabaseIs503(t *testing.T) {
	eachOutage(t, func(t *testing.T, databaseURL string, begin func() (end func())) {
		s := newTimedService(t, databaseURL, api.RateLimit{})
		id, account := s.account()
		end := begin()
		var requests sync.WaitGroup
		for route, content := range map[string]string{
			"GET /operator/accounts": "", "PUT " + account: `{"name": "Acme"}`, "GET " + account + "/keys": "",
			"POST " + account + "/users": `{"email": "ada@example.com", "role": "owner"}`, "DELETE " + account + "/agents/" + id.String(): "",
			"POST /operator/keys/revocations": `{"keyId": "` + id.String() + `"}`,
		} {
			requests.Go(func() {
				method, path, _ := strings.Cut(route, " ")
				a := s.operate(method, path, content)
				if a.status != http.StatusServiceUnavailable || !bytes.Contains(a.body, []byte(`"UNAVAILABLE"`)) {
					t.Errorf("%s: status %d, %s", route, a.status, a.body)
				}
			})
		}
		requests.Wait()
		s.get("/operator/accounts", bearer("wrong")).is(http.StatusUnauthorized)
		end()
	})
}
