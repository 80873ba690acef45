package portal

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"portal/handlers/middleware"
)

func TestAnErrorAfterTheResponseIsNotRendered(t *testing.T) {
	recorder := httptest.NewRecorder()
	c, _ := gin.CreateTestContext(recorder)
	c.Request = httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	s := &site{actions: middleware.NewSlots(1)}
	defer func() {
		if recover() == nil || recorder.Body.String() != "done" {
			t.Errorf("the handler did not panic, or the body is %q", recorder.Body)
		}
	}()
	s.handle(func(c *gin.Context) error {
		c.String(http.StatusOK, "done")
		return errors.New("too late")
	})(c)
}
