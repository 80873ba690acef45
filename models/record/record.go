// Package record writes what happened and what follows from it: the activity log, repeated
// activities, the events that leave by webhook, and the mails that an activity queues.
package record

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/value"
)

// consequence is what follows from an action in the transaction that records it.
type consequence struct {
	// group is that of the webhooks that get it.
	group EventGroup
	// repeats means that further ones about the same user, within [RepeatPeriod], are only
	// counted. Otherwise an attacker could fill the activity log.
	repeats bool
	// endsCalls means that calls of the subject may end: a round finds out which ones.
	endsCalls bool
	// mail returns the email addresses of those who get a mail about it; nil: nobody.
	mail func(context.Context, db.Tx, Activity) ([]string, error)
}

// consequences has a row for each action.
var consequences = map[Action]consequence{
	ActionKeyGenerated:  {group: GroupKeys, mail: Owners},
	ActionKeyRenamed:    {group: GroupKeys},
	ActionKeyRestricted: {group: GroupKeys, endsCalls: true},
	ActionKeyTrusted:    {group: GroupKeys},
	ActionKeyRevoked:    {group: GroupKeys, endsCalls: true, mail: ownersUnlessUser},
	// Package keys queues a mail for all keys that leaked in some minutes.
	ActionKeyLeaked: {group: GroupKeys, endsCalls: true},
	// Outbox.WarnOfExpiry queues the mails.
	ActionKeyExpiring:  {group: GroupKeys},
	ActionKeyExpired:   {group: GroupKeys}, // a round ends the calls
	ActionAgentCreated: {group: GroupKeys},
	ActionAgentRenamed: {group: GroupKeys},
	ActionAgentRemoved: {group: GroupKeys, endsCalls: true},
	ActionAgentPaused:  {group: GroupKeys, endsCalls: true},
	ActionAgentResumed: {group: GroupKeys},
	ActionCallsEnded:   {group: GroupCalls},
	ActionCallEnded:    {group: GroupCalls},

	ActionLimitApproaching: {group: GroupCalls, mail: Owners},
	ActionLimitReached:     {group: GroupCalls, mail: Owners},

	// Sessions.create queues the mail about a new device.
	ActionSignedIn:        {group: GroupPeople},
	ActionSignInFailed:    {group: GroupPeople, repeats: true},
	ActionSignedOut:       {group: GroupPeople},
	ActionSessionRevoked:  {group: GroupPeople},
	ActionSessionsRevoked: {group: GroupPeople},
	ActionPasswordRefused: {group: GroupPeople, repeats: true},
	ActionPasswordChanged: {group: GroupPeople, mail: subjectEmail},
	ActionPasswordReset:   {group: GroupPeople, mail: subjectEmail},
	ActionEmailChanged:    {group: GroupPeople, mail: formerEmail},

	ActionIdentityConnected:    {group: GroupPeople, mail: actingUser},
	ActionIdentityDisconnected: {group: GroupPeople, mail: actingUser},

	ActionTOTPOn:               {group: GroupPeople, mail: actingUser},
	ActionTOTPOff:              {group: GroupPeople, mail: actingUser},
	ActionCodeRefused:          {group: GroupPeople, repeats: true},
	ActionCodesRefused:         {group: GroupPeople, mail: subjectEmail},
	ActionRecoveryCodeUsed:     {group: GroupPeople, mail: actingUser},
	ActionRecoveryCodesRenewed: {group: GroupPeople, mail: actingUser},
	ActionPasskeyAdded:         {group: GroupPeople, mail: actingUser},
	ActionPasskeyRemoved:       {group: GroupPeople, mail: actingUser},
	ActionSecondFactorRequired: {group: GroupPeople},
	ActionSecondFactorOptional: {group: GroupPeople},
	ActionSecondFactorReset:    {group: GroupPeople, mail: subjectEmail},

	ActionAccountCreated:  {group: GroupPeople},
	ActionAccountRenamed:  {group: GroupPeople},
	ActionAccountDisabled: {group: GroupPeople, endsCalls: true},
	ActionAccountEnabled:  {group: GroupPeople},
	ActionAccountLimited:  {group: GroupPeople},
	ActionUnusedKeysSet:   {group: GroupKeys},
	ActionUserAdded:       {group: GroupPeople},
	ActionUserDisabled:    {group: GroupPeople},
	ActionUserEnabled:     {group: GroupPeople},
	ActionUserRemoved:     {group: GroupPeople},
	ActionUserMadeOwner:   {group: GroupPeople},
	ActionUserMadeMember:  {group: GroupPeople},
	ActionRoleKept:        {group: GroupPeople, repeats: true},
	ActionLinkCreated:     {group: GroupPeople},

	// Invitations.Create queues the mail, which has limits of its own.
	ActionInvitationCreated:   {group: GroupPeople},
	ActionInvitationCancelled: {group: GroupPeople},
	ActionInvitationAccepted:  {group: GroupPeople},

	ActionWebhookAdded:    {group: GroupKeys},
	ActionWebhookRemoved:  {group: GroupKeys},
	ActionWebhookChanged:  {group: GroupKeys},
	ActionWebhookRotated:  {group: GroupKeys},
	ActionWebhookEnabled:  {group: GroupKeys},
	ActionWebhookDisabled: {group: GroupKeys, mail: ownersUnlessActor},

	ActionDatabaseRestored: {group: GroupKeys},
}

// NewActivityID returns the id of an activity that happens now, by the clock of the store if that
// is to be in the past.
func NewActivityID(tx db.Tx) uuid.UUID {
	id := value.NewID()
	if tx.DB.PastIDs {
		past := value.LowestID(tx.Now())
		copy(id[:6], past[:6])
	}
	return id
}

// Add sets the actor, the time and, if it is missing, the id of the activity, writes it and does
// what follows from its action. A repeat is only counted, and moves the first one to the newest
// place.
func Add(ctx context.Context, tx db.Tx, actor Actor, activity Activity) error {
	if activity.ID == uuid.Nil {
		activity.ID = NewActivityID(tx)
	}
	activity.At, activity.Count = tx.Now(), max(1, activity.Count)
	activity.ActorKind, activity.Address = actor.Kind, actor.Address
	if actor.Kind == ActorUser {
		activity.ActorID = &actor.ID
	}
	follows := consequences[activity.Action]
	if follows.repeats {
		if first, err := countRepeat(ctx, tx, activity); err != nil || !first {
			return err
		}
	}
	if err := tx.Insert(ctx, &activity); err != nil {
		return err
	}
	if err := FanOut(ctx, tx, follows.group, activity.AccountID, Event{string(activity.Action), activity.ID}); err != nil {
		return err
	}
	if follows.mail == nil || !tx.DB.Mails {
		return nil
	}
	recipients, err := follows.mail(ctx, tx, activity)
	if err != nil {
		return err
	}
	_, err = QueueMails(ctx, tx, recipients, Mail{Kind: activity.Action, AccountID: &activity.AccountID, ActivityID: &activity.ID})
	return err
}

// RepeatPeriod is how long one activity counts the wrong passwords or codes of a user.
const RepeatPeriod = 10 * time.Minute

// repeatable are the actions whose repeats are only counted, and EndingActions those that end
// calls.
var (
	repeatable    = actionsWith(func(c consequence) bool { return c.repeats })
	EndingActions = actionsWith(func(c consequence) bool { return c.endsCalls })
)

func actionsWith(holds func(consequence) bool) []Action {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(consequences)), func(action Action) bool { return !holds(consequences[action]) })
}

// countRepeat counts an activity about a user in its period, and reports whether it is the first
// one, which the caller writes.
func countRepeat(ctx context.Context, tx db.Tx, activity Activity) (first bool, err error) {
	repeat := ActivityRepeat{
		UserID: *activity.SubjectID, Action: activity.Action, Period: activity.At.Truncate(RepeatPeriod),
		AccountID: activity.AccountID, ActivityID: activity.ID, Address: activity.Address, LastID: activity.ID, LastAt: activity.At,
	}
	var recorded uuid.UUID
	err = tx.NewInsert().Model(&repeat).On("CONFLICT (user_id, action, period) DO UPDATE").
		Set("repeats = repeated.repeats + 1, last_id = EXCLUDED.last_id, last_at = EXCLUDED.last_at").
		Set("elsewhere = repeated.elsewhere OR repeated.address <> EXCLUDED.address").
		Returning("activity_id").Scan(ctx, &recorded)
	return recorded == activity.ID, err
}

// actingUser is the user who has acted.
func actingUser(ctx context.Context, tx db.Tx, a Activity) ([]string, error) {
	if a.ActorID == nil {
		return nil, nil
	}
	return emailsOf(ctx, tx, "u.id = ?", *a.ActorID)
}

// subjectEmail is the user who is the subject, by the email at that time.
func subjectEmail(_ context.Context, _ db.Tx, a Activity) ([]string, error) {
	return []string{a.Label}, nil
}

// formerEmail is the email before it was changed.
func formerEmail(_ context.Context, _ db.Tx, a Activity) ([]string, error) {
	return []string{a.FormerLabel}, nil
}

// Owners are the account's owners who can sign in.
func Owners(ctx context.Context, tx db.Tx, a Activity) ([]string, error) {
	return emailsOf(ctx, tx, "u.account_id = ? AND u.role = ? AND u.disabled_at IS NULL AND u.removed_at IS NULL", a.AccountID, "owner")
}

// ownersUnlessUser is [Owners], but nobody if a user of the account has acted.
func ownersUnlessUser(ctx context.Context, tx db.Tx, a Activity) ([]string, error) {
	if a.ActorKind != ActorOperator {
		return nil, nil
	}
	return Owners(ctx, tx, a)
}

// ownersUnlessActor is [Owners], but nobody if a user has acted.
func ownersUnlessActor(ctx context.Context, tx db.Tx, a Activity) ([]string, error) {
	if a.ActorKind == ActorUser {
		return nil, nil
	}
	return Owners(ctx, tx, a)
}

// maxOwnersMailed limits the owners who get a mail about a key.
const maxOwnersMailed = 50

// OwnersAndCreators returns the email addresses of at most maxOwnersMailed owners of the account,
// and then of the users who generated these keys, even if more owners than that exist.
func OwnersAndCreators(ctx context.Context, tx db.Tx, accountID uuid.UUID, keys ...uuid.UUID) ([]string, error) {
	recipients, err := Owners(ctx, tx, Activity{AccountID: accountID})
	if err != nil {
		return nil, err
	}
	ids := tx.NewSelect().Table("api_keys").Column("created_by").Where("account_id = ? AND id IN (?)", accountID, bun.List(keys))
	creators, err := emailsOf(ctx, tx, "u.account_id = ? AND u.id IN (?) AND u.disabled_at IS NULL AND u.removed_at IS NULL", accountID, ids)
	for _, creator := range creators {
		if !slices.Contains(recipients, creator) {
			recipients = append(recipients, creator)
		}
	}
	return recipients, err
}

func emailsOf(ctx context.Context, tx db.Tx, where string, args ...any) (emails []string, err error) {
	err = tx.NewSelect().TableExpr("users AS u").Column("u.email").Where(where, args...).
		OrderExpr("u.id").Limit(maxOwnersMailed).Scan(ctx, &emails)
	return emails, err
}

// Events returns the types of the events of a group, sorted.
func Events(group EventGroup) []string {
	var types []string
	for _, action := range actionsWith(func(c consequence) bool { return c.group == group }) {
		types = append(types, string(action))
	}
	if group == GroupCalls {
		types = append(types, EventCallStarted, EventCallEnded)
	}
	slices.Sort(types)
	return types
}
