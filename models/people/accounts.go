package people

import (
	"context"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/record"
	"portal/models/value"
)

// Accounts are the customers.
type Accounts struct {
	db        *db.DB
	passwords *passwords
}

// Create creates an account and its first user, who is an owner. It is for operators, and the email
// counts as proven; see freeEmail.
func (a *Accounts) Create(ctx context.Context, n NewAccount) (Account, error) {
	name, err := value.CleanName("name", "Name", n.Name)
	if err != nil {
		return Account{}, err
	}
	email, err := value.CleanEmail(n.Email)
	if err != nil {
		return Account{}, err
	}
	if err := checkPassword(n.Password, email, name); err != nil {
		return Account{}, err
	}
	hash, err := a.passwords.hash(ctx, knownPlace(email), n.Password)
	if err != nil {
		return Account{}, err
	}
	return db.InTx(ctx, a.db, "create account", func(ctx context.Context, tx db.Tx) (Account, error) {
		account := Account{ID: value.NewID(), Name: name, CreatedAt: tx.Now(), Seeded: n.Seeded}
		if err := tx.Insert(ctx, &account); err != nil {
			return Account{}, err
		}
		if err := freeEmail(ctx, tx, email, account.ID); err != nil {
			return Account{}, err
		}
		_, err := insertUser(ctx, tx, User{
			AccountID: account.ID, Email: email, EmailProvenAt: &account.CreatedAt, PasswordHash: hash, Role: RoleOwner,
		})
		return account, err
	})
}

// FindByEmail returns the account of the user with this email, or [value.ErrAccountNotFound]. It is
// for operators.
func (a *Accounts) FindByEmail(ctx context.Context, email string) (Account, error) {
	var account Account
	err := a.db.NewSelect().Model(&account).Where(notErased).
		Where("id = (SELECT account_id FROM users WHERE email_hash = ?)", value.StoredHash(email)).Scan(ctx)
	return account, value.NotFound("find account", err, value.ErrAccountNotFound)
}

// Find returns an account, or [value.ErrAccountNotFound]. It is for operators.
func (a *Accounts) Find(ctx context.Context, id uuid.UUID) (Account, error) {
	return FindAccount(ctx, a.db, id)
}

// notErased is the condition that the account is not being erased.
const notErased = "NOT EXISTS (SELECT 1 FROM erasures WHERE erasures.id = account.id AND finished_at IS NULL)"

// FindAccount returns the account with this id, or [value.ErrAccountNotFound].
func FindAccount(ctx context.Context, db bun.IDB, id uuid.UUID) (Account, error) {
	var account Account
	err := db.NewSelect().Model(&account).Where("id = ?", id).Where(notErased).Scan(ctx)
	return account, value.NotFound("find account", err, value.ErrAccountNotFound)
}

// List returns a page of all accounts, by id. It is for operators.
func (a *Accounts) List(ctx context.Context, page value.Page) (value.List[Account], error) {
	accounts := []Account{}
	err := page.ByID(a.db.NewSelect().Model(&accounts)).Where(notErased).Scan(ctx)
	return value.Cut(accounts, page), value.Failed("list accounts", err)
}

// Summaries is [Accounts.List] with the numbers of keys and users.
func (a *Accounts) Summaries(ctx context.Context, page value.Page) (value.List[AccountSummary], error) {
	accounts := []AccountSummary{}
	keys := a.db.NewSelect().TableExpr("api_keys AS api_key").Where("api_key.account_id = account.id")
	err := page.ByID(a.db.NewSelect().Model(&accounts).ColumnExpr("?TableColumns")).Where(notErased).
		ColumnExpr("(?) AS keys", keys.Clone().ColumnExpr("count(*)").Where(db.ActiveKey, a.db.Now())).
		ColumnExpr("(SELECT count(*) FROM users WHERE account_id = account.id AND removed_at IS NULL) AS users").
		ColumnExpr("(?) AS last_used_at", keys.Clone().ColumnExpr("max(last_use.used_at)").Join(db.JoinLastUses)).
		Scan(ctx)
	return value.Cut(accounts, page), value.Failed("list accounts", err)
}

// Empty reports whether the store has no accounts.
func (a *Accounts) Empty(ctx context.Context) (bool, error) {
	exists, err := a.db.NewSelect().Model((*Account)(nil)).Exists(ctx)
	return err == nil && !exists, value.Failed("look for accounts", err)
}

// Put creates the account with this id, or renames it, and then disables or enables it, unless
// disabled is nil, and sets the limits of its calls, unless limits is nil. For each change it
// records an activity. If Put has created the account, which then has no users, it reports true.
func (a *Accounts) Put(
	ctx context.Context, id uuid.UUID, name string, disabled *bool, limits *value.Limits, actor record.Actor,
) (account Account, created bool, err error) {
	if name, err = value.CleanName("name", "Name", name); err != nil {
		return Account{}, false, err
	}
	err = a.db.InTx(ctx, "put account", func(ctx context.Context, tx db.Tx) error {
		created, err = insertAccount(ctx, tx, Account{ID: id, Name: name, CreatedAt: tx.Now()}, actor)
		if err == nil && !created {
			err = renameAccount(ctx, tx, id, name, actor)
		}
		if err == nil && disabled != nil {
			err = setAccountDisabled(ctx, tx, id, *disabled, actor)
		}
		if err == nil && limits != nil {
			err = setAccountLimits(ctx, tx, id, *limits, actor)
		}
		if err == nil {
			account, err = FindAccount(ctx, tx, id)
		}
		return err
	})
	return account, created, err
}

// Rename renames an account and records the activity, unless it has the name.
func (a *Accounts) Rename(ctx context.Context, id uuid.UUID, name string, actor record.Actor) error {
	name, err := value.CleanName("name", "Name", name)
	if err != nil {
		return err
	}
	return a.db.InTx(ctx, "rename account", func(ctx context.Context, tx db.Tx) error {
		if err := renameAccount(ctx, tx, id, name, actor); err != nil {
			return err
		}
		return CheckOwner(ctx, tx, id, actor)
	})
}

// SetDisabled disables or enables an account and records the activity, unless nothing changes.
// Disabling ends the sessions and sign-in links of the account's users. It is for operators.
func (a *Accounts) SetDisabled(ctx context.Context, id uuid.UUID, disabled bool, actor record.Actor) error {
	return a.db.InTx(ctx, "disable or enable account", func(ctx context.Context, tx db.Tx) error {
		if _, err := FindAccount(ctx, tx, id); err != nil {
			return err
		}
		return setAccountDisabled(ctx, tx, id, disabled, actor)
	})
}

// SetLimits sets the limits of the account's calls and records the old and new ones, unless nothing
// changes. It is for operators.
func (a *Accounts) SetLimits(ctx context.Context, id uuid.UUID, limits value.Limits, actor record.Actor) (Account, error) {
	return db.InTx(ctx, a.db, "limit account", func(ctx context.Context, tx db.Tx) (Account, error) {
		if err := setAccountLimits(ctx, tx, id, limits, actor); err != nil {
			return Account{}, err
		}
		return FindAccount(ctx, tx, id)
	})
}

func setAccountLimits(ctx context.Context, tx db.Tx, id uuid.UUID, limits value.Limits, actor record.Actor) error {
	if err := value.CheckLimits(limits); err != nil {
		return err
	}
	if err := tx.LockAccount(ctx, id); err != nil {
		return err
	}
	account, err := FindAccount(ctx, tx, id)
	if err != nil || account.Limits == limits {
		return err
	}
	detail := "Limits: " + account.Limits.String() + " → " + limits.String()
	account.Limits = limits
	if err := tx.Update(ctx, &account, "limits"); err != nil {
		return err
	}
	return record.Add(ctx, tx, actor, record.Activity{AccountID: id, Action: record.ActionAccountLimited, SubjectID: &id, Label: account.Name, Detail: detail})
}

// insertAccount creates the account unless its id exists, and reports whether it did.
func insertAccount(ctx context.Context, tx db.Tx, account Account, actor record.Actor) (bool, error) {
	inserted, err := value.Affected(tx.NewInsert().Model(&account).On("CONFLICT (id) DO NOTHING").Exec(ctx))
	if err != nil || inserted == 0 {
		return false, err
	}
	return true, record.Add(ctx, tx, actor, record.Activity{AccountID: account.ID, Action: record.ActionAccountCreated, SubjectID: &account.ID, Label: account.Name})
}

func renameAccount(ctx context.Context, tx db.Tx, id uuid.UUID, name string, actor record.Actor) error {
	if err := tx.LockAccount(ctx, id); err != nil {
		return err
	}
	account, err := FindAccount(ctx, tx, id)
	if err != nil || account.Name == name {
		return err
	}
	former := account.Name
	account.Name = name
	if err := tx.Update(ctx, &account, "name"); err != nil {
		return err
	}
	return record.Add(ctx, tx, actor, record.Activity{AccountID: id, Action: record.ActionAccountRenamed, SubjectID: &id, Label: name, FormerLabel: former})
}

func setAccountDisabled(ctx context.Context, tx db.Tx, id uuid.UUID, disabled bool, actor record.Actor) error {
	changed, err := setDisabledAt(ctx, tx, (*Account)(nil), id, disabled)
	if err != nil || !changed {
		return err
	}
	account, err := FindAccount(ctx, tx, id)
	if err != nil {
		return err
	}
	action := record.ActionAccountEnabled
	if disabled {
		action = record.ActionAccountDisabled
		if err := endAllSessions(ctx, tx, "account_id = ?", id); err != nil {
			return err
		}
	}
	return record.Add(ctx, tx, actor, record.Activity{AccountID: id, Action: action, SubjectID: &id, Label: account.Name})
}

// RequireSecondFactor sets whether every user of the account needs an authenticator app or a
// passkey, and records the activity unless nothing changes. The error is [value.ErrNoFactor] if it
// would lock the actor out.
func (a *Accounts) RequireSecondFactor(ctx context.Context, accountID uuid.UUID, required bool, actor record.Actor) error {
	return a.db.InTx(ctx, "require second factor", func(ctx context.Context, tx db.Tx) error {
		if err := lockOwned(ctx, tx, accountID, actor); err != nil {
			return err
		}
		if required && actor.Kind != record.ActorOperator {
			has, err := tx.NewSelect().Model((*User)(nil)).Where("u.id = ?", actor.ID).Where(hasFactor+" OR ?", decidedByProvider(a.db)).Exists(ctx)
			if err := value.RefusedIf(!has, err, value.ErrNoFactor); err != nil {
				return err
			}
		}
		changed, err := value.Affected(tx.NewUpdate().Model((*Account)(nil)).Set("second_factor_required = ?", required).
			Where("id = ? AND second_factor_required <> ?", accountID, required).Exec(ctx))
		if err != nil || changed == 0 {
			return err
		}
		action := record.ActionSecondFactorRequired
		if !required {
			action = record.ActionSecondFactorOptional
		}
		return record.Add(ctx, tx, actor, record.Activity{AccountID: accountID, Action: action, SubjectID: &accountID})
	})
}

// CountFactors counts the users of an account who may sign in, and those of them who have neither
// an authenticator app nor a passkey and do not sign in with the provider alone.
func (a *Accounts) CountFactors(ctx context.Context, accountID uuid.UUID) (people, without int, err error) {
	err = a.db.NewSelect().Model((*User)(nil)).
		ColumnExpr("count(*)").
		ColumnExpr("count(*) FILTER (WHERE NOT "+hasFactor+" AND NOT ?)", decidedByProvider(a.db)).
		Where("u.account_id = ? AND u.disabled_at IS NULL AND u.removed_at IS NULL", accountID).Scan(ctx, &people, &without)
	return people, without, value.Failed("count second factors", err)
}
