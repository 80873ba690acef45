package handlers_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"portal/models/modelstest"
)

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
	"/static/": byEveryone, "/docs": byEveryone, "/.well-known/": byEveryone, "/login": byEveryone, "/logout": byEveryone,
	"/session": byEveryone, "/sign-in-links/": byEveryone, "/invitations/": byEveryone, "/openapi.json": byEveryone,
	"/api/": byClients, "/operator": byClients, "/widget/": byClients, "/healthz": byEveryone, "/readyz": byEveryone,
	"/leaks": byEveryone, "/password-resets": byEveryone, "/email-changes/": byEveryone, "/people/": byOwners, "/settings": byOwners,
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
	modelstest.Databases(t, func(t *testing.T, databaseURL string) {
		s := newSystem(t, databaseURL)
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
				if kind == "password-resets token" && r.Method == http.MethodPost { // the request has changed the password
					own = s.tenant(t, "own-after-a-reset")
				}
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
			// The request may have removed the member or changed the password.
			if r.Method == http.MethodPost && (kind == "people" || strings.HasPrefix(r.Path, "/password-resets/")) {
				own = s.tenant(t, fmt.Sprintf("own%d-%d", found[byOwners], found[byEveryone]))
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
