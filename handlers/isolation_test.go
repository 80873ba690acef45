package handlers_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"portal/models/modelstest"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
	"golang.org/x/net/html"
)

// The test requests every route with an id, using the ids of another account. Each must respond as
// if the object did not exist, and no row may change. A route with an unknown kind of id fails the
// test.
func TestAnotherAccountCanNeitherReadNorChangeAnything(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *system) {
		victim, intruder := s.tenant(t, "victim"), s.tenant(t, "intruder")
		before := s.dump(t)
		tried := 0
		for _, r := range s.routes(t) {
			kind := collection(r.Path)
			// Links work for everyone who has their token.
			if kind == "" || strings.HasSuffix(kind, " token") {
				continue
			}
			ids := victim.ids(t, kind, r)
			for _, id := range ids {
				for _, as := range []requestKind{page, fragment, apiCall} {
					answer := intruder.ask(s, r.Method, withID(r.Path, id), as)
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
		s.isUnchanged(t, before)
	})
}

// reportPaths are read with a key for reports.
var reportPaths = []string{"/api/activity", "/api/calls", "/api/usage"}

// The test requests every route that has a page or takes a form with GET as the owner, and compares
// all rows before and after. The address of a form leads to a page.
func TestGetChangesNothing(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *system) {
		owner := s.tenant(t, "owner")
		before := s.dump(t)
		for _, r := range s.routes(t) {
			form := r.Method == http.MethodPost && accessTo(r.Path) != byClients && !strings.HasPrefix(r.Path, "/leaks") && !strings.HasPrefix(r.Path, "/oauth")
			if r.Method != http.MethodGet && !form || strings.Contains(r.Path, "*") {
				continue
			}
			ids := []string{""}
			if kind := collection(r.Path); kind != "" {
				ids = owner.ids(t, kind, r)
			}
			for _, id := range ids {
				for _, method := range []string{http.MethodGet, http.MethodHead} {
					for _, as := range []requestKind{page, fragment, apiCall} {
						answer := owner.ask(s, method, withID(r.Path, id), as)
						refused := http.StatusUnauthorized
						if as == apiCall && slices.Contains(reportPaths, r.Path) {
							// The key is not for reports.
							refused = http.StatusForbidden
						}
						if answer.Code >= http.StatusBadRequest && answer.Code != refused {
							t.Errorf("%s %s as %s: %d", method, r.Path, as, answer.Code)
						}
					}
				}
			}
		}
		s.isUnchanged(t, before)
	})
}

func TestIDsInQueriesAreThoseOfTheAccount(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *system) {
		victim, intruder := s.tenant(t, "victim"), s.tenant(t, "intruder")
		for path, kind := range map[string]string{
			"/activity?before=": "activity", "/api-keys?replacing=": "api-keys", "/integrate?agent=": "agents", "/people?after=": "people", "/people?removed=": "people",
			"/usage?key=": "api-keys", "/usage/export?key=": "api-keys",
		} {
			for _, id := range victim.objectIDs[kind] {
				for _, as := range []requestKind{page, fragment} {
					if answer := intruder.ask(s, http.MethodGet, path+id, as); strings.Contains(answer.Body.String(), "victim") {
						t.Errorf("%s shows another account's data", path)
					}
				}
			}
		}
	})
}

// queryParameters are those of all pages.
var queryParameters = []string{
	"after", "again", "agent", "asked", "before", "error", "focus", "from", "from_offset", "iss", "key", "kind", "limit", "lost", "next", "page",
	"period", "q", "removed", "replacing", "seen", "selected", "show", "sort", "state", "to", "to_offset", "who",
}

// No database stores these texts, and PostgreSQL does not even compare with them. The pages of the
// documentation do not use the database.
func TestTextThatNoDatabaseStoresIsNoError(t *testing.T) {
	t.Parallel()
	s := newSystem(t, modelstest.PostgresURL(t)+modelstest.Patience)
	owner := s.tenant(t, "owner")
	texts := []string{"%00", "a%00b", "%ff", "%ed%a0%80", "%f4%90%80%80"}
	check := func(r *http.Request) {
		t.Helper()
		r.AddCookie(owner.cookie)
		if answer := serve(s.handler, r); answer.Code >= http.StatusInternalServerError {
			t.Errorf("%s %s: %d", r.Method, r.URL, answer.Code)
		}
	}
	for _, r := range s.routes(t) {
		kind := collection(r.Path)
		if r.Method != http.MethodGet || strings.Contains(r.Path, "*") || r.Path == "/logout" || strings.HasPrefix(r.Path, "/docs") {
			continue
		}
		path := r.Path
		if kind != "" {
			path = withID(path, owner.ids(t, kind, r)[0])
		}
		for i, name := range queryParameters {
			check(httptest.NewRequest(http.MethodGet, path+"?"+name+"="+texts[i%len(texts)], http.NoBody))
		}
	}
	for _, text := range texts {
		check(httptest.NewRequest(http.MethodGet, "/activity?q="+text, http.NoBody))
		check(httptest.NewRequest(http.MethodGet, "/activity/export?q="+text, http.NoBody))
		filter := httptest.NewRequest(http.MethodPost, "/activity/filter", strings.NewReader("q="+text))
		filter.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		check(filter)
	}
}

// collection returns the segment before the id in a route's path, or "" if the path has no id. For
// a token it adds the word token.
func collection(path string) string {
	segments := strings.Split(path, "/")
	at := slices.IndexFunc(segments, func(s string) bool { return strings.HasPrefix(s, ":") })
	if at < 1 {
		return ""
	}
	if segments[at] == ":token" {
		return segments[at-1] + " token"
	}
	return segments[at-1]
}

// withID returns the path of a route with this id in place of its parameter.
func withID(path, id string) string {
	before, after, _ := strings.Cut(path, ":")
	_, after, more := strings.Cut(after, "/")
	if more {
		id += "/"
	}
	return before + id + after
}

// ids returns the ids of the tenant's objects of a kind. If there are none, or if the route does
// not have exactly one parameter, ids fails the test.
func (c tenant) ids(t *testing.T, kind string, r gin.RouteInfo) []string {
	t.Helper()
	ids := c.objectIDs[kind]
	if strings.Contains(r.Path, "/trust") {
		ids = c.objectIDs["keys without a secret"]
	}
	if len(ids) == 0 || strings.Count(r.Path, ":") != 1 {
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

// fill returns the fields of all forms that a visitor and the tenant see, filled in, so that every
// action gets as far as looking up the id.
func (c tenant) fill(t *testing.T, s *system) url.Values {
	t.Helper()
	fields := url.Values{}
	for _, r := range s.routes(t) {
		kind := collection(r.Path)
		if r.Method != http.MethodGet || strings.Contains(r.Path, "*") || accessTo(r.Path) == byClients {
			continue
		}
		ids := []string{""}
		if kind != "" {
			ids = c.ids(t, kind, r)
		}
		for _, id := range ids {
			for _, asking := range []tenant{c.withCookie(nil), c} {
				document := modelstest.Value(html.Parse(asking.ask(s, http.MethodGet, withID(r.Path, id), page).Body))(t)
				for node := range document.Descendants() {
					if name, value := fieldOf(node); name != "" {
						fields.Set(name, value)
					}
				}
			}
		}
	}
	// This button only shows the form again.
	fields.Del("add_address")
	if len(fields) < 20 {
		t.Fatalf("the forms have only the fields %v", fields)
	}
	return fields
}

// fieldOf returns the name of the form's field that an element is, and a valid value.
func fieldOf(node *html.Node) (name, value string) {
	of := map[string]string{}
	for _, attribute := range node.Attr {
		of[attribute.Key] = attribute.Val
	}
	texts := map[string]string{"text": "another", "email": "another@example.com", "password": tenantPassword}
	switch {
	case !slices.Contains([]string{"input", "select", "textarea", "button"}, node.Data):
		return "", ""
	case of["name"] == "new_password":
		return of["name"], "four words of another kind"
	case texts[of["type"]] != "":
		return of["name"], texts[of["type"]]
	}
	for option := range node.Descendants() {
		if option.Data == "option" { // the first of a select
			return of["name"], option.Attr[0].Val
		}
	}
	return of["name"], of["value"]
}

func (c tenant) ask(s *system, method, path string, as requestKind) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, http.NoBody)
	if method == http.MethodPost {
		r = httptest.NewRequest(method, path, strings.NewReader(s.fields.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	switch as {
	case apiCall:
		r.Header.Set("Authorization", "Bearer "+c.secret)
	case fragment:
		r.Header.Set("Hx-Request", "true")
		fallthrough
	default:
		if c.cookie != nil {
			r.AddCookie(c.cookie)
		}
	}
	return serve(s.handler, r)
}

// access is who may use a route.
type access string

const (
	byEveryone access = "everyone" // also by visitors
	byUsers    access = "users"    // by every signed-in user
	byOwners   access = "owners"
	byClients  access = "clients" // by API clients, never with a session
)

// accesses are the beginnings of paths and who may use them. The longest one that matches counts.
// All other paths are for users.
var accesses = map[string]access{
	"/static/": byEveryone, "/docs": byEveryone, "/llms.txt": byEveryone, "/robots.txt": byEveryone, "/.well-known/": byEveryone, "/login": byEveryone, "/logout": byEveryone,
	"/session": byEveryone, "/sign-in-links/": byEveryone, "/invitations/": byEveryone, "/openapi.json": byEveryone,
	"/api/": byClients, "/operator": byClients, "/widget/": byClients, "/healthz": byEveryone, "/readyz": byEveryone,
	"/leaks": byEveryone, "/oauth/": byEveryone, "/password-resets": byEveryone, "/email-changes/": byEveryone, "/people/": byOwners, "/settings": byOwners,
}

func accessTo(path string) access {
	longest, found := "", byUsers
	for prefix, access := range accesses {
		if strings.HasPrefix(path, prefix) && len(prefix) > len(longest) {
			longest, found = prefix, access
		}
	}
	return found
}

// The test requests every route as a visitor, a member, a foreigner (an owner of another account)
// and an owner, in this order, because the requests also change the objects.
func TestEveryRouteIsForThoseWhoMayUseIt(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *system) {
		own, foreign := s.tenant(t, "own"), s.tenant(t, "foreign")
		found := map[access]int{}
		for _, r := range s.routes(t) {
			if strings.Contains(r.Path, "*") {
				continue
			}
			access, kind := accessTo(r.Path), collection(r.Path)
			found[access]++
			path := r.Path
			if kind != "" && access != byClients {
				path = withID(path, own.ids(t, kind, r)[0])
			}
			status := func(cookie *http.Cookie) int {
				t.Helper()
				return own.withCookie(cookie).ask(s, r.Method, path, page).Code
			}
			refused := func(who string, got int, statuses ...int) {
				t.Helper()
				if !slices.Contains(statuses, got) {
					t.Errorf("%s %s is for %s, but as %s: %d, want %v", r.Method, r.Path, access, who, got, statuses)
				}
			}
			served := func(who string, got int) {
				t.Helper()
				if got == http.StatusForbidden || got == http.StatusUnauthorized || got >= http.StatusInternalServerError {
					t.Errorf("%s %s is for %s, but as %s: %d", r.Method, r.Path, access, who, got)
				}
			}
			switch access {
			case byEveryone:
				served("a visitor", status(nil))
			case byClients:
				for _, cookie := range []*http.Cookie{nil, s.signIn(t, own.member), s.signIn(t, own.email)} {
					refused("a user", status(cookie), http.StatusUnauthorized, http.StatusNotFound)
				}
			case byUsers, byOwners:
				if to := own.withCookie(nil).ask(s, r.Method, path, page); to.Code != http.StatusSeeOther || !strings.HasPrefix(to.Header().Get("Location"), "/login?") {
					t.Errorf("%s %s as a visitor: %d, leads to %q", r.Method, r.Path, to.Code, to.Header().Get("Location"))
				}
				member := status(s.signIn(t, own.member))
				if access == byOwners {
					refused("a member", member, http.StatusForbidden)
				} else {
					served("a member", member)
				}
				if kind != "" {
					refused("a foreigner", status(s.signIn(t, foreign.email)), http.StatusNotFound)
				}
				served("an owner", status(s.signIn(t, own.email)))
			}
			// The request may have removed the member, or changed the password or the
			// rules.
			if r.Method == http.MethodPost && access != byClients {
				own = s.tenant(t, "own"+uuid.NewString())
			}
		}
		for _, access := range []access{byEveryone, byUsers, byOwners, byClients} {
			if found[access] < 3 {
				t.Errorf("only %d routes are for %s", found[access], access)
			}
		}
	})
}

// withCookie returns the tenant with another session; a nil cookie makes it a visitor.
func (c tenant) withCookie(cookie *http.Cookie) tenant {
	c.cookie = cookie
	return c
}
