package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"portal/handlers"
	"portal/models/modelstest"
	"portal/models/record"
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

// recorded fails the test unless an account has these activities, oldest first, each with its actor
// unless that is the operator.
func (s *service) recorded(id uuid.UUID, want string) {
	s.t.Helper()
	var lines []string
	for _, activity := range modelstest.Value(s.store.Activity.List(s.t.Context(), id, record.ActivityPage{Limit: 1000}))(s.t) {
		line := string(activity.Action)
		if activity.ActorName != "Operator" {
			line += " by " + activity.ActorName
		}
		lines = append([]string{line}, lines...)
	}
	if got := strings.Join(lines, ", "); got != want {
		s.t.Errorf("activities %s, want %s", got, want)
	}
}

func TestOperatorAPIIsOffWithoutAToken(t *testing.T) {
	s := newService(t, modelstest.SQLiteURL(t), func(d *handlers.Deps) { d.OperatorToken = "" })
	for _, path := range []string{"/operator", "/operator/accounts", "/operator/nothing", "/operator/keys/revocations"} {
		for _, credential := range []string{"", "Bearer ", "Bearer " + operatorToken} {
			s.get(path, header("Authorization", credential)).fails(http.StatusNotFound, "NOT_FOUND").lacks("WWW-Authenticate")
		}
	}
}

func TestPreviousTokensAreAccepted(t *testing.T) {
	const current, previous = "the-new-token-of-32-bytes-0123456789", "the-old-token-of-32-bytes-0123456789"
	s := newService(t, modelstest.SQLiteURL(t), func(d *handlers.Deps) {
		d.OperatorToken, d.OperatorTokenPrevious = current, previous
	})
	for token, status := range map[string]int{current: http.StatusOK, previous: http.StatusOK, previous + "x": http.StatusUnauthorized} {
		s.get("/operator/accounts", bearer(token)).is(status)
	}
}

func TestOperatorTokenIsRequired(t *testing.T) {
	onSQLiteWith(t, limited(1, 1), func(t *testing.T, s *service, c customer) {
		for _, path := range []string{"/operator", "/operator/accounts", "/operator/nothing", "/operator/keys/revocations"} {
			s.get(path).fails(http.StatusUnauthorized, "UNAUTHORIZED").says("OperatorUnauthorized", "missing")
		}
		s.get("/operator/accounts").has("WWW-Authenticate", plainChallenge)
		for _, wrong := range []option{
			bearer(c.secret), bearer("x"), bearer(""), bearer(operatorToken + "x"), bearer(operatorToken[1:]),
			header("Authorization", "Basic "+operatorToken), header("Authorization", operatorToken),
			func(r *http.Request) {
				r.Header["Authorization"] = []string{"Bearer " + operatorToken, "Bearer " + operatorToken}
			},
		} {
			s.get("/operator/accounts", wrong).fails(http.StatusUnauthorized, "UNAUTHORIZED").
				says("OperatorUnauthorized", "wrong").has("WWW-Authenticate", invalidChallenge)
		}
		for range 50 { // guesses are not limited
			s.get("/operator/accounts", bearer("guess")).is(http.StatusUnauthorized)
		}
		s.get("/operator/accounts", header("Authorization", "bearer  "+operatorToken+" ")).is(http.StatusOK)
		s.get("/api/agents", bearer(operatorToken)).fails(http.StatusUnauthorized, "UNAUTHORIZED")
		if strings.Contains(s.log.String(), operatorToken) {
			t.Error("the log contains the operator token")
		}
	})
}

func TestOperatorPathsAndMethods(t *testing.T) {
	s := newService(t, modelstest.SQLiteURL(t))
	_, account := s.account()
	s.operate(http.MethodGet, "/operator", "").fails(http.StatusNotFound, "NOT_FOUND")
	s.operate(http.MethodGet, account+"/", "").fails(http.StatusNotFound, "NOT_FOUND")
	s.operate(http.MethodPost, account, `{"name": "Acme"}`).has("Allow", "GET, PUT, DELETE, HEAD")
	s.operate(http.MethodDelete, account+"/users", "").fails(http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED")
	s.operate(http.MethodHead, account, "").is(http.StatusOK)
	s.send(http.MethodDelete, account).is(http.StatusUnauthorized).lacks("Allow")
}

func TestInvalidOperatorInputChangesNothing(t *testing.T) {
	onSQLite(t, func(_ *testing.T, s *service, _ customer) {
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
		s.recorded(id, "account.created")
	})
}

func TestListsArePaged(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, _ customer) {
		id, account := s.account()
		for range 4 {
			s.account()
			s.operate(http.MethodPut, account+"/agents/"+uuid.NewString(), `{"name": "Reception"}`).is(http.StatusCreated)
			s.user(account, "member")
			s.generateKey(id)
		}
		for path, want := range map[string]int{"/operator/accounts": 6, account + "/agents": 4, account + "/users": 4, account + "/keys": 4} {
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
