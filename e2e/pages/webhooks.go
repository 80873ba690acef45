package pages

import "regexp"

// Webhooks is the page of an account's endpoints.
type Webhooks struct{ Frame }

// FollowToWebhooks opens the page by its link on the page of settings. The visitor must be an
// owner.
func FollowToWebhooks(b *Tab) Webhooks {
	OpenSettings(b)
	b.Follow("Webhooks")
	b.expectPage("/webhooks", "Webhooks")
	return Webhooks{Frame{b}}
}

// Add submits the form with a URL and these groups of events.
func (w Webhooks) Add(url string, groups ...string) {
	w.Fill("Endpoint URL", url)
	for _, group := range groups {
		w.must(w.find("checkbox", group).Check(), "choose %s", group)
	}
	w.Click("Add endpoint")
}

// ExpectAdded waits for the reveal of the secret of a new endpoint.
func (w Webhooks) ExpectAdded() Reveal {
	return expectReveal(w.Tab, "Endpoint added", "Signing secret")
}

// Endpoint opens the page of the endpoint with this URL.
func (w Webhooks) Endpoint(url string) Webhook {
	w.In("table", "Endpoints").Follow(url)
	w.ExpectHeading(url)
	return Webhook{w.Frame}
}

// Webhook is the page of an endpoint.
type Webhook struct{ Frame }

// Confirm presses a button that asks, then Cancel, then the button again, and confirms.
func (w Webhook) Confirm(button, confirm string) {
	for _, answer := range []string{"Cancel", confirm} {
		w.Click(button)
		w.Expect("button", confirm)
		w.settled()
		w.ExpectFocus("button", "Cancel")
		w.Click(answer)
		w.ExpectNo("button", confirm)
		w.settled()
	}
}

// Rotate gives the endpoint a new secret and returns its reveal.
func (w Webhook) Rotate() Reveal {
	w.Confirm("Rotate secret", "Confirm rotation")
	return expectReveal(w.Tab, "Secret rotated", "Signing secret")
}

// ExpectDelivery reloads the page until the text of the newest delivery matches pattern.
func (w Webhook) ExpectDelivery(pattern string) Area {
	newest := w.In("table", "Deliveries").find("row", "").Nth(1)
	w.eventually("a delivery that matches "+pattern, func() bool {
		w.Reload()
		text, err := newest.InnerText()
		return err == nil && regexp.MustCompile(`(?s)`+pattern).MatchString(text)
	})
	return Area{w.Tab, newest}
}
