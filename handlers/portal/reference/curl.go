package reference

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"portal/templates"
)

const formType = "application/x-www-form-urlencoded"

// curl returns a command that calls the operation at BASE_URL with the credentials in a variable.
func curl(o templates.Operation) string {
	lines := []string{"curl BASE_URL" + o.Path}
	usual := http.MethodGet // what curl sends without -X
	if o.Body != nil {
		usual = http.MethodPost
	}
	if o.Method != usual {
		lines[0] = "curl -X " + o.Method + " BASE_URL" + o.Path
	}
	switch o.Scheme {
	case "":
	case templates.SchemeAPIKey:
		lines = append(lines, `-H "Authorization: Bearer $NAS_API_KEY"`)
	case "operatorToken":
		lines = append(lines, `-H "Authorization: Bearer $PORTAL_OPERATOR_TOKEN"`)
	default:
		lines = append(lines, `-H "Authorization: Bearer $WIDGET_TOKEN"`)
	}
	switch {
	case o.Body == nil:
	case o.Body.Type == formType:
		lines = append(lines, "-d "+shellQuoted(o.Body.Example))
	default:
		lines = append(lines, `-H "Content-Type: `+o.Body.Type+`"`, "-d "+shellQuoted(o.Body.Example))
	}
	return strings.Join(lines, " \\\n  ")
}

// shellQuoted returns text as one word of a shell command.
func shellQuoted(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

func formText(fields map[string]string) string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		pairs = append(pairs, name+"="+url.QueryEscape(fields[name]))
	}
	return strings.Join(pairs, "&")
}
