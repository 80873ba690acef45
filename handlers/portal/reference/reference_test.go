package reference_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"portal/handlers/portal/reference"
	"portal/templates"
)

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile("../../api/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func page(t *testing.T) templates.Reference {
	t.Helper()
	p, err := reference.New(read(t, "openapi.json"), "https://portal.example.com/")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func operation(t *testing.T, id string) templates.Operation {
	t.Helper()
	for _, group := range page(t).Groups {
		for _, o := range group.Operations {
			if o.ID == id {
				return o
			}
		}
	}
	t.Fatalf("the page has no operation %s", id)
	return templates.Operation{}
}

func TestEveryOperationIsOnOnePage(t *testing.T) {
	t.Parallel()
	var document struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	if err := json.Unmarshal(read(t, "openapi.json"), &document); err != nil {
		t.Fatal(err)
	}
	pages := map[string][]string{}
	all := templates.Documentation{Reference: page(t), Workloads: templates.NewWorkloadGuides("https://portal.example.com"), Operated: true}
	for _, page := range templates.NewDocumentation(all) {
		for _, group := range page.Groups {
			for _, o := range group.Operations {
				pages[o.ID] = append(pages[o.ID], page.Path)
			}
		}
	}
	for _, methods := range document.Paths {
		for _, described := range methods {
			if len(pages[described.OperationID]) != 1 {
				t.Errorf("%s is on the pages %q, want one", described.OperationID, pages[described.OperationID])
			}
		}
	}
}

func TestEveryOperationIsInTheReference(t *testing.T) {
	t.Parallel()
	var document struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	if err := json.Unmarshal(read(t, "openapi.json"), &document); err != nil {
		t.Fatal(err)
	}
	for path, methods := range document.Paths {
		for method, described := range methods {
			o := operation(t, described.OperationID)
			if o.Path != path || !strings.EqualFold(o.Method, method) || o.Summary == "" || len(o.Description) == 0 {
				t.Errorf("%s %s is %+v", method, path, o)
			}
			if !strings.HasPrefix(o.Curl.Code(), "curl ") ||
				!strings.Contains(o.Curl.Code(), "https://portal.example.com"+path) {
				t.Errorf("%s: command %s", o.ID, o.Curl.Code())
			}
			// With a body curl sends POST, and otherwise GET.
			usual := o.Method == http.MethodPost && o.Body != nil || o.Method == http.MethodGet && o.Body == nil
			if strings.Contains(o.Curl.Code(), "-X "+o.Method+" ") == usual {
				t.Errorf("%s: the method is %s: %s", o.ID, o.Method, o.Curl.Code())
			}
			if strings.Contains(o.Curl.Code(), "$NAS_API_KEY") != strings.HasPrefix(path, "/api/") {
				t.Errorf("%s: only operations under /api take a key: %s", o.ID, o.Curl.Code())
			}
		}
	}
}

func TestOperationHasItsBodyResponsesAndExamples(t *testing.T) {
	t.Parallel()
	o := operation(t, "createWidgetToken")
	if o.Body == nil || o.Body.Type != "application/json" || len(o.Body.Fields) != 4 {
		t.Fatalf("body %+v", o.Body)
	}
	if first := o.Body.Fields[0]; first.Name != "agentId" || !first.Required {
		t.Errorf("the first field is %+v", first)
	}
	var statuses []string
	for _, response := range o.Responses {
		statuses = append(statuses, response.Status)
		if response.Failed() != (len(response.Codes) > 0) {
			t.Errorf("%s has the codes %q", response.Status, response.Codes)
		}
	}
	if want := []string{"200", "400", "401", "403", "404", "405", "413", "415", "429", "500", "503"}; !slices.Equal(statuses, want) {
		t.Errorf("responses %v, want %v", statuses, want)
	}
	if len(o.Examples) != 2 || !strings.Contains(o.Examples[0].Code(), `"token_type": "Bearer"`) || !strings.Contains(o.Examples[1].Code(), `"livekit"`) {
		t.Errorf("examples %+v", o.Examples)
	}
	introspection := operation(t, "introspectWidgetToken")
	if shapes := introspection.Responses[0].Shapes; len(shapes) != 3 || shapes[0].Name != "Active token" || len(shapes[0].Fields) != 13 || len(shapes[1].Fields) != 10 {
		t.Errorf("introspection returns %+v", introspection.Responses[0].Shapes)
	}
	if !strings.HasPrefix(introspection.Body.Example, "token=") {
		t.Errorf("the form is %q", introspection.Body.Example)
	}
	agents := operation(t, "listAgents").Responses[0].Shapes[0].Fields
	if len(agents) != 2 || len(agents[0].Fields) != 3 || agents[0].Fields[0].Type != "string (uuid)" {
		t.Errorf("agents have the fields %+v", agents)
	}
}

func TestEveryErrorCodeIsInTheTable(t *testing.T) {
	t.Parallel()
	var document struct {
		Components struct {
			Schemas map[string]struct{ Enum []string }
		}
	}
	if err := json.Unmarshal(read(t, "openapi.json"), &document); err != nil {
		t.Fatal(err)
	}
	var codes []string
	meanings := map[string]string{}
	for _, row := range page(t).Errors {
		meaning := fmt.Sprint(row.Description)
		if other, taken := meanings[meaning]; taken {
			t.Errorf("%s and %s both mean %s", other, row.Code, meaning)
		}
		meanings[meaning] = row.Code
		codes = append(codes, row.Code)
		if len(row.Status) != 3 || len(row.Description) == 0 || len(row.Messages) == 0 || row.Messages[0].Message == "" {
			t.Errorf("row %+v", row)
		}
		for _, message := range row.Messages {
			if row.Code == "UNAUTHORIZED" && message.Cause == "" {
				t.Errorf("no cause of %q", message.Message)
			}
		}
	}
	if want := document.Components.Schemas["ErrorCode"].Enum; !slices.Equal(codes, want) {
		t.Errorf("codes %v, want %v", codes, want)
	}
}

func TestMessagesAreInTheRowOfTheirCode(t *testing.T) {
	t.Parallel()
	reasons := map[string][]string{}
	for _, row := range page(t).Errors {
		for _, message := range row.Messages {
			if !slices.Contains(reasons[row.Code], message.Reason) {
				reasons[row.Code] = append(reasons[row.Code], message.Reason)
			}
		}
	}
	for code, want := range map[string][]string{
		"AGENT_NOT_ALLOWED": {"agent"}, "ADDRESS_NOT_ALLOWED": {"address"},
		// Of keys, of access tokens, of widget tokens and of the operator token.
		"UNAUTHORIZED": {
			"missing", "scheme", "prefix", "malformed", "unknown", "revoked", "expired",
			"token_invalid", "token_expired", "trust_changed", "account_disabled",
			"token_missing", "token_revoked", "agent_paused", "agent",
		},
	} {
		if got := reasons[code]; !slices.Equal(got, want) {
			t.Errorf("%s has the reasons %q, want %q", code, got, want)
		}
	}
}

func TestParametersAndOtherCredentialsAreShown(t *testing.T) {
	t.Parallel()
	p, err := reference.New([]byte(`{"tags": [{"name": "A"}],
		"components": {
			"parameters": {"Limit": {"name": "limit", "in": "query", "description": "At most.", "schema": {"type": "integer", "minimum": 1, "maximum": 9}}},
			"securitySchemes": {"operatorToken": {"description": "The operator's token."}}
		},
		"paths": {"/things/{id}": {
			"parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": ["string", "null"], "format": "uuid"}}],
			"delete": {"operationId": "d", "tags": ["A"], "security": [{"operatorToken": []}], "parameters": [{"$ref": "#/components/parameters/Limit"}]},
			"get": {"operationId": "g", "tags": ["A"], "security": []}
		}}}`), "https://portal.example.com")
	if err != nil {
		t.Fatal(err)
	}
	get, remove := p.Groups[0].Operations[0], p.Groups[0].Operations[1]
	if len(remove.Parameters) != 2 || remove.Parameters[0].Type != "string or null (uuid), path" || remove.Parameters[1].Type != "integer (1 to 9), query" {
		t.Errorf("parameters %+v", remove.Parameters)
	}
	if remove.Scheme != "operatorToken" || len(remove.Authentication) != 1 || get.Scheme != "" {
		t.Errorf("credentials of %+v and %+v", remove, get)
	}
	want := "curl -X DELETE https://portal.example.com/things/{id} \\\n" +
		"  -H \"Authorization: Bearer $PORTAL_OPERATOR_TOKEN\""
	if remove.Curl.Code() != want {
		t.Errorf("command %s, want %s", remove.Curl.Code(), want)
	}
}

func TestMissingComponentIsAnError(t *testing.T) {
	t.Parallel()
	for name, document := range map[string]string{
		"no JSON":     `{`,
		"no response": `{"tags": [{"name": "A"}], "paths": {"/a": {"get": {"tags": ["A"], "responses": {"200": {"$ref": "#/components/responses/Gone"}}}}}}`,
		"no schema": `{"tags": [{"name": "A"}], "paths": {"/a": {"get": {"tags": ["A"], "responses": {"200": {"content": {"application/json": {"schema":
			{"$ref": "#/components/schemas/Gone"}}}}}}}}}`,
	} {
		if _, err := reference.New([]byte(document), "https://portal.example.com"); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestChangelogBeginsWithTheCurrentVersion(t *testing.T) {
	t.Parallel()
	releases, err := reference.Changelog(string(read(t, "CHANGELOG.md")))
	if err != nil {
		t.Fatal(err)
	}
	if len(releases) < 2 || releases[0].Version != page(t).Version {
		t.Errorf("releases %+v, want %s first", releases, page(t).Version)
	}
	for i, release := range releases {
		if len(release.Changes) == 0 || i > 0 && release.Date > releases[i-1].Date {
			t.Errorf("release %+v", release)
		}
	}
}

func TestUnreadableChangelogIsAnError(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"## 1.0.0\n", "## 1.0.0, soon\n", "## 1.0.0, 2026-11-20\nnot a change\n"} {
		if _, err := reference.Changelog(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}
