package people_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

func TestNewAccountCanSignIn(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		if empty, err := f.Accounts.Empty(ctx); !empty || err != nil {
			t.Errorf("a new database: %t, %v", empty, err)
		}
		account, err := f.Accounts.Create(ctx, people.NewAccount{Name: " Acme ", Email: " Ada@Example.com ", Password: password})
		must(t, err)
		modelstest.Facts(t, account, map[string]bool{
			"name":        account.Name == "Acme",
			"UUIDv7":      account.ID.Version() == 7,
			"created now": account.CreatedAt.Equal(f.Clock.Now()),
			"enabled":     account.DisabledAt == nil,
		})
		if empty, err := f.Accounts.Empty(ctx); empty || err != nil {
			t.Errorf("with an account: %t, %v", empty, err)
		}
		user, err := f.SignIn.VerifyPassword(ctx, "ada@example.com", password, people.Client{Address: "203.0.113.7"})
		if err != nil || user.AccountID != account.ID || user.Email != "Ada@Example.com" || user.DisabledAt != nil {
			t.Errorf("%+v, %v", user, err)
		}
		for _, email := range []string{"Ada@Example.com", "ada@example.com", " ADA@EXAMPLE.COM\n"} {
			if found, err := f.Accounts.FindByEmail(ctx, email); err != nil || found.ID != account.ID || found.Name != "Acme" {
				t.Errorf("%q: %+v, %v", email, found, err)
			}
		}
		for _, email := range []string{"", "ada", "ada@example.org", "ada@example.com%", "a\x00da@example.com", "\xff@example.com"} {
			if found, err := f.Accounts.FindByEmail(ctx, email); !errors.Is(err, value.ErrAccountNotFound) || found.ID != uuid.Nil {
				t.Errorf("%q: %+v, %v", email, found, err)
			}
		}
	})
}

func TestEmailIsUniqueInAnyCase(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		must(t, errOf(f.Accounts.Create(ctx, modelstest.Acme("ada@example.com"))))
		for _, email := range []string{"ada@example.com", " ADA@Example.COM "} {
			if account, err := f.Accounts.Create(ctx, modelstest.Acme(email)); !errors.Is(err, value.ErrEmailTaken) || account.ID != uuid.Nil {
				t.Errorf("%q: %+v, %v", email, account, err)
			}
		}
		f.CheckCount(t, 1, "SELECT count(*) FROM accounts")
		// Unicode's lower case of the Kelvin sign is k, and that of \u0130 is i.
		must(t, errOf(f.Accounts.Create(ctx, modelstest.Acme("kim@example.com"))))
		for _, email := range []string{"\u212aim@example.com", "k\u0130m@example.com"} {
			checkError(t, email, errOf(f.Accounts.FindByEmail(ctx, email)), value.ErrAccountNotFound)
		}
		must(t, errOf(f.Accounts.Create(ctx, modelstest.Acme("\u00dcnal@example.com"))))
		checkError(t, "\u00fcnal", errOf(f.Accounts.Create(ctx, modelstest.Acme("\u00fcnal@example.com"))), value.ErrEmailTaken)
	})
}

func TestInvalidAccountIsRefused(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		for name, test := range map[string]struct {
			account people.NewAccount
			field   string
		}{
			"no name":                  {people.NewAccount{Name: " ", Email: "a@example.com", Password: password}, "name"},
			"a long name":              {people.NewAccount{Name: strings.Repeat("a", 101), Email: "a@example.com", Password: password}, "name"},
			"a name of two lines":      {people.NewAccount{Name: "a\nb", Email: "a@example.com", Password: password}, "name"},
			"no email":                 {modelstest.Acme(""), "email"},
			"not an email":             {modelstest.Acme("ada"), "email"},
			"no local part":            {modelstest.Acme("@example.com"), "email"},
			"two emails":               {modelstest.Acme("a@example.com, b@example.com"), "email"},
			"a name with an email":     {modelstest.Acme("Ada <a@example.com>"), "email"},
			"a line break inside":      {modelstest.Acme("a@example.com\nb"), "email"},
			"a NUL":                    {modelstest.Acme("a\x00@example.com"), "email"},
			"not UTF-8":                {modelstest.Acme("\xff@example.com"), "email"},
			"an invisible character":   {modelstest.Acme("a\u200bda@example.com"), "email"},
			"an invisible domain":      {modelstest.Acme("ada@\u3164.com"), "email"},
			"a right-to-left override": {modelstest.Acme("a\u202eda@example.com"), "email"},
			"an invisible name":        {people.NewAccount{Name: "\u2060", Email: "a@example.com", Password: password}, "name"},
			"too long":                 {modelstest.Acme(strings.Repeat("a", 250) + "@example.com"), "email"},
			"no password":              {people.NewAccount{Name: "Acme", Email: "a@example.com"}, "password"},
			"11 characters":            {people.NewAccount{Name: "Acme", Email: "a@example.com", Password: "elf letters"}, "password"},
			"11 wide characters":       {people.NewAccount{Name: "Acme", Email: "a@example.com", Password: strings.Repeat("é", 11)}, "password"},
			"129 characters":           {people.NewAccount{Name: "Acme", Email: "a@example.com", Password: strings.Repeat("a", 129)}, "password"},
			"password not UTF-8":       {people.NewAccount{Name: "Acme", Email: "a@example.com", Password: strings.Repeat("\xff", 12)}, "password"},
		} {
			account, err := f.Accounts.Create(t.Context(), test.account)
			checkInvalid(t, name, err, test.field)
			if account.ID != uuid.Nil {
				t.Errorf("%s: %+v", name, account)
			}
			if test.account.Password != "" && err != nil && strings.Contains(err.Error(), test.account.Password) {
				t.Errorf("%s: the error repeats the password: %v", name, err)
			}
		}
	})
}

func TestOwnersRenameTheAccount(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, owner := t.Context(), f.Customer(t)
		member, _ := f.newMember(t, owner)
		checkError(t, "by a member", f.Accounts.Rename(ctx, owner.ID, "Theirs", member.Actor), value.ErrNotOwner)
		checkError(t, "by another account's owner", f.Accounts.Rename(ctx, owner.ID, "Theirs", f.Customer(t).Actor), value.ErrNotOwner)
		for range 2 {
			must(t, f.Accounts.Rename(ctx, owner.ID, " Renamed ", owner.Actor))
		}
		checkError(t, "unknown", f.Accounts.Rename(ctx, uuid.New(), "Renamed", record.Operator()), value.ErrAccountNotFound)
		checkInvalid(t, "an empty name", f.Accounts.Rename(ctx, owner.ID, "", owner.Actor), "name")
		account, err := f.Accounts.Find(ctx, owner.ID)
		recorded := f.Recorded(t, owner, record.ActionAccountRenamed)
		if err != nil || account.Name != "Renamed" || len(recorded) != 1 || recorded[0].FormerLabel != owner.Name {
			t.Errorf("%+v, %v, recorded %+v", account, err, recorded)
		}
	})
}
