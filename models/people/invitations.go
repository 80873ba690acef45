package people

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/internal/throttle"
	"portal/models/record"
	"portal/models/value"
)

// invitationLife is how long an invitation can be used.
const invitationLife = 7 * value.Day

// Invitations let people join accounts.
type Invitations struct {
	db        *db.DB
	passwords *passwords
	guesses   *guesses
	signIn    *SignIn
}

// Create invites a person, who must not be a user of any account, and records the activity. It also
// returns the token of the link, which is stored nowhere and cannot be read again. If the store
// sends mail and no limit is reached, the person gets a mail with another link to the same
// invitation. If a user of another account has the email but has never proved it, only the link in
// the mail can be used.
func (i *Invitations) Create(ctx context.Context, accountID uuid.UUID, email string, role Role, actor record.Actor) (Invitation, string, error) {
	email, err := value.CleanEmail(email)
	if err != nil {
		return Invitation{}, "", err
	}
	if err := checkRole(role); err != nil {
		return Invitation{}, "", err
	}
	token, now := value.NewToken(), i.db.Now()
	invitation := Invitation{
		ID: value.NewID(), AccountID: accountID, Email: email, EmailHash: value.HashEmail(email), Role: role,
		TokenHash: value.HashToken(token), CreatedAt: now, ExpiresAt: now.Add(invitationLife),
	}
	if actor.Kind == record.ActorUser {
		invitation.InviterID = &actor.ID
	}
	err = i.db.InTx(ctx, "create invitation", func(ctx context.Context, tx db.Tx) error {
		if err := lockOwned(ctx, tx, accountID, actor); err != nil {
			return err
		}
		if err := checkNewInvitation(ctx, tx, invitation); err != nil {
			return err
		}
		if err := tx.Insert(ctx, &invitation); err != nil {
			return err
		}
		if invitation.Mailed, err = recordInvitation(ctx, tx, invitation, actor); err != nil || invitation.Mailed {
			return err
		}
		return checkEmailFree(ctx, tx, email, uuid.Nil)
	})
	if err != nil {
		return Invitation{}, "", err
	}
	return invitation, token, nil
}

// checkNewInvitation returns an error unless the email may be invited now. It deletes the account's
// expired invitations.
func checkNewInvitation(ctx context.Context, tx db.Tx, n Invitation) error {
	user, err := FindUser(ctx, tx, "u.email_hash = ?", value.StoredHash(n.Email))
	switch {
	case err == nil && user.AccountID == n.AccountID:
		return &value.InvalidError{Field: "email", Message: "This person is already in this account."}
	case err == nil && user.EmailProvenAt != nil:
		return value.ErrEmailTaken
	case err != nil && !errors.Is(err, value.ErrUserNotFound):
		return err
	}
	err = tx.Delete(ctx, (*Invitation)(nil), "account_id = ? AND expires_at <= ?", n.AccountID, n.CreatedAt)
	if err != nil {
		return err
	}
	var pending []string
	err = tx.NewSelect().Model((*Invitation)(nil)).Column("email").Where("account_id = ?", n.AccountID).
		Limit(value.MaxInvitations).Scan(ctx, &pending)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(pending, func(email string) bool { return bytes.Equal(value.HashEmail(email), n.EmailHash) }) {
		return value.ErrEmailInvited
	}
	if len(pending) >= value.MaxInvitations {
		return value.ErrInvitationLimit
	}
	return nil
}

// Pending returns the account's pending invitations, the newest first.
func (i *Invitations) Pending(ctx context.Context, accountID uuid.UUID) ([]Invitation, error) {
	invitations := []Invitation{}
	err := i.db.NewSelect().Model(&invitations).Where("account_id = ? AND expires_at > ?", accountID, i.db.Now()).
		OrderExpr("invitation.id DESC").Limit(value.MaxInvitations).Scan(ctx)
	return invitations, value.Failed("list invitations", err)
}

// Renew gives one of the account's pending invitations a new link and a new expiry, and returns it
// and the token as [Invitations.Create] does. Older links of the invitation end.
func (i *Invitations) Renew(ctx context.Context, accountID, id uuid.UUID, actor record.Actor) (invitation Invitation, token string, err error) {
	token = value.NewToken()
	invitation, err = db.InTx(ctx, i.db, "renew invitation", func(ctx context.Context, tx db.Tx) (invitation Invitation, err error) {
		if err := lockOwned(ctx, tx, accountID, actor); err != nil {
			return invitation, err
		}
		now := tx.Now()
		err = tx.NewSelect().Model(&invitation).Where("account_id = ? AND id = ? AND expires_at > ?", accountID, id, now).Scan(ctx)
		if err != nil {
			return invitation, value.NoRows(err, value.ErrInvitationNotFound)
		}
		if actor.Kind == record.ActorUser {
			invitation.InviterID = &actor.ID
		}
		invitation.TokenHash, invitation.MailTokenHash, invitation.ExpiresAt = value.HashToken(token), nil, now.Add(invitationLife)
		if err := tx.Update(ctx, &invitation, "inviter_id", "token_hash", "mail_token_hash", "expires_at"); err != nil {
			return invitation, err
		}
		invitation.CreatedAt = now // of the mail, for its limits
		invitation.Mailed, err = recordInvitation(ctx, tx, invitation, actor)
		return invitation, err
	})
	return invitation, token, err
}

// Cancel deletes one of the account's pending invitations, returns it and records the activity.
func (i *Invitations) Cancel(ctx context.Context, accountID, id uuid.UUID, actor record.Actor) (Invitation, error) {
	return db.InTx(ctx, i.db, "cancel invitation", func(ctx context.Context, tx db.Tx) (invitation Invitation, err error) {
		if err := lockOwned(ctx, tx, accountID, actor); err != nil {
			return invitation, err
		}
		created := tx.NewSelect().Model((*record.Activity)(nil)).Column("id").
			Where("activity.account_id = ? AND activity.subject_id = ? AND activity.action = ?", accountID, id, record.ActionInvitationCreated)
		err = record.DiscardMails(ctx, tx, "mail.account_id = ? AND mail.kind = ? AND mail.activity_id IN (?)",
			accountID, record.ActionInvitationCreated, created)
		if err != nil {
			return invitation, err
		}
		err = tx.NewDelete().Model(&invitation).Where("account_id = ? AND id = ? AND expires_at > ?", accountID, id, tx.Now()).
			Returning("id, email, role").Scan(ctx)
		if err != nil {
			return invitation, value.NoRows(err, value.ErrInvitationNotFound)
		}
		return invitation, record.Add(ctx, tx, actor, record.Activity{
			AccountID: accountID, Action: record.ActionInvitationCancelled, SubjectID: &id, Label: invitation.Email,
		})
	})
}

// Find returns the pending invitation with this token, of either link. The error may be
// [value.ErrInvitationInvalid] or, if its row is still there, [value.ErrInvitationExpired].
func (i *Invitations) Find(ctx context.Context, token string) (Invitation, error) {
	invitation, err := i.findByToken(ctx, i.db, token)
	return invitation, value.Failed("find invitation", err)
}

func (i *Invitations) findByToken(ctx context.Context, db bun.IDB, token string) (Invitation, error) {
	var invitation Invitation
	err := db.NewSelect().Model(&invitation).ColumnExpr("?TableColumns").
		ColumnExpr("a.name AS account_name, a.disabled_at IS NOT NULL AS disabled").
		ColumnExpr("COALESCE(inviter.email, '') AS inviter").
		Join("JOIN accounts AS a ON a.id = invitation.account_id").
		Join("LEFT JOIN users AS inviter ON inviter.id = invitation.inviter_id AND inviter.removed_at IS NULL").
		Where("invitation.token_hash = ?0 OR invitation.mail_token_hash = ?0", value.HashToken(token)).
		Scan(ctx)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Invitation{}, value.ErrInvitationInvalid
	case err != nil:
		return Invitation{}, err
	case !invitation.ExpiresAt.After(i.db.Now()):
		return Invitation{}, value.ErrInvitationExpired
	case invitation.Disabled:
		return Invitation{}, value.ErrSignInDisabled
	}
	return invitation, nil
}

// maxInvitationMails is the number of mails with invitations that one account causes in an hour.
// For further invitations no mail is sent, and the inviter passes the link on.
const maxInvitationMails = 50

// recordInvitation records a new invitation to a locked account, queues its mail, unless a limit is
// reached, and reports whether it did.
func recordInvitation(ctx context.Context, tx db.Tx, n Invitation, actor record.Actor) (mailed bool, err error) {
	activity := record.Activity{ID: record.NewActivityID(tx), AccountID: n.AccountID, Action: record.ActionInvitationCreated, SubjectID: &n.ID, Label: n.Email}
	if err := record.Add(ctx, tx, actor, activity); err != nil || !tx.DB.Mails {
		return false, err
	}
	sent, err := tx.NewSelect().Model((*record.RecentMail)(nil)).
		Where("account_id = ? AND kind = ? AND at > ?", n.AccountID, record.ActionInvitationCreated, n.CreatedAt.Add(-record.RecentMailWindow)).Count(ctx)
	if err != nil || sent >= maxInvitationMails {
		return false, err
	}
	return record.QueueMails(ctx, tx, []string{n.Email}, record.Mail{Kind: activity.Action, AccountID: &n.AccountID, ActivityID: &activity.ID})
}

// CreateInvitationLink gives the invitation of a queued mail a second token, which replaces that of
// an earlier attempt, and sets the role and the expiry of the mail. If the invitation has ended, it
// empties the recipient.
func CreateInvitationLink(ctx context.Context, tx db.Tx, mail *record.Mail) (token string, err error) {
	token = value.NewToken()
	subject := tx.NewSelect().Model((*record.Activity)(nil)).Column("subject_id").Where("activity.id = ?", mail.ActivityID)
	var invitation Invitation
	err = tx.NewUpdate().Model(&invitation).Set("mail_token_hash = ?", value.HashToken(token)).
		Where("id = (?)", subject).Where("expires_at > ?", tx.Now()).Returning("role, expires_at").Scan(ctx)
	if err != nil {
		mail.Recipient = ""
		return "", value.NoRows(err, nil)
	}
	mail.Role, mail.ExpiresAt = string(invitation.Role), invitation.ExpiresAt
	return token, nil
}

// Accept adds the person with the invitation's token to the account, with a password, deletes the
// invitation, records the activity, and signs the new user in. If a user has the email the error is
// [value.ErrEmailTaken], unless the token is that of the mail and the user has never proved the
// email; see freeEmail. Accept sets its own deadlines.
func (i *Invitations) Accept(ctx context.Context, token, password string, client Client) (SignedIn, error) {
	if i.passwords.off {
		return SignedIn{}, value.ErrPasswordsOff
	}
	invitation, err := i.findLimited(ctx, token, client)
	if err != nil {
		return SignedIn{}, err
	}
	if err := checkPassword(password, invitation.Email, invitation.AccountName); err != nil {
		return SignedIn{}, err
	}
	hash, err := i.passwords.hash(ctx, strangerPlace(client), password)
	if err != nil {
		return SignedIn{}, err
	}
	return db.InTx(ctx, i.db, "accept invitation", func(ctx context.Context, tx db.Tx) (SignedIn, error) {
		return i.join(ctx, tx, token, hash, nil, client)
	})
}

// AcceptWithIdentity is [Invitations.Accept] for a person without a password, whose identity it
// connects, also if its email is not the invitation's. With trustEmail, an email of the invitation
// that the provider has verified is proven, as by the mail. If the identity has a user, the error
// is [value.ErrIdentityTaken].
func (i *Invitations) AcceptWithIdentity(ctx context.Context, token string, identity Identity, trustEmail bool, client Client) (SignedIn, error) {
	var verified []byte
	if trustEmail && identity.EmailVerified {
		verified = value.HashEmail(identity.Email)
	}
	return db.InTx(ctx, i.db, "accept invitation", func(ctx context.Context, tx db.Tx) (SignedIn, error) {
		signedIn, err := i.join(ctx, tx, token, i.passwords.hasher.Absent(), verified, client)
		if err != nil {
			return SignedIn{}, err
		}
		user := signedIn.User
		return signedIn, insertIdentity(ctx, tx, user, identity, client.Provider, record.UserActor(user.ID, client.Address))
	})
}

// findLimited is [Invitations.Find] with a limit on wrong tokens from one network, and with its own
// deadlines.
func (i *Invitations) findLimited(ctx context.Context, token string, client Client) (Invitation, error) {
	subject := []throttle.Subject{throttle.SubjectOf("invitation", value.Network(client.Address))}
	if err := i.guesses.Check(ctx, i.db, subject); err != nil {
		return Invitation{}, err
	}
	ctxDB, cancel := context.WithTimeout(ctx, i.db.Timeout)
	defer cancel()
	invitation, err := i.Find(ctxDB, token)
	if errors.Is(err, value.ErrInvitationInvalid) {
		if err := i.guesses.CountWrong(ctx, subject, subject); err != nil {
			return Invitation{}, err
		}
	}
	return invitation, err
}

// join adds the user of the invitation, deletes the invitation and signs the user in. A user with
// the hash [password.Hasher.Absent] has no password, and needs another way to sign in. The email is
// proven if the token is that of the mail, or if its hash is verified.
func (i *Invitations) join(ctx context.Context, tx db.Tx, token, passwordHash string, verified []byte, client Client) (SignedIn, error) {
	invitation, err := i.findByToken(ctx, tx, token)
	if err != nil {
		return SignedIn{}, err
	}
	// Every transaction locks the account before other rows. So the inviter cannot be removed
	// meanwhile, which would delete the invitation.
	if err := lockEnabledAccount(ctx, tx, invitation.AccountID); err != nil {
		return SignedIn{}, value.DisabledIfWrong(err)
	}
	result, err := tx.NewDelete().Model((*Invitation)(nil)).Where("id = ?", invitation.ID).Exec(ctx)
	if err := value.UnlessAffected(result, err, value.ErrInvitationInvalid); err != nil {
		return SignedIn{}, err
	}
	joining := User{AccountID: invitation.AccountID, Email: invitation.Email, PasswordHash: passwordHash, Role: invitation.Role}
	if bytes.Equal(invitation.MailTokenHash, value.HashToken(token)) || bytes.Equal(value.HashEmail(invitation.Email), verified) {
		if err := freeEmail(ctx, tx, invitation.Email, uuid.Nil); err != nil {
			return SignedIn{}, err
		}
		joining.EmailProvenAt = new(tx.Now())
	}
	user, err := insertUser(ctx, tx, joining)
	if err != nil {
		return SignedIn{}, err
	}
	actor := record.UserActor(user.ID, client.Address)
	if err := record.Add(ctx, tx, actor, user.activity(record.ActionInvitationAccepted)); err != nil {
		return SignedIn{}, err
	}
	return i.signIn.begin(ctx, tx, user, byInvitation, client)
}
