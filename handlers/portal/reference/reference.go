package reference

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"portal/templates"
)

// exampleURL is the portal's address in the OpenAPI document.
const exampleURL = "https://portal.example.com"

// New reads the OpenAPI document into the API reference, whose examples call the portal at baseURL.
// If the document refers to a component that it does not have, New returns an error.
func New(openapi []byte, baseURL string) (templates.Reference, error) {
	baseURL = strings.TrimSuffix(baseURL, "/")
	r := &reader{errors: map[string]templates.ErrorCode{}, described: map[string]bool{}, fill: strings.NewReplacer("BASE_URL", baseURL, exampleURL, baseURL)}
	if err := json.Unmarshal(openapi, &r.document); err != nil {
		return templates.Reference{}, fmt.Errorf("read openapi.json: %w", err)
	}
	page := templates.Reference{
		Version: r.Info.Version, Summary: r.Info.Summary, Intro: templates.NewProse(r.Info.Description),
		BaseURL: baseURL,
	}
	for _, tag := range r.Tags {
		page.Groups = append(page.Groups, templates.OperationGroup{
			ID: slug(tag.Name), Name: tag.Name, Description: templates.NewProse(tag.Description), Operations: r.operations(tag.Name),
		})
	}
	for _, code := range r.Components.Schemas["ErrorCode"].Enum {
		if row, ok := r.errors[fmt.Sprint(code)]; ok {
			page.Errors = append(page.Errors, row)
		}
	}
	return page, errors.Join(r.missing...)
}

// everywhere are the headers of all responses, which the introduction describes once.
var everywhere = []string{"#/components/headers/RequestId", "#/components/headers/NoStore"}

// slug returns the HTML id of a section.
func slug(name string) string { return strings.ToLower(strings.ReplaceAll(name, " ", "-")) }

// reader reads a document.
type reader struct {
	document
	fill   *strings.Replacer              // replaces the portal's address in the examples
	errors map[string]templates.ErrorCode // of the operations that were read, by code
	// References to components that the document does not have.
	missing []error

	// Codes whose description is that of a response with this code alone.
	described map[string]bool
}

// lookup returns the component that ref names, such as "#/components/schemas/Error".
func lookup[T any](r *reader, components map[string]T, ref string) T {
	found, ok := components[ref[strings.LastIndexByte(ref, '/')+1:]]
	if !ok {
		r.missing = append(r.missing, fmt.Errorf("openapi.json has no %s", ref))
	}
	return found
}

// operations returns the operations with a tag, in the order of the document.
func (r *reader) operations(tag string) (found []templates.Operation) {
	for _, path := range r.Paths.names {
		item := r.Paths.values[path]
		for _, described := range item.operations() {
			if !slices.Contains(described.Tags, tag) {
				continue
			}
			described.Parameters = slices.Concat(item.Parameters, described.Parameters)
			found = append(found, r.operation(path, described))
		}
	}
	return found
}

func (r *reader) operation(path string, described methodOperation) templates.Operation {
	o := templates.Operation{
		ID: described.OperationID, Method: described.method, Path: path, Summary: described.Summary,
		Description: templates.NewProse(described.Description), Scheme: schemeOf(described.Security),
	}
	o.Authentication = templates.NewProse(r.Components.SecuritySchemes[o.Scheme].Description)
	for _, p := range described.Parameters {
		o.Parameters = append(o.Parameters, r.parameter(p))
	}
	if described.RequestBody != nil {
		o.Body = r.requestBody(*described.RequestBody)
	}
	statuses := map[string][]string{} // by header
	for _, status := range described.Responses.names {
		response := r.addResponse(&o, status, described.Responses.values[status])
		for _, name := range response.Headers.names {
			if slices.Contains(everywhere, response.Headers.values[name].Ref) {
				continue
			}
			if statuses[name] = append(statuses[name], status); len(statuses[name]) == 1 {
				o.Headers = append(o.Headers, r.header(name, response.Headers.values[name]))
			}
		}
	}
	for i, header := range o.Headers {
		if with := statuses[header.Name]; len(with) < len(o.Responses) {
			o.Headers[i].Type += ", with " + strings.Join(with, ", ")
		}
	}
	o.Curl = templates.NewSnippet("curl-"+o.ID, "curl", "bash", curl(o), r.fill)
	return o
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

func (r *reader) parameter(p parameter) templates.Field {
	if p.Ref != "" {
		p = lookup(r, r.Components.Parameters, p.Ref)
	}
	field := r.field(p.Name, p.Schema, p.Required)
	field.Type += ", " + p.In
	if p.Description != "" {
		field.Description = templates.NewProse(p.Description)
	}
	return field
}

func (r *reader) requestBody(described requestBody) *templates.RequestBody {
	kind, content := described.Content.first()
	body := &templates.RequestBody{Type: kind, Description: templates.NewProse(described.Description)}
	if shapes := r.shapes(content.Schema); len(shapes) > 0 {
		body.Fields = shapes[0].Fields
	}
	_, shown := content.Examples.first()
	body.Example = exampleText(kind, shown.Value)
	return body
}

// addResponse adds a response, and the examples of a successful one. It returns the response
// itself for a reference.
func (r *reader) addResponse(o *templates.Operation, status string, described response) response {
	shared := described.Ref != ""
	if shared {
		described = lookup(r, r.Components.Responses, described.Ref)
	}
	added := templates.Response{Status: status, Description: templates.NewProse(described.Description)}
	kind, content := described.Content.first()
	if added.Failed() {
		added.Codes = codesOf(content)
		if shared {
			r.addErrors(added, content)
		}
		o.Responses = append(o.Responses, added)
		return described
	}
	added.Shapes = r.shapes(content.Schema)
	for _, name := range content.Examples.names {
		shown := content.Examples.values[name]
		id := fmt.Sprintf("%s-%s-%s", o.ID, status, name)
		title := strings.TrimSpace(status + " " + shown.Summary)
		o.Examples = append(o.Examples, templates.NewSnippet(id, title, "json", exampleText(kind, shown.Value), r.fill))
	}
	o.Responses = append(o.Responses, added)
	return described
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

// addErrors adds the examples of an error response to the rows of their codes. The description of a
// row is that of its example, of the first response with this code alone, or else of the first one.
func (r *reader) addErrors(response templates.Response, content media) {
	for _, name := range content.Examples.names {
		shown := content.Examples.values[name]
		body := bodyOf(shown)
		row := r.errors[body.Code]
		row.Status, row.Code = response.Status, body.Code
		if row.Description == nil {
			row.Description = response.Description
		}
		if shown.Description != "" {
			row.Description, r.described[body.Code] = templates.NewProse(shown.Description), true
		}
		message := templates.ErrorMessage{Cause: shown.Summary, Reason: shown.Reason, Message: body.Error}
		if !slices.ContainsFunc(row.Messages, func(m templates.ErrorMessage) bool { return m.Message == message.Message }) {
			row.Messages = append(row.Messages, message)
		}
		r.errors[body.Code] = row
	}
	if len(response.Codes) != 1 {
		return
	}
	if code := response.Codes[0]; !r.described[code] {
		row := r.errors[code]
		row.Description = response.Description
		r.errors[code], r.described[code] = row, true
	}
}

type errorBody struct{ Error, Code string }

// bodyOf returns the body of an error. It is empty if the example is not one.
func bodyOf(shown example) (body errorBody) {
	if json.Unmarshal(shown.Value, &body) != nil {
		return errorBody{}
	}
	return body
}

// codesOf returns the codes in the examples of an error response.
func codesOf(content media) (codes []string) {
	for _, name := range content.Examples.names {
		if code := bodyOf(content.Examples.values[name]).Code; code != "" && !slices.Contains(codes, code) {
			codes = append(codes, code)
		}
	}
	return codes
}

// Changelog reads CHANGELOG.md of the API: headings such as "## 1.1.0, 2026-11-22", and below each
// a list of changes. If any other text follows the first heading, Changelog returns an error.
func Changelog(text string) ([]templates.Release, error) {
	var releases []templates.Release
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		last := len(releases) - 1
		heading, isHeading := strings.CutPrefix(line, "## ")
		change, isChange := strings.CutPrefix(line, "- ")
		switch {
		case isHeading:
			version, date, _ := strings.Cut(heading, ", ")
			if _, err := time.Parse(time.DateOnly, date); err != nil {
				return nil, fmt.Errorf("CHANGELOG.md: heading %q: %w", heading, err)
			}
			releases = append(releases, templates.Release{Version: version, Date: date})
		case last < 0 || line == "":
		case isChange:
			releases[last].Changes = append(releases[last].Changes, templates.NewProse(change))
		default:
			return nil, fmt.Errorf("CHANGELOG.md: line %q is neither a heading nor a change", line)
		}
	}
	return releases, nil
}
