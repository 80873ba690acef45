package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"portal/handlers/api"
	"portal/models"
	"portal/models/keys"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

type keyRevokeCommand struct {
	ID  uuid.UUID `name:"id" placeholder:"UUID" xor:"which" required:"" help:"The key's id."`
	Key string    `placeholder:"-" xor:"which" required:"" help:"Read the key itself from standard input."`

	Reason string `placeholder:"TEXT" help:"Why the key is revoked, at most 500 characters. The customer sees it."`
}

// Run revokes one key. If the key is revoked already or has expired, Run succeeds, so that a list
// of leaked keys can be processed twice.
func (c keyRevokeCommand) Run(ctx context.Context, t terminal) error {
	find := func(store *models.Store) (keys.Key, error) { return store.Keys.FindAsOperator(ctx, c.ID) }
	if c.Key != "" {
		if c.Key != "-" {
			return inputError("the only value of --key is -, which reads the key from standard input; " +
				"other users of the machine can read the command line")
		}
		secret, err := readKey(ctx, t)
		if err != nil {
			return err
		}
		find = func(store *models.Store) (keys.Key, error) { return store.Keys.FindBySecret(ctx, secret) }
	}
	return withStore(ctx, func(store *models.Store) error {
		key, err := find(store)
		if err != nil {
			return err
		}
		outcome := "revoked"
		key, err = store.Keys.Revoke(ctx, key.AccountID, key.ID, c.Reason, record.Operator())
		switch {
		case !errors.Is(err, value.ErrKeyAlreadyRevoked):
		case key.RevokedAt == nil:
			outcome, err = "nothing has changed, because it expired at "+key.ExpiresAt.UTC().Format(time.RFC3339), nil
		default:
			outcome, err = "was already revoked at "+key.RevokedAt.Format(time.RFC3339), nil
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(t.out, key.ID)
		return errors.Join(t.say("%s %q of account %s: %s", key.Masked(), key.Label, key.AccountID, outcome), err)
	})
}

type keyListCommand struct {
	accountFlag
	listFlags

	Unused string `placeholder:"DAYS" help:"Only active keys that were not used for this long, in whole days or hours, such as 90d. A key that was never used counts from its generation."`
}

// Run also lists revoked keys. The time of the last use is the one in the database, which is at
// most a second late.
func (c keyListCommand) Run(ctx context.Context, t terminal) error {
	var unused time.Duration
	if c.Unused != "" {
		var err error
		if unused, err = days(c.Unused); err != nil {
			return inputError("--unused: %s", err)
		}
	}
	return c.withAccount(ctx, func(store *models.Store, account people.Account) error {
		now := time.Now()
		return listing[keys.Key, api.Key]{
			fetch: func(page value.Page) (value.List[keys.Key], error) {
				return store.Keys.All(ctx, account.ID, page)
			},
			keep: func(key keys.Key) bool {
				lastUse := key.CreatedAt
				if key.LastUsedAt != nil {
					lastUse = *key.LastUsedAt
				}
				return unused == 0 || key.EndedAt(now) == nil && !lastUse.After(now.Add(-unused))
			},
			row:    func(key keys.Key) api.Key { return api.NewKey(key, now) },
			header: "ID\tLABEL\tKEY\tCREATED\tLAST USED\tREVOKED\tEXPIRES\tEXPIRED\tACCESS\tAGENTS\tNETWORKS",
			line: func(row api.Key) string {
				return strings.Join([]string{
					row.ID.String(), row.Label, keyText(row.MaskedKey), moment(&row.CreatedAt), moment(row.LastUsedAt), moment(row.RevokedAt),
					moment(row.ExpiresAt), strconv.FormatBool(row.Expired), string(row.Access), texts(row.Agents), texts(row.Networks),
				}, "\t")
			},
		}.write(t.out, c.listFlags)
	})
}

// keyText returns the masked key, or what stands for the value of a key that has none.
func keyText(masked *string) string {
	if masked == nil {
		return keys.WithoutSecret
	}
	return *masked
}

// texts formats a list for a table, and no list as "-".
func texts[T fmt.Stringer](list []T) string {
	if list == nil {
		return "-"
	}
	var all []string
	for _, item := range list {
		all = append(all, item.String())
	}
	return cmp.Or(strings.Join(all, ","), "none")
}
