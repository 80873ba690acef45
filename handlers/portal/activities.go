package portal

import (
	"context"
	"net/url"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
	"portal/models"
	"portal/templates"
)

const activityPath = "/activity"

// activitiesPerPage is the number of activities on a page.
const activitiesPerPage = 50

// The parameters of the query string: the kind of activity, and the id that the page starts after.
const (
	paramKind   = "kind"
	paramBefore = "before"
)

// listActivities shows the account's activities, newest first.
func (p *Portal) listActivities(c *gin.Context) error {
	// One more than the page shows, to know whether there are older ones.
	wanted := models.ActivityPage{Limit: activitiesPerPage + 1}
	before, paged := c.GetQuery(paramBefore)
	if paged {
		id, ok := parseID(before)
		if !ok {
			return problem.NotFound()
		}
		wanted.Before = id
	}
	kind, err := activityKind(c)
	if err != nil {
		return err
	}
	wanted.Action = kind
	activities, err := p.store.Activities(c.Request.Context(), sessionFrom(c).AccountID, wanted)
	if err != nil {
		return err
	}
	page := templates.ActivityPage{
		Filter: activityFilter(kind), Paged: paged,
		Newest: activityAddress(activityPath, kind, ""), Export: activityAddress(exportPath, kind, ""),
	}
	if len(activities) > activitiesPerPage {
		activities = activities[:activitiesPerPage]
		page.Older = activityAddress(activityPath, kind, activities[activitiesPerPage-1].ID.String())
	}
	page.Activities, err = p.activityItems(c.Request.Context(), sessionFrom(c).AccountID, activities)
	if err != nil {
		return err
	}
	return p.reply(c, reply{fragment: page, page: present(page)})
}

// activityKind returns the kind in the query string, empty for all.
func activityKind(c *gin.Context) (models.Action, error) {
	kind := models.Action(c.Query(paramKind))
	if _, known := activityKindNames[kind]; kind != "" && !known {
		return "", problem.NotFound()
	}
	return kind, nil
}

func activityAddress(path string, kind models.Action, before string) string {
	query := url.Values{}
	if kind != "" {
		query.Set(paramKind, string(kind))
	}
	if before != "" {
		query.Set(paramBefore, before)
	}
	return (&url.URL{Path: path, RawQuery: query.Encode()}).String()
}

// activityItems returns the activities as the page shows them. A revocation has the number of
// refused requests with the key in the last hour.
func (p *Portal) activityItems(ctx context.Context, accountID uuid.UUID, activities []models.Activity) ([]templates.ActivityItem, error) {
	var revoked []uuid.UUID
	for _, activity := range activities {
		if activity.Action == models.ActionKeyRevoked {
			revoked = append(revoked, *activity.SubjectID)
		}
	}
	usage, err := p.store.RecentUsage(ctx, accountID, revoked...)
	if err != nil {
		return nil, err
	}
	now := p.now()
	var items []templates.ActivityItem
	for _, activity := range activities {
		item := templates.ActivityItem{
			Actor: activity.ActorName, Action: string(activity.Action), Label: activity.Label,
			Former: activity.FormerLabel, Key: activity.MaskedKey(), Replaced: activity.MaskedReplaced(),
			Address: activity.Address, At: templates.NewMoment(activity.At, now),
			Count: templates.Count(activity.Count + activity.Repeats), Other: activity.Elsewhere,
		}
		switch activity.Action {
		case models.ActionKeyRevoked:
			item.Refusals = templates.Count(usage[*activity.SubjectID].Refusals)
		case models.ActionSessionRevoked:
			item.Label = device(activity.Label)
		default:
		}
		items = append(items, item)
	}
	return items, nil
}
