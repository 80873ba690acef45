package models_test

import (
	"errors"
	"sync"
	"testing"

	"portal/models"
)

func TestOneOfTwoUsersGetsTheEmail(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		customers := []customer{f.customer(t), f.customer(t)}
		var wait sync.WaitGroup
		errs := make([]error, len(customers))
		for i, c := range customers {
			session, err := f.Sessions.Find(ctx, f.session(t, c), browser)
			if err != nil {
				t.Fatal(err)
			}
			wait.Go(func() { errs[i] = f.Credentials.ChangeEmail(ctx, session, password, "wanted@example.com", c.actor) })
		}
		wait.Wait()
		if (errs[0] == nil) == (errs[1] == nil) || !errors.Is(errors.Join(errs...), models.ErrEmailTaken) {
			t.Errorf("got %v", errs)
		}
	})
}
