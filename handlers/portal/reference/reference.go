package reference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"portal/templates"
)

// New reads the OpenAPI document into the page of the API reference. The examples call the portal
// at baseURL. It returns an error if the document refers to a component that it does not have.
func New(openapi []byte, baseURL string) (templates.ReferencePage, error) {
	baseURL = strings.TrimSuffix(baseURL, "/")
	r := reader{fill: strings.NewReplacer("BASE_URL", baseURL)}
	if err := json.Unmarshal(openapi, &r.document); err != nil {
		return templates.ReferencePage{}, fmt.Errorf("read openapi.json: %w", err)
	}
	page := templates.ReferencePage{
		Version: r.Info.Version, Summary: r.Info.Summary, Intro: templates.NewProse(r.Info.Description),
		BaseURL: baseURL,
	}
	for _, tag := range r.Tags {
		group := templates.OperationGroup{ID: slug(tag.Name), Name: tag.Name, Description: tag.Description}
		operations, err := r.operations(tag.Name)
		if err != nil {
			return templates.ReferencePage{}, err
		}
		group.Operations = operations
		page.Groups = append(page.Groups, group)
	}
	page.Errors = r.errors()
	return page, nil
}

// slug returns the HTML id of a section.
func slug(name string) string { return strings.ToLower(strings.ReplaceAll(name, " ", "-")) }

// reader is a document, and the replacer of BASE_URL in its examples.
type reader struct {
	document
	fill *strings.Replacer
}

// operations returns the operations with a tag, in the order of the document.
func (r reader) operations(tag string) (found []templates.Operation, err error) {
	for _, path := range r.Paths.names {
		item := r.Paths.values[path]
		for _, described := range item.operations() {
			if !slices.Contains(described.Tags, tag) {
				continue
			}
			described.Parameters = slices.Concat(item.Parameters, described.Parameters)
			operation, err := r.operation(path, described)
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", described.method, path, err)
			}
			found = append(found, operation)
		}
	}
	return found, nil
}

func (r reader) operation(path string, described methodOperation) (templates.Operation, error) {
	o := templates.Operation{
		ID: described.OperationID, Method: described.method, Path: path, Summary: described.Summary,
		Description: templates.NewProse(described.Description), Scheme: schemeOf(described.Security),
	}
	o.Authentication = templates.NewProse(r.Components.SecuritySchemes[o.Scheme].Description)
	for _, p := range described.Parameters {
		field, err := r.parameter(p)
		if err != nil {
			return o, err
		}
		o.Parameters = append(o.Parameters, field)
	}
	if described.RequestBody != nil {
		body, err := r.requestBody(*described.RequestBody)
		if err != nil {
			return o, err
		}
		o.Body = &body
	}
	for _, status := range described.Responses.names {
		if err := r.addResponse(&o, status, described.Responses.values[status]); err != nil {
			return o, err
		}
	}
	o.Curl = templates.NewSnippet("curl-"+o.ID, "curl", "bash", curl(o), r.fill)
	return o, nil
}

// schemeOf returns the first security scheme of an operation, or "" if anyone may call it.
func schemeOf(security *[]map[string]any) string {
	if security == nil {
		return templates.SchemeAPIKey
	}
	for _, schemes := range *security {
		for name := range schemes {
			return name
		}
	}
	return ""
}

func (r reader) parameter(p parameter) (templates.Field, error) {
	if p.Ref != "" {
		found, err := lookup(r.Components.Parameters, p.Ref)
		if err != nil {
			return templates.Field{}, err
		}
		p = found
	}
	field, err := r.field(p.Name, p.Schema, p.Required)
	field.Type += ", " + p.In
	if p.Description != "" {
		field.Description = templates.NewProse(p.Description)
	}
	return field, err
}

func (r reader) requestBody(described requestBody) (templates.RequestBody, error) {
	kind, content := described.Content.first()
	shapes, err := r.shapes(content.Schema)
	if err != nil {
		return templates.RequestBody{}, err
	}
	body := templates.RequestBody{Type: kind, Description: templates.NewProse(described.Description)}
	if len(shapes) > 0 {
		body.Fields = shapes[0].Fields
	}
	_, shown := content.Examples.first()
	body.Example = exampleText(kind, shown.Value)
	return body, nil
}

// addResponse adds a response, and the examples of a successful one.
func (r reader) addResponse(o *templates.Operation, status string, described response) (err error) {
	if described.Ref != "" {
		if described, err = lookup(r.Components.Responses, described.Ref); err != nil {
			return err
		}
	}
	added := templates.Response{Status: status, Description: templates.NewProse(described.Description)}
	for _, name := range described.Headers.names {
		field, err := r.header(name, described.Headers.values[name])
		if err != nil {
			return err
		}
		added.Headers = append(added.Headers, field)
	}
	kind, content := described.Content.first()
	if added.Failed() {
		added.Code = codeOf(content)
		o.Responses = append(o.Responses, added)
		return nil
	}
	if added.Shapes, err = r.shapes(content.Schema); err != nil {
		return err
	}
	for _, name := range content.Examples.names {
		shown := content.Examples.values[name]
		id := fmt.Sprintf("%s-%s-%s", o.ID, status, name)
		title := strings.TrimSpace(status + " " + shown.Summary)
		o.Examples = append(o.Examples, templates.NewSnippet(id, title, "json", exampleText(kind, shown.Value), r.fill))
	}
	o.Responses = append(o.Responses, added)
	return nil
}

// exampleText returns an example as it is sent.
func exampleText(mediaType string, value json.RawMessage) string {
	if mediaType == formType {
		var fields map[string]string
		if json.Unmarshal(value, &fields) == nil {
			return formText(fields)
		}
	}
	if text := string(value); !strings.Contains(text, "\n") && len(text) < 80 {
		return text
	}
	var indented bytes.Buffer
	if json.Indent(&indented, value, "", "  ") != nil {
		return string(value)
	}
	return indented.String()
}

// errors returns the error responses of all operations, in the order of their codes.
func (r reader) errors() []templates.ErrorCode {
	var found []templates.ErrorCode
	for _, code := range r.Components.Schemas["ErrorCode"].Enum {
		for status, described := range r.errorResponses() {
			_, content := described.Content.first()
			if codeOf(content) != code {
				continue
			}
			row := templates.ErrorCode{
				Status: status, Code: fmt.Sprint(code), Description: templates.NewProse(described.Description),
			}
			for _, name := range content.Examples.names {
				shown := content.Examples.values[name]
				row.Messages = append(row.Messages, templates.ErrorMessage{
					Cause: shown.Summary, Reason: shown.Reason, Message: messageOf(shown),
				})
			}
			found = append(found, row)
			break
		}
	}
	return found
}

// errorResponses iterates over the status and the component of each error of each operation.
func (r reader) errorResponses() func(yield func(string, response) bool) {
	return func(yield func(string, response) bool) {
		for _, path := range r.Paths.names {
			for _, described := range r.Paths.values[path].operations() {
				for _, status := range described.Responses.names {
					ref := described.Responses.values[status].Ref
					component, err := lookup(r.Components.Responses, ref)
					if err == nil && status >= "4" && !yield(status, component) {
						return
					}
				}
			}
		}
	}
}

func messageOf(shown example) string {
	var body struct{ Error string }
	if json.Unmarshal(shown.Value, &body) != nil {
		return ""
	}
	return body.Error
}

// codeOf returns the code in the first example of an error response.
func codeOf(content media) string {
	var body struct{ Code string }
	_, shown := content.Examples.first()
	if json.Unmarshal(shown.Value, &body) != nil {
		return ""
	}
	return body.Code
}
