package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"portal/models/modelstest"
)

// control is an element that a suite finds by its role and accessible name.
type control struct{ role, name string }

// documentedControls returns the rows of the tables of roles and names in README.md.
func documentedControls(t *testing.T) map[control]bool {
	t.Helper()
	text := string(modelstest.Value(os.ReadFile("README.md"))(t))
	_, text, found := strings.Cut(text, "\n## Roles and names\n")
	if !found {
		t.Fatal("README.md has no roles and names")
	}
	controls := map[control]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| ([a-z]+) \| ([^|]+) \|`).FindAllStringSubmatch(text, -1) {
		if row[1] != "role" {
			controls[control{row[1], row[2]}] = true
		}
	}
	return controls
}

// A method of the page objects that finds a control: the argument with the name, and either the
// role or, if it is empty, the argument with the role before the name.
var finders = map[string]struct {
	role string
	name int
}{
	"Click": {"button", 0}, "DoubleClick": {"button", 0}, "Follow": {"link", 0}, "Choose": {"combobox", 0},
	"Fill": {"textbox", 0}, "Value": {"textbox", 0},
	"ExpectHeading": {"heading", 0}, "expectPage": {"heading", 1}, "open": {"heading", 1}, "openDocs": {"heading", 2},
	"expectReveal": {"dialog", 1}, "find": {"", 1}, "In": {"", 1}, "Expect": {"", 1}, "ExpectNo": {"", 1}, "Focus": {"", 1},
	"ExpectFocus": {"", 1}, "Text": {"", 1}, "Count": {"", 1}, "ExpectAttribute": {"", 1}, "download": {"", 1},
}

// usedControls returns the controls that the page objects find under a constant role and name, and
// a place of each.
func usedControls(t *testing.T) map[control]string {
	t.Helper()
	controls := map[control]string{}
	files := token.NewFileSet()
	for _, path := range modelstest.Value(filepath.Glob("pages/*.go"))(t) {
		file := modelstest.Value(parser.ParseFile(files, path, nil, 0))(t)
		ast.Inspect(file, func(n ast.Node) bool {
			if function, ok := n.(*ast.FuncDecl); ok && function.Name.Name == "SignInAtProvider" {
				return false // another site
			}
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			finder, known := finders[calledName(call)]
			role, name := finder.role, constant(call.Args, finder.name)
			if role == "" {
				role = constant(call.Args, finder.name-1)
			}
			if known && role != "" && name != "" {
				controls[control{role, name}] = files.Position(call.Pos()).String()
			}
			return true
		})
	}
	return controls
}

// calledName returns the name of the called function or method.
func calledName(call *ast.CallExpr) string {
	switch function := call.Fun.(type) {
	case *ast.Ident:
		return function.Name
	case *ast.SelectorExpr:
		return function.Sel.Name
	}
	return ""
}

// constant returns the argument with this index, or "" if it is not a string literal.
func constant(arguments []ast.Expr, index int) string {
	if index < 0 || index >= len(arguments) {
		return ""
	}
	literal, ok := arguments[index].(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	text, _ := strconv.Unquote(literal.Value)
	return text
}

// Suites outside this repository are written from README.md alone.
func TestREADMEHasTheRolesAndNamesOfThePages(t *testing.T) {
	documented, used := documentedControls(t), usedControls(t)
	if len(used) < 60 {
		t.Fatalf("the page objects find only %d controls", len(used))
	}
	for c, place := range used {
		if !documented[c] {
			t.Errorf("%s: README.md lacks the %s %q", place, c.role, c.name)
		}
	}
	var pages strings.Builder
	for _, dir := range []string{"templates", "handlers/portal"} {
		modelstest.Must(t, filepath.WalkDir(filepath.Join("..", dir), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := os.ReadFile(path)
			pages.Write(content)
			return err
		}))
	}
	capitals := regexp.MustCompile(`\b[A-Z]{4,}\b`) // a value in a name
	for _, c := range slices.Collect(maps.Keys(documented)) {
		for part := range strings.SplitSeq(capitals.ReplaceAllString(c.name, "\x00"), "\x00") {
			if !strings.Contains(pages.String(), strings.TrimSpace(part)) {
				t.Errorf("no page has the %s %q of README.md", c.role, c.name)
			}
		}
	}
}
