package e2e

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"testing"

	"portal/e2e/pages"
)

func TestAWrongPasswordAndAnUnknownEmailShowTheSameMessage(t *testing.T) {
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
			t.Errorf("after a failed sign-in the fields hold %q and %q, want only the email", login.Email(), login.Password())
		}
		login = pages.OpenLogin(v.Tab)
		login.SignIn("nobody@example.com", "wrong")
		if unknown := login.ExpectAlert(); unknown != wrongPassword {
			t.Errorf("a wrong password shows %q, an unknown email %q", wrongPassword, unknown)
		}
	})
}

// After too many wrong passwords the portal asks the user to wait. This test has its own portal,
// because all tests share one network address and therefore one limit.
func TestPasswordGuessingIsLimited(t *testing.T) {
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
		t.Error("none of twelve wrong passwords got 429")
	})
}

func TestSignInRedirectsOnlyWithinThePortal(t *testing.T) {
	t.Parallel()
	p := sharedPortal(t)
	c := p.newCustomer(t)
	v := visit(t, p.URL, withoutJavaScript)
	for _, next := range []string{
		"https://example.com/", "//example.com/", `/\example.com`, "/logout", "/login",
	} {
		v.clearCookies(t)
		v.Open("/login?next=" + url.QueryEscape(next))
		pages.ExpectLogin(v.Tab).SignIn(c.email, c.password)
		pages.ExpectKeys(v.Tab)
	}
}

// Signing out in one tab ends the session in the others. They return to their page after a new
// sign-in.
func TestAnEndedSessionLeadsToSignInAndBack(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode profile) {
		c, v, keys := startSignedIn(t, sharedPortal(t), mode)
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
	c, v, _ := startSignedIn(t, sharedPortal(t))
	for _, path := range []string{"/agents", "/activity", "/api-keys"} {
		v.clearCookies(t)
		v.Open(path)
		pages.ExpectLogin(v.Tab).SignIn(c.email, c.password)
		v.ExpectPath(path)
	}
}

func TestSigningOutEndsTheSessionOnTheServer(t *testing.T) {
	t.Parallel()
	p := sharedPortal(t)
	_, v, keys := startSignedIn(t, p)
	copied := v.cookies(t)
	if !signedIn(t, p.URL, copied) {
		t.Fatal("a copied cookie does not work before signing out, so this test proves nothing")
	}
	keys.SignOut()
	if signedIn(t, p.URL, copied) {
		t.Error("a copy of the cookie still opens the portal after signing out")
	}
	v.Back()
	v.ExpectNowhere("No API keys yet")
}

func TestAnOpenPageSaysThatItsSessionHasEnded(t *testing.T) {
	t.Parallel()
	c, v, _ := startSignedIn(t, sharedPortal(t))
	agents := pages.OpenAgents(v.Tab)
	agents.EnterName("Front desk")
	second := v.secondTab(t)
	pages.OpenKeys(second).SignOut()
	v.LookAgain()
	agents.ExpectAlertSaying(`Your session has ended\. Your input is still here\.`)
	c.signIn(second)
	v.LookAgain()
	agents.ExpectNoAlert()
	agents.Submit()
	agents.ExpectListed("Front desk", "")
}

func TestTheSessionCookieIsHttpOnlyAndSameSite(t *testing.T) {
	t.Parallel()
	c := sharedPortal(t).newCustomer(t)
	v := visit(t, c.at.URL)
	c.signIn(v.Tab)
	cookies, err := v.context.Cookies()
	if err != nil {
		t.Fatal(err)
	}
	if len(cookies) == 0 {
		t.Fatal("there is no session cookie")
	}
	for _, cookie := range cookies {
		if !cookie.HttpOnly || cookie.SameSite == nil || *cookie.SameSite == "None" {
			t.Errorf("cookie %s: HttpOnly %v, SameSite %v", cookie.Name, cookie.HttpOnly, cookie.SameSite)
		}
	}
}

// signedIn reports whether the cookies open the page of API keys.
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
