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

func (o *operators) listAccounts(c *gin.Context) error {
	page, err := readPage(c, operatorPage, maxOperatorPage)
	if err != nil {
		return err
	}
	accounts, err := query(o.site, c, 0, func(ctx context.Context) (models.List[models.Account], error) {
		return o.Store.Accounts.List(ctx, page)
	})
	return send(c, http.StatusOK, accountsBody{bodiesOf(accounts.Items, NewAccount), accounts.Next}, err)
}

func (o *operators) showAccount(c *gin.Context) error {
	id, err := accountID(c)
	if err != nil {
		return err
	}
	account, err := query(o.site, c, 0, func(ctx context.Context) (models.Account, error) {
		return o.Store.Accounts.Find(ctx, id)
	})
	return send(c, http.StatusOK, NewAccount(account), err)
}

func (o *operators) putAccount(c *gin.Context) error {
	id, err := pathID(c, "account")
	if err != nil {
		return err
	}
	body := readObject(c, `{"name": "Acme"}`)
	name, disabled := body.text("name"), body.truth("disabled")
	if body.err != nil {
		return body.err
	}
	var created bool
	account, err := query(o.site, c, 0, func(ctx context.Context) (account models.Account, err error) {
		account, created, err = o.Store.Accounts.Put(ctx, id, name, disabled, models.Operator())
		return account, err
	})
	return send(c, putStatus(created), NewAccount(account), err)
}
