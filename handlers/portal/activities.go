package portal

import (
	"net/url"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
	"portal/models"
	"portal/templates"
)

// activitiesPerPage is how many lines of the record a page shows.
const activitiesPerPage = 50

// listActivities shows the account's record, newest first.
func (p *Portal) listActivities(c *gin.Context) error {
	// One more than is shown tells whether there are older ones.
	wanted := models.ActivityPage{Limit: activitiesPerPage + 1}
	before, paged := c.GetQuery("before")
	if paged {
		id, ok := parseID(before)
		if !ok {
			return problem.NotFound()
		}
		wanted.Before = id
	}
	activities, err := p.store.Activities(c.Request.Context(), customer(c).AccountID, wanted)
	if err != nil {
		return err
	}
	page := templates.ActivityPage{Paged: paged}
	if len(activities) > activitiesPerPage {
		activities = activities[:activitiesPerPage]
		last := activities[activitiesPerPage-1].ID
		page.Older = "/activity?" + url.Values{"before": {last.String()}}.Encode()
	}
	now := p.now()
	for _, activity := range activities {
		page.Activities = append(page.Activities, templates.ActivityItem{
			Actor: activity.ActorName, Action: string(activity.Action), Label: activity.Label,
			Address: activity.Address, At: templates.NewMoment(activity.At, now),
		})
	}
	return p.reply(c, reply{fragment: page, page: present(page)})
}
