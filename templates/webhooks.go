package templates

import (
	"slices"

	"github.com/google/uuid"

	"portal/models/record"
)

// WebhooksPage is /webhooks.
type WebhooksPage struct {
	Form WebhookForm
	List WebhookList
}

func (WebhooksPage) screen() screen {
	return screen{file: "webhooks/index.html", section: SectionSettings}
}

// WebhookForm is the form that adds an endpoint.
type WebhookForm struct {
	URL           string // as submitted
	URLProblem    string // the error of the URL
	Groups        []WebhookGroup
	GroupsProblem string // the error of the groups
}

func (WebhookForm) fragment() string { return "webhook-form" }

// WebhookGroup is a group of events in the form.
type WebhookGroup struct {
	ID     record.EventGroup
	Chosen bool
}

// Name returns the name of the group.
func (g WebhookGroup) Name() string { return webhookGroupNames[g.ID] }

var webhookGroupNames = map[record.EventGroup]string{
	record.GroupKeys: "Keys and agents", record.GroupCalls: "Calls", record.GroupPeople: "People and sign-in",
}

// NewWebhookGroups returns the groups of a form.
func NewWebhookGroups(all, chosen []record.EventGroup) (groups []WebhookGroup) {
	for _, id := range all {
		groups = append(groups, WebhookGroup{id, slices.Contains(chosen, id)})
	}
	return groups
}

// WebhookList is the table of endpoints.
type WebhookList struct{ Endpoints []WebhookRow }

// WebhookRow is an endpoint.
type WebhookRow struct {
	ID     uuid.UUID
	URL    string
	Events string // the names of its groups
	Status string
}

// WebhookReveal shows the secret of an endpoint once, as a page or as a dialog.
type WebhookReveal struct {
	ID      uuid.UUID
	URL     string
	Secret  string // rendered once, in this response only
	Rotated bool   // the endpoint is not new
}

// Heading returns the heading of the dialog.
func (r WebhookReveal) Heading() string {
	if r.Rotated {
		return "Secret rotated"
	}
	return "Endpoint added"
}

// End returns the end of the reveal.
func (r WebhookReveal) End() RevealEnd {
	return RevealEnd{What: "secret", Back: "/webhooks/" + r.ID.String()}
}

func (WebhookReveal) screen() screen {
	return screen{file: "webhooks/secret.html", section: SectionSettings}
}

// WebhookAdded updates the page after an endpoint was added.
type WebhookAdded struct {
	Form   WebhookForm
	List   *WebhookList // nil leaves the table as it is, because it could not be read
	Reveal WebhookReveal
}

func (WebhookAdded) fragment() string { return "webhook-added" }

// WebhookRotated updates the page after the secret of an endpoint was rotated.
type WebhookRotated struct {
	Page   *WebhookPage // nil if it could not be read
	Reveal WebhookReveal
}

func (WebhookRotated) fragment() string { return "webhook-rotated" }

// WebhookPage is /webhooks/:id.
type WebhookPage struct {
	WebhookRow

	Form       WebhookEvents
	Disabled   bool
	Asking     string // what it asks to confirm: "rotation", "disabling", "removal" or nothing
	Deliveries []DeliveryRow
}

func (WebhookPage) screen() screen {
	return screen{file: "webhooks/show.html", section: SectionSettings}
}

func (WebhookPage) fragment() string { return "webhook" }

// WebhookEvents is the form that changes the events of an endpoint.
type WebhookEvents struct {
	WebhookForm

	ID uuid.UUID
}

func (WebhookEvents) fragment() string { return "webhook-events" }

// DeliveryRow is a delivery to an endpoint.
type DeliveryRow struct {
	EventID  uuid.UUID
	Event    string
	Created  Moment
	Status   string
	Response string // may be empty
	Attempts int
	Next     string // when the next attempt is; empty: none
	Resend   bool   // it can be sent again
}
