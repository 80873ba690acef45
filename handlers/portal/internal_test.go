package portal

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"portal/handlers/deps"
	"portal/handlers/middleware"
	"portal/handlers/portal/identity"
	"portal/models"
	"portal/models/modelstest"
	"portal/models/secret"
)

func TestWaitingForPasswordsAndTheProviderHoldsNoSlotOfPages(t *testing.T) {
	provider := httptest.NewServer(http.NotFoundHandler())
	defer provider.Close()
	keyring := modelstest.Value(secret.NewKeyring(strings.Repeat("a secret of the tests. ", 2), ""))(t)
	p := modelstest.Value(New(deps.Deps{
		Store: modelstest.Open(t, modelstest.SQLiteURL(t), models.Options{}), BaseURL: &url.URL{Scheme: "http", Host: "portal.test"},
		Now: time.Now, CookieKeys: keyring.CookieKeys(), SessionMax: time.Hour,
		Provider: &identity.Config{Issuer: provider.URL, Name: "Acme ID"},
	}, []byte("{}"), ""))(t)
	for range maxActions {
		p.actions <- struct{}{}
	}
	engine := gin.New()
	p.Register(engine)
	send := func(method, path string) string {
		recorder := httptest.NewRecorder()
		engine.ServeHTTP(recorder, httptest.NewRequest(method, path, strings.NewReader("")))
		return recorder.Body.String()
	}
	if page := send(http.MethodGet, "/login"); !strings.Contains(page, "Something isn’t working on our side") {
		t.Error("a page without a slot is not refused")
	}
	if page := send(http.MethodPost, "/login"); !strings.Contains(page, "email or password") {
		t.Error("the password is not checked: " + page)
	}
	if page := send(http.MethodGet, "/login/oidc"); !strings.Contains(page, "Acme ID is not available") {
		t.Error("the provider is not asked: " + page)
	}
}

func TestAnErrorAfterTheResponseIsNotRendered(t *testing.T) {
	recorder := httptest.NewRecorder()
	c, _ := gin.CreateTestContext(recorder)
	c.Request = httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	s := &site{}
	defer func() {
		if recover() == nil || recorder.Body.String() != "done" {
			t.Errorf("the handler did not panic, or the body is %q", recorder.Body)
		}
	}()
	s.handle(middleware.NewSlots(1), func(c *gin.Context) error {
		c.String(http.StatusOK, "done")
		return errors.New("too late")
	})(c)
}
