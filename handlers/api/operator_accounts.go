package api

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/models"
)

// Account is an account in the operator API and in the output of commands.
type Account struct {
	ID        uuid.UUID `json:"id"`
	Name      string    `json:"name"`
	Disabled  bool      `json:"disabled"`
	CreatedAt time.Time `json:"createdAt"`
}

// NewAccount returns the body of an account.
func NewAccount(account models.Account) Account {
	return Account{account.ID, account.Name, account.DisabledAt != nil, account.CreatedAt.UTC()}
}

type accountsBody struct {
	Accounts []Account `json:"accounts"`
	Next     uuid.UUID `json:"next,omitzero"`
}

// listAccounts returns a page of all accounts.
func (a *API) listAccounts(c *gin.Context) error {
	page, err := readPage(c, operatorPage, maxOperatorPage)
	if err != nil {
		return err
	}
	var accounts models.List[models.Account]
	err = a.query(c, func(ctx context.Context) error {
		accounts, err = a.store.Accounts.List(ctx, page)
		return err
	})
	if err != nil {
		return err
	}
	c.PureJSON(http.StatusOK, accountsBody{bodiesOf(accounts.Items, NewAccount), accounts.Next})
	return nil
}

// showAccount returns one account.
func (a *API) showAccount(c *gin.Context) error {
	id, err := accountID(c)
	if err != nil {
		return err
	}
	var account models.Account
	err = a.query(c, func(ctx context.Context) error {
		account, err = a.store.Accounts.Find(ctx, id)
		return err
	})
	if err != nil {
		return err
	}
	c.PureJSON(http.StatusOK, NewAccount(account))
	return nil
}

// putAccount creates or changes an account.
func (a *API) putAccount(c *gin.Context) error {
	id, err := pathID(c, "account")
	if err != nil {
		return err
	}
	body, err := readObject(c, `{"name": "Acme"}`)
	if err != nil {
		return err
	}
	name, err := body.text("name")
	if err != nil {
		return err
	}
	disabled, err := body.truth("disabled")
	if err != nil {
		return err
	}
	var account models.Account
	var created bool
	err = a.query(c, func(ctx context.Context) error {
		account, created, err = a.store.Accounts.Put(ctx, id, name, disabled, models.Operator())
		return err
	})
	if err != nil {
		return err
	}
	c.PureJSON(putStatus(created), NewAccount(account))
	return nil
}
