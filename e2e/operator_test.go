package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"portal/e2e/pages"
)

const operatorToken = "operator-token-of-the-browser-tests"

// operate sends a request to the operator API and returns the response's fields.
func (p *process) operate(t *testing.T, method, path, body string) (fields map[string]string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, p.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+operatorToken)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		t.Fatalf("%s %s: %s", method, path, response.Status)
	}
	var values map[string]any
	if err := json.NewDecoder(response.Body).Decode(&values); err != nil {
		t.Fatal(err)
	}
	fields = map[string]string{}
	for name, value := range values {
		fields[name], _ = value.(string)
	}
	return fields
}

func TestALinkOfTheOperatorSignsInOnce(t *testing.T) {
	t.Parallel()
	p := ownPortal(t, settings{extra: []string{"PORTAL_OPERATOR_TOKEN=" + operatorToken}})
	const account = "/operator/accounts/0198c2f4-5d10-7b0f-8a3c-6c1de2f90a11"
	p.operate(t, http.MethodPut, account, `{"name": "Acme"}`)
	user := p.operate(t, http.MethodPost, account+"/users", `{"email": "ada@example.com", "role": "owner"}`)
	link := p.operate(t, http.MethodPost, account+"/sign-in-links", `{"userId": "`+user["id"]+`"}`)["url"]
	v := visit(t, p.URL, withoutMotion)
	pages.OpenSignInLink(v.Tab, strings.TrimPrefix(link, p.URL))
	inspect(t, v.Tab).check(t, "sign-in link")
	inBothModes(t, func(t *testing.T, mode profile) {
		link := p.operate(t, http.MethodPost, account+"/sign-in-links", `{"userId": "`+user["id"]+`"}`)["url"]
		path, found := strings.CutPrefix(link, p.URL)
		if !found {
			t.Fatalf("the link is %s", link)
		}
		v := visit(t, p.URL, mode, withoutMotion)
		v.allowStatus(http.StatusGone)
		pages.OpenSignInLink(v.Tab, path)
		// Opening the link twice does not use it.
		pages.OpenSignInLink(v.Tab, path).Continue().ExpectNone()
		pages.OpenSignInLink(v.Tab, path).ExpectAlertSaying(`used or has expired`)
		if strings.Contains(p.log.String(), path[len("/sign-in-links/"):]) {
			t.Error("the log contains the token of the link")
		}
	})
}

func TestAFirstPasswordIsSet(t *testing.T) {
	t.Parallel()
	p := ownPortal(t, settings{extra: []string{"PORTAL_OPERATOR_TOKEN=" + operatorToken}})
	const account = "/operator/accounts/0198c2f4-5d10-7b0f-8a3c-6c1de2f90a12"
	p.operate(t, http.MethodPut, account, `{"name": "Acme"}`)
	inBothModes(t, func(t *testing.T, mode profile) {
		v := visit(t, p.URL, mode, withoutMotion)
		v.allowStatus(http.StatusUnprocessableEntity)
		c := customer{at: p, email: fmt.Sprintf("scripts-%t@example.com", v.JavaScript), password: "a much longer battery staple"}
		user := p.operate(t, http.MethodPost, account+"/users", `{"email": "`+c.email+`", "role": "member"}`)
		link := p.operate(t, http.MethodPost, account+"/sign-in-links", `{"userId": "`+user["id"]+`"}`)["url"]
		pages.OpenSignInLink(v.Tab, strings.TrimPrefix(link, p.URL)).Continue()
		page := pages.OpenAccount(v.Tab)
		if v.JavaScript {
			inspect(t, v.Tab).check(t, "without a password")
		}
		page.SetPassword("short")
		page.ExpectAlertSaying(`12`)
		page.SetPassword(c.password)
		page.ExpectStatusSaying(`Password set`)
		page.ExpectNoAlert()
		page.OpenEmailForm()
		page.ChangeEmail("new-"+c.email, c.password)
		page.ExpectStatusSaying(`Email changed`)
		c.email = "new-" + c.email
		page.SignOut()
		c.signIn(v.Tab)
	})
}
