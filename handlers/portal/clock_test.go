package portal_test

import (
	"testing"
	"time"

	"portal/models"
	"portal/models/modelstest"
)

func TestPagesUseTheInjectedClock(t *testing.T) {
	now := time.Date(2031, time.March, 4, 5, 6, 7, 0, time.UTC)
	s := newSite(t, modelstest.SQLiteURL(t), httpBase, models.Options{Now: func() time.Time { return now }})
	field, ok := s.visitor(t).get("/login").named("now")
	if got := field.attr("content"); !ok || got != "2031-03-04T05:06:07Z" {
		t.Errorf("the page was made at %q", got)
	}
}
