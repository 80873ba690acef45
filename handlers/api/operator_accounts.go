package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

// Account is an account in the operator API and in the output of commands.
type Account struct {
	ID        uuid.UUID `json:"id"`
	Name      string    `json:"name"`
	Disabled  bool      `json:"disabled"`
	CreatedAt time.Time `json:"createdAt"`
	Limits    limits    `json:"limits"`
}

// NewAccount returns the body of an account.
func NewAccount(account people.Account) Account {
	return Account{ID: account.ID, Name: account.Name, Disabled: account.DisabledAt != nil, CreatedAt: account.CreatedAt.UTC(), Limits: newLimits(account.Limits)}
}

type accountsBody struct {
	Accounts []Account `json:"accounts"`
	Next     uuid.UUID `json:"next,omitzero"`
}

func (o *operators) listAccounts(c *gin.Context) error {
	page, err := readPage(c, operatorPage, maxOperatorPage)
	if err != nil {
		return err
	}
	accounts, err := query(o.site, c, 0, func(ctx context.Context) (value.List[people.Account], error) {
		return o.store.Accounts.List(ctx, page)
	})
	return send(c, http.StatusOK, accountsBody{bodiesOf(accounts.Items, NewAccount), accounts.Next}, err)
}

func (o *operators) showAccount(c *gin.Context) error {
	id, err := accountID(c)
	if err != nil {
		return err
	}
	account, err := query(o.site, c, 0, func(ctx context.Context) (people.Account, error) {
		return o.store.Accounts.Find(ctx, id)
	})
	return send(c, http.StatusOK, NewAccount(account), err)
}

func (o *operators) putAccount(c *gin.Context) error {
	id, err := pathID(c, "account")
	if err != nil {
		return err
	}
	body := readObject(c, `{"name": "Acme"}`)
	name, disabled, limits := body.text("name"), body.truth("disabled"), body.limits()
	if body.err != nil {
		return body.err
	}
	var created bool
	account, err := query(o.site, c, 0, func(ctx context.Context) (account people.Account, err error) {
		account, created, err = o.store.Accounts.Put(ctx, id, name, disabled, limits, record.Operator())
		return account, err
	})
	return send(c, putStatus(created), NewAccount(account), err)
}

// eraseAccount begins the erasure of a disabled account, if it exists.
func (o *operators) eraseAccount(c *gin.Context) error {
	id, err := pathID(c, "account")
	if err != nil {
		return err
	}
	_, err = query(o.site, c, 0, func(ctx context.Context) (_ struct{}, err error) {
		return struct{}{}, o.store.Erasures.BeginAccount(ctx, id)
	})
	if err != nil && !errors.Is(err, value.ErrAccountNotFound) {
		return err
	}
	o.store.Erasures.FinishSoon()
	c.Status(http.StatusNoContent)
	return nil
}
