package handlers_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/models/modelstest"
)

// The test requests every route with an id, using the ids of another account. Each must respond as
// if the object did not exist, and no row may change. A route with an unknown kind of id fails the
// test.
func TestAnotherAccountCanNeitherReadNorChangeAnything(t *testing.T) {
	modelstest.Databases(t, func(t *testing.T, databaseURL string) {
		w := newWorld(t, databaseURL)
		victim, intruder := w.tenant(t, "victim"), w.tenant(t, "intruder")
		before := w.dump(t)
		tried := 0
		for _, r := range w.routes(t) {
			kind := collection(r.Path)
			if kind == "" {
				continue
			}
			ids := victim.ids(t, kind, r)
			for _, id := range ids {
				for _, as := range []requestKind{page, fragment, apiCall} {
					answer := intruder.ask(w, r.Method, strings.Replace(r.Path, ":id", id, 1), as)
					if answer.Code != as.notFoundStatus(r.Path) {
						t.Errorf("%s %s as %s with another account's id: %d", r.Method, r.Path, as, answer.Code)
					}
					if body := answer.Body.String(); strings.Contains(body, "victim") {
						t.Errorf("%s %s as %s shows the other account's data:\n%s", r.Method, r.Path, as, body)
					}
					tried++
				}
			}
		}
		if tried == 0 {
			t.Fatal("no route has an id")
		}
		if after := w.dump(t); !slices.Equal(after, before) {
			t.Errorf("rows have changed:\n%s", difference(before, after))
		}
	})
}

// The test requests every GET route as the owner, and compares all rows before and after.
func TestGetChangesNothing(t *testing.T) {
	modelstest.Databases(t, func(t *testing.T, databaseURL string) {
		w := newWorld(t, databaseURL)
		owner := w.tenant(t, "owner")
		before := w.dump(t)
		for _, r := range w.routes(t) {
			if r.Method != http.MethodGet || strings.Contains(r.Path, "*") {
				continue
			}
			ids := []string{""}
			if kind := collection(r.Path); kind != "" {
				ids = owner.ids(t, kind, r)
			}
			for _, id := range ids {
				for _, method := range []string{http.MethodGet, http.MethodHead} {
					for _, as := range []requestKind{page, fragment, apiCall} {
						answer := owner.ask(w, method, strings.Replace(r.Path, ":id", id, 1), as)
						if answer.Code >= http.StatusBadRequest && answer.Code != http.StatusUnauthorized {
							t.Errorf("%s %s as %s: %d", method, r.Path, as, answer.Code)
						}
					}
				}
			}
		}
		if after := w.dump(t); !slices.Equal(after, before) {
			t.Errorf("rows have changed:\n%s", difference(before, after))
		}
	})
}

func TestIDsInQueriesAreThoseOfTheAccount(t *testing.T) {
	modelstest.Databases(t, func(t *testing.T, databaseURL string) {
		w := newWorld(t, databaseURL)
		victim, intruder := w.tenant(t, "victim"), w.tenant(t, "intruder")
		for path, kind := range map[string]string{
			"/activity?before=": "activity", "/integrate?agent=": "agents",
		} {
			for _, id := range victim.belongings[kind] {
				for _, as := range []requestKind{page, fragment} {
					if answer := intruder.ask(w, http.MethodGet, path+id, as); strings.Contains(answer.Body.String(), "victim") {
						t.Errorf("%s shows another account's data", path)
					}
				}
			}
		}
	})
}

// collection returns the segment before the id in a route's path, or "" if the path has no id.
func collection(path string) string {
	segments := strings.Split(path, "/")
	at := slices.IndexFunc(segments, func(s string) bool { return strings.HasPrefix(s, ":") })
	if at < 1 {
		return ""
	}
	return segments[at-1]
}

// ids returns the ids of the tenant's objects of a kind. It fails the test if there are none, or if
// the route does not have exactly one parameter, named id.
func (c tenant) ids(t *testing.T, kind string, r gin.RouteInfo) []string {
	t.Helper()
	ids := c.belongings[kind]
	if len(ids) == 0 || strings.Count(r.Path, ":") != 1 || !strings.Contains(r.Path, "/:id") {
		t.Errorf("%s %s is not covered: this test knows no ids of %q", r.Method, r.Path, kind)
	}
	return ids
}

// requestKind is how a request is sent: as a page load, as an HTMX request or as an API call.
type requestKind string

const (
	page     requestKind = "page"
	fragment requestKind = "fragment"
	apiCall  requestKind = "API call"
)

// notFoundStatus returns the status for an object that does not exist. A session does not
// authenticate under /api, and an API key does not authenticate elsewhere.
func (k requestKind) notFoundStatus(path string) int {
	underAPI := strings.HasPrefix(path, "/api/")
	switch {
	case underAPI && k != apiCall:
		return http.StatusUnauthorized
	case !underAPI && k == apiCall:
		return http.StatusSeeOther
	}
	return http.StatusNotFound
}

// everyField has the fields of every form, so that every action gets as far as looking up the id.
var everyField = url.Values{
	"label": {"another"}, "name": {"another"}, "form_id": {uuid.NewString()}, "confirm": {"yes"},
	"password": {tenantPassword}, "old_password": {tenantPassword}, "new_password": {"four words of another kind"},
}

func (c tenant) ask(w *world, method, path string, as requestKind) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, http.NoBody)
	if method == http.MethodPost {
		r = httptest.NewRequest(method, path, strings.NewReader(everyField.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	switch as {
	case apiCall:
		r.Header.Set("Authorization", "Bearer "+c.secret)
	case fragment:
		r.Header.Set("Hx-Request", "true")
		fallthrough
	default:
		r.AddCookie(c.cookie)
	}
	return serve(w.handler, r)
}
