package portal

import (
	"github.com/gin-gonic/gin"

	"portal/templates"
)

// retryFields are the fields of all forms that an error page offers to send again. Other fields are
// dropped.
var retryFields = []templates.RetryField{
	{Name: "form_id"}, // so that a retry creates nothing twice
	{Name: "next"},
	{Name: "label", Title: "Label"},
	{Name: "name", Title: "Name"},
	{Name: "email", Title: "Email", Autocomplete: "username"},
	{Name: "password", Title: "Password", Secret: true, Autocomplete: "current-password"},
	{Name: passwordField, Title: "Current password", Secret: true, Autocomplete: "current-password"},
	{Name: "new_password", Title: "New password", Secret: true, Autocomplete: "new-password"},
}

// retryOf returns the request's form without its secrets, or nil if it cannot be read.
func retryOf(c *gin.Context) *templates.Retry {
	// The request may have failed before the form was read.
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
