package portal

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/gorilla/securecookie"
	"github.com/gorilla/sessions"

	"portal/handlers/deps"
	"portal/models"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/secret"
)

// storeOf returns the store of sessions of a portal, and a user who can sign in.
func storeOf(t *testing.T, databaseURL string) (*sessionStore, func() (token string)) {
	t.Helper()
	store := modelstest.Open(t, databaseURL, models.Options{})
	keyring := modelstest.Value(secret.NewKeyring(strings.Repeat("a secret of the tests. ", 2), ""))(t)
	p := modelstest.Value(New(deps.Deps{
		Store: store, BaseURL: &url.URL{Scheme: "http", Host: "portal.test"}, Now: time.Now, CookieKeys: keyring.CookieKeys(), SessionMax: time.Hour,
	}, []byte("{}"), ""))(t)
	const email, password = "ada@example.com", "correct horse battery staple"
	modelstest.Value(store.Accounts.Create(t.Context(), people.NewAccount{Name: "Example Ltd", Email: email, Password: password}))(t)
	user := modelstest.Value(store.SignIn.VerifyPassword(t.Context(), email, password, people.Client{}))(t)
	return p.sessions, func() string {
		return modelstest.Value(store.SignIn.Start(t.Context(), user, people.Client{}))(t).Token
	}
}

// load returns the session of a new request with these cookies.
func (s *sessionStore) load(t *testing.T, cookies ...*http.Cookie) (*sessions.Session, *http.Request) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	for _, cookie := range cookies {
		r.AddCookie(cookie)
	}
	return modelstest.Value(s.Get(r, s.name))(t), r
}

// save saves the session and returns the cookie of the response, or nil.
func (s *sessionStore) save(t *testing.T, r *http.Request, session *sessions.Session) *http.Cookie {
	t.Helper()
	w := httptest.NewRecorder()
	modelstest.Must(t, session.Save(r, w))
	for _, cookie := range w.Result().Cookies() {
		return cookie
	}
	return nil
}

func TestStoreOfSessions(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, databaseURL string) {
		s, signIn := storeOf(t, databaseURL)
		isVisitor := func(what string, cookie *http.Cookie) {
			t.Helper()
			session, r := s.load(t, cookie)
			if _, ok := storedSession(session); ok || session.ID != "" || !session.IsNew {
				t.Errorf("%s: the session is %q, %v", what, session.ID, session.Values)
			}
			if cookie := s.save(t, r, session); cookie != nil {
				t.Errorf("%s: saved again it is the cookie %v", what, cookie)
			}
		}
		visitor := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		begin := func(r *http.Request, session *sessions.Session) *http.Cookie {
			t.Helper()
			session.ID, session.IsNew = signIn(), true
			return s.save(t, r, session)
		}

		first := begin(visitor, modelstest.Value(s.Get(visitor, s.name))(t))
		session, r := s.load(t, first)
		if stored, ok := storedSession(session); !ok || stored.Email != "ada@example.com" || session.IsNew || session.ID == "" {
			t.Fatalf("the session is %q, %v", session.ID, session.Values)
		}
		renewed := s.save(t, r, session)
		second := begin(r, session)
		isVisitor("one that another has replaced", first)
		if session, _ := s.load(t, first, first, first, second); !session.IsNew {
			t.Error("one request looks up more than three tokens")
		}
		// Other programs of the domain may use the same name.
		session, r = s.load(t, &http.Cookie{Name: s.name, Value: "foreign"}, first, second)
		if session.IsNew || renewed == nil {
			t.Errorf("after it was saved the session is %q, %v", session.ID, renewed)
		}

		session.Options.MaxAge = -1
		if deleted := s.save(t, r, session); deleted == nil || deleted.MaxAge >= 0 || deleted.Value != "" {
			t.Errorf("the end of the session sends the cookie %v", deleted)
		}
		session.Options.MaxAge = 1
		if revived := s.save(t, r, session); revived != nil {
			t.Errorf("an ended session is saved again as %v", revived)
		}
		isVisitor("an ended one", second)
		isVisitor("a forged one", &http.Cookie{Name: s.name, Value: "A" + second.Value[1:]})
		isVisitor("an empty one", &http.Cookie{Name: s.name})

		// Without the database nobody is a visitor.
		third := begin(visitor, s.newSession())
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		r = httptest.NewRequest(http.MethodGet, "/", http.NoBody).WithContext(ended)
		r.AddCookie(third)
		if session, err := s.Get(r, s.name); err == nil || session.ID != "" || s.save(t, r, session) != nil {
			t.Errorf("without the database: %v, %v", session, err)
		}
	})
}

// The signature has an age of its own, which a browser cannot extend.
func TestCookiesEndAtTheirAge(t *testing.T) {
	t.Parallel()
	key := []byte(strings.Repeat("k", 32))
	d := deps.Deps{BaseURL: &url.URL{Scheme: "http", Host: "portal.test"}, Now: time.Now, CookieKeys: [][]byte{key}}
	k := newCookies(d)
	k.stores[sessionCookie] = newCookieStore(d, time.Hour)
	for name, store := range k.stores {
		age := time.Duration(store.Options.MaxAge) * time.Second
		if name != sessionCookie && age != cookieAges[name] {
			t.Errorf("%s: the browser keeps it for %v", name, age)
		}
		value := modelstest.Value(securecookie.New(key, nil).Encode(name, map[any]any{valueKey: "kept"}))(t)
		for since, valid := range map[time.Duration]bool{age / 2: true, age + 2*time.Second: age == 0} {
			r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
			r.AddCookie(&http.Cookie{Name: name, Value: signedBefore(t, key, name, value, since)})
			session, _ := store.New(r, name)
			if kept := session.Values[valueKey] == "kept"; kept != valid {
				t.Errorf("%s, signed %v ago, with an age of %v: valid is %t", name, since, age, kept)
			}
		}
	}
}

// Other programs of the domain may use the name of a cookie.
func TestCookieAmongOthersOfItsName(t *testing.T) {
	t.Parallel()
	key := []byte(strings.Repeat("k", 32))
	k := newCookies(deps.Deps{BaseURL: &url.URL{Scheme: "http", Host: "portal.test"}, Now: time.Now, CookieKeys: [][]byte{key}})
	c, _ := gin.CreateTestContext(httptest.NewRecorder())
	c.Request = httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	for _, value := range []string{"", "foreign", modelstest.Value(securecookie.New(key, nil).Encode(flashCookie, map[any]any{valueKey: "kept"}))(t), "foreign"} {
		c.Request.AddCookie(&http.Cookie{Name: flashCookie, Value: value})
	}
	if found := k.get(c, flashCookie).Values[valueKey]; found != "kept" {
		t.Errorf("got %v", found)
	}
	c.Request.Header.Set("Cookie", flashCookie+"=foreign")
	if found := k.get(c, flashCookie).Values; len(found) > 0 {
		t.Errorf("of a foreign cookie: %v", found)
	}
}

// signedBefore returns the value of a cookie as it would be if it had been signed earlier.
func signedBefore(t *testing.T, key []byte, name, value string, since time.Duration) string {
	t.Helper()
	signed := strings.SplitN(string(modelstest.Value(base64.URLEncoding.DecodeString(value))(t)), "|", 3)
	text := fmt.Sprintf("%d|%s", time.Now().Add(-since).Unix(), signed[1])
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(name + "|" + text))
	return base64.URLEncoding.EncodeToString(mac.Sum([]byte(text + "|")))
}
