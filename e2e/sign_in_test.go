package e2e

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"testing"

	"portal/e2e/pages"
)

func TestAWrongPasswordAndAnUnknownEmailAreToldAlike(t *testing.T) {
	t.Parallel()
	p := sharedPortal(t)
	c := p.newCustomer(t)
	inBothModes(t, func(t *testing.T, mode profile) {
		v := visit(t, p.URL, mode)
		v.allowStatus(http.StatusUnauthorized, http.StatusUnprocessableEntity)
		login := pages.OpenLogin(v.Tab)

		login.SignIn(c.email, "wrong")
		wrongPassword := login.ExpectAlert()
		if login.Email() != c.email || login.Password() != "" {
			t.Errorf("after a refusal the fields hold %q and %q, want the e-mail alone", login.Email(), login.Password())
		}
		login = pages.OpenLogin(v.Tab)
		login.SignIn("nobody@example.com", "wrong")
		if unknown := login.ExpectAlert(); unknown != wrongPassword {
			t.Errorf("a wrong password says %q, an unknown e-mail %q", wrongPassword, unknown)
		}
	})
}

// Guessing is slowed down, and whoever is caught in it is told to wait. It has a portal of its own, because all tests
// come from one address.
func TestGuessingPasswordsIsToldToWait(t *testing.T) {
	t.Parallel()
	p := ownPortal(t, settings{})
	c := p.newCustomer(t)
	inBothModes(t, func(t *testing.T, mode profile) {
		v := visit(t, p.URL, mode)
		v.allowStatus(http.StatusUnauthorized, http.StatusUnprocessableEntity, http.StatusTooManyRequests)
		login := pages.OpenLogin(v.Tab)
		for range 12 {
			login.SignIn(c.email, "guess")
			login.ExpectAlert()
			if v.count(http.MethodPost, "/login", http.StatusTooManyRequests) > 0 {
				login.ExpectAlertSaying(`(?i)wait|minute|second|later|too many`)
				return
			}
			login = pages.OpenLogin(v.Tab)
		}
		t.Error("twelve wrong passwords in a row, and none was answered 429")
	})
}

func TestSignInLeadsOnlyToPagesOfThePortal(t *testing.T) {
	t.Parallel()
	p := sharedPortal(t)
	c := p.newCustomer(t)
	v := visit(t, p.URL, withoutJavaScript)
	for _, next := range []string{"https://example.com/", "//example.com/", `/\example.com`, "/logout", "/login"} {
		v.forgetSession(t)
		v.Open("/login?next=" + url.QueryEscape(next))
		pages.ExpectLogin(v.Tab).SignIn(c.email, c.password)
		pages.ExpectKeys(v.Tab)
	}
}

// A session that ended in one tab is over in the others, which find their way back by signing in again.
func TestAnEndedSessionLeadsToSignInAndBack(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode profile) {
		c, v, keys := arrive(t, sharedPortal(t), mode)
		v.allowStatus(http.StatusUnauthorized)
		pages.OpenKeys(v.secondTab(t)).SignOut()

		keys.Submit("too late")
		pages.ExpectLogin(v.Tab).SignIn(c.email, c.password)
		keys = pages.ExpectKeys(v.Tab)
		keys.ExpectNone()
		keys.Add("in time")
	})
}

func TestAnEndedSessionLeadsBackFromEveryPage(t *testing.T) {
	t.Parallel()
	c, v, _ := arrive(t, sharedPortal(t))
	for _, path := range []string{"/agents", "/activity", "/api-keys"} {
		v.forgetSession(t)
		v.Open(path)
		pages.ExpectLogin(v.Tab).SignIn(c.email, c.password)
		v.ExpectPath(path)
	}
}

func TestSigningOutEndsTheSessionOnTheServer(t *testing.T) {
	t.Parallel()
	p := sharedPortal(t)
	_, v, keys := arrive(t, p)
	stolen := v.cookies(t)
	if !signedIn(t, p.URL, stolen) {
		t.Fatal("a copied session does not work even before signing out: this test proves nothing")
	}
	keys.SignOut()
	if signedIn(t, p.URL, stolen) {
		t.Error("a copy of the cookie still opens the portal after signing out")
	}
	v.Back()
	v.ExpectNowhere("No API keys yet")
}

func TestTheSessionCookieIsOutOfReachOfScriptsAndOtherSites(t *testing.T) {
	t.Parallel()
	c := sharedPortal(t).newCustomer(t)
	v := visit(t, c.at.URL)
	c.signIn(v.Tab)
	cookies, err := v.context.Cookies()
	if err != nil {
		t.Fatal(err)
	}
	if len(cookies) == 0 {
		t.Fatal("no cookie holds the session")
	}
	for _, cookie := range cookies {
		if !cookie.HttpOnly || cookie.SameSite == nil || *cookie.SameSite == "None" {
			t.Errorf("cookie %s: HttpOnly %v, SameSite %v", cookie.Name, cookie.HttpOnly, cookie.SameSite)
		}
	}
}

// signedIn tells whether the cookies open the page of API keys.
func signedIn(t *testing.T, site string, cookies []*http.Cookie) bool {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(site)
	if err != nil {
		t.Fatal(err)
	}
	jar.SetCookies(address, cookies)
	client := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, site+"/api-keys", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}
