package portal

import (
	"github.com/gin-gonic/gin"

	"portal/templates"
)

// retryFields are the fields that an error page offers again, of whichever form
// has them. A field that is not among them is left out.
var retryFields = []templates.RetryField{
	{Name: "form_id"}, // so that trying again makes nothing twice
	{Name: "next"},
	{Name: "label", Title: "Label"},
	{Name: "name", Title: "Name"},
	{Name: "email", Title: "Email", Autocomplete: "username"},
	{Name: "password", Title: "Password", Secret: true, Autocomplete: "current-password"},
	{Name: "current_password", Title: "Current password", Secret: true, Autocomplete: "current-password"},
	{Name: "new_password", Title: "New password", Secret: true, Autocomplete: "new-password"},
}

// retryOf is the form that was sent, to be sent again as it is or corrected; nil
// if it cannot be read. Secrets are not repeated.
func retryOf(c *gin.Context) *templates.Retry {
	// What failed may have come before the form was read.
	if err := parseForm(c); err != nil {
		return nil
	}
	retry := &templates.Retry{Action: c.Request.URL.RequestURI()}
	for _, field := range retryFields {
		values := c.Request.PostForm[field.Name]
		if len(values) == 0 {
			continue
		}
		if !field.Secret {
			field.Value = values[0]
		}
		retry.Fields = append(retry.Fields, field)
	}
	return retry
}
