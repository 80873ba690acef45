package portal_test

import (
	"net/http"
	"testing"

	"portal/models"
	"portal/models/modelstest"
)

// The rename is committed, but the account cannot be read after it.
func TestARenameThatCannotBeReadBackHasOneResponse(t *testing.T) {
	t.Parallel()
	s := newSite(t, modelstest.SQLiteURL(t), httpBase, models.Options{})
	c := s.customer(t)
	modelstest.Exec(t, s.databaseURL, `CREATE TRIGGER broken AFTER UPDATE OF name ON accounts
		BEGIN UPDATE accounts SET created_at = 'never' WHERE id = NEW.id; END`)
	failed := c.fragments().post("/settings/name", naming("Acme")).is(http.StatusInternalServerError)
	failed.says("Something went wrong")
	failed.none("textbox", "Account name")
}
