package portal

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
	"portal/models/record"
	"portal/models/value"
	"portal/models/webhooks"
	"portal/templates"
)

// webhookPages are the pages on which owners manage webhooks.
type webhookPages struct {
	*site

	webhooks *webhooks.Webhooks
}

// groups returns the groups of a form. An endpoint that already gets calls keeps that choice.
func (p *webhookPages) groups(chosen []record.EventGroup) []templates.WebhookGroup {
	calls := p.callsOn || slices.Contains(chosen, record.GroupCalls)
	return templates.NewWebhookGroups(webhooks.Groups(calls), chosen)
}

// list shows the endpoints and the form that adds one.
func (p *webhookPages) list(c *gin.Context) error {
	page, err := p.page(c)
	if err != nil {
		return err
	}
	return p.reply(c, reply{fragment: page.Form, page: present(page)})
}

func (p *webhookPages) page(c *gin.Context) (page templates.WebhooksPage, err error) {
	page.Form.Groups = p.groups(nil)
	endpoints, err := p.webhooks.List(c.Request.Context(), sessionFrom(c).AccountID)
	for _, endpoint := range endpoints {
		page.List.Endpoints = append(page.List.Endpoints, p.row(endpoint))
	}
	return page, err
}

func (p *webhookPages) row(e webhooks.Endpoint) templates.WebhookRow {
	var names []string
	for _, group := range templates.NewWebhookGroups(e.Groups, nil) {
		names = append(names, group.Name())
	}
	status := "Enabled"
	switch {
	case e.DisabledAt != nil:
		status = "Disabled"
	case !p.webhooks.Readable(e):
		status = "The secret cannot be read. Rotate it"
	case e.FailingSince != nil:
		status = "Failing since " + e.FailingSince.UTC().Format("2 Jan, 15:04 UTC")
	}
	return templates.WebhookRow{ID: e.ID, URL: e.URL, Events: strings.Join(names, ", "), Status: status}
}

func submittedGroups(c *gin.Context) (chosen []record.EventGroup) {
	for _, group := range c.PostFormArray("group") {
		chosen = append(chosen, record.EventGroup(group))
	}
	return chosen
}

// create adds an endpoint and shows its secret once.
func (p *webhookPages) create(c *gin.Context) error {
	form := templates.WebhookForm{URL: c.PostForm("url")}
	chosen := submittedGroups(c)
	form.Groups = p.groups(chosen)
	endpoint, secret, err := p.webhooks.Add(c.Request.Context(), sessionFrom(c).AccountID, form.URL, chosen, actorOf(c))
	if invalid, ok := errors.AsType[*value.InvalidError](err); ok {
		if invalid.Field == "groups" {
			form.GroupsProblem = invalid.Message
		} else {
			form.URLProblem = invalid.Message
		}
		return p.reply(c, reply{status: http.StatusUnprocessableEntity, fragment: form, page: func() (templates.Page, error) {
			page, err := p.page(c)
			page.Form = form
			return page, err
		}})
	}
	if err != nil {
		return err
	}
	added := templates.WebhookAdded{
		Form:   templates.WebhookForm{Groups: p.groups(nil)},
		Reveal: templates.WebhookReveal{ID: endpoint.ID, URL: endpoint.URL, Secret: secret},
	}
	if page, err := p.page(c); err != nil {
		_ = c.Error(err) // the secret must be shown now, the list can wait
	} else {
		added.List = &page.List
	}
	return p.reply(c, reply{fragment: added, page: present(added.Reveal), reveals: true})
}

// show shows an endpoint and its deliveries, and asks to confirm something if asking is not empty.
func (p *webhookPages) show(asking string) handler {
	return func(c *gin.Context) error {
		page, err := p.endpoint(c)
		if err != nil {
			return err
		}
		page.Asking = asking
		return p.reply(c, reply{fragment: page, page: present(page)})
	}
}

// endpoint returns the page of the endpoint in the path.
func (p *webhookPages) endpoint(c *gin.Context) (page templates.WebhookPage, err error) {
	account := sessionFrom(c).AccountID
	endpoint, err := p.webhooks.Find(c.Request.Context(), account, idOf(c))
	if err != nil {
		return page, err
	}
	page.WebhookRow, page.Disabled = p.row(endpoint), endpoint.DisabledAt != nil
	page.Form.ID, page.Form.Groups = endpoint.ID, p.groups(endpoint.Groups)
	deliveries, err := p.webhooks.Deliveries(c.Request.Context(), account, endpoint.ID)
	for _, delivery := range deliveries {
		page.Deliveries = append(page.Deliveries, p.delivery(delivery, endpoint))
	}
	return page, err
}

func (p *webhookPages) delivery(d webhooks.Delivery, e webhooks.Endpoint) templates.DeliveryRow {
	row := templates.DeliveryRow{
		EventID: d.EventID, Event: d.Event, Created: templates.NewMoment(d.CreatedAt, p.now()), Attempts: d.Attempts, Response: d.Response,
		Resend: d.DueAt == nil && e.DisabledAt == nil,
	}
	switch {
	case d.DeliveredAt != nil:
		row.Status = "Delivered"
	case d.DueAt != nil:
		row.Status, row.Next = "Waiting", d.DueAt.UTC().Format("2 Jan, 15:04:05 UTC")
		if d.DueAt.Sub(p.now()) <= time.Minute {
			row.Next = "Within a minute"
		}
	default:
		row.Status = "Failed"
	}
	if d.Status != 0 {
		row.Status += fmt.Sprintf(" (%d)", d.Status)
	}
	return row
}

// rotate gives an endpoint a new secret and shows it once.
func (p *webhookPages) rotate(c *gin.Context) error {
	endpoint, secret, err := p.webhooks.Rotate(c.Request.Context(), sessionFrom(c).AccountID, idOf(c), actorOf(c))
	if err != nil {
		return err
	}
	reveal := templates.WebhookReveal{ID: endpoint.ID, URL: endpoint.URL, Secret: secret, Rotated: true}
	rotated := templates.WebhookRotated{Reveal: reveal}
	if page, err := p.endpoint(c); err != nil {
		_ = c.Error(err) // the secret must be shown now, the page can wait
	} else {
		rotated.Page = &page
	}
	return p.reply(c, reply{fragment: rotated, page: present(reveal), reveals: true})
}

// change does something with the endpoint in the path, and leads to its page with a notice.
func (p *webhookPages) change(notice string, do func(c *gin.Context, accountID, id uuid.UUID) error) handler {
	return func(c *gin.Context) error {
		if err := do(c, sessionFrom(c).AccountID, idOf(c)); err != nil {
			return err
		}
		return p.redirectWith(c, webhooksPath+"/"+c.Param("id"), notice)
	}
}

func (p *webhookPages) disable(c *gin.Context, accountID, id uuid.UUID) error {
	return p.webhooks.Disable(c.Request.Context(), accountID, id, actorOf(c))
}

func (p *webhookPages) enable(c *gin.Context, accountID, id uuid.UUID) error {
	return p.webhooks.Enable(c.Request.Context(), accountID, id, actorOf(c))
}

func (p *webhookPages) test(c *gin.Context, accountID, id uuid.UUID) error {
	return p.webhooks.Test(c.Request.Context(), accountID, id)
}

func (p *webhookPages) resend(c *gin.Context, accountID, id uuid.UUID) error {
	eventID, ok := parseID(c.PostForm("event_id"))
	if !ok {
		return problem.InvalidRequest("The form is incomplete. Open the page of the endpoint and try again there.")
	}
	return p.webhooks.Resend(c.Request.Context(), accountID, id, eventID, c.PostForm("event"))
}

// setEvents changes which events an endpoint gets.
func (p *webhookPages) setEvents(c *gin.Context) error {
	chosen := submittedGroups(c)
	err := p.webhooks.SetGroups(c.Request.Context(), sessionFrom(c).AccountID, idOf(c), chosen, actorOf(c))
	if invalid, ok := errors.AsType[*value.InvalidError](err); ok {
		page, err := p.endpoint(c)
		if err != nil {
			return err
		}
		page.Form.Groups, page.Form.GroupsProblem = p.groups(chosen), invalid.Message
		return p.reply(c, reply{status: http.StatusUnprocessableEntity, fragment: page.Form, page: present(page)})
	}
	if err != nil {
		return err
	}
	return p.redirectWith(c, webhooksPath+"/"+c.Param("id"), "The events were saved.")
}

func (p *webhookPages) remove(c *gin.Context) error {
	if err := p.webhooks.Remove(c.Request.Context(), sessionFrom(c).AccountID, idOf(c), actorOf(c)); err != nil {
		return err
	}
	return p.redirectWith(c, webhooksPath, "The endpoint was removed.")
}
