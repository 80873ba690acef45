package e2e

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"portal/models/modelstest"
)

// control is an element that a suite finds by its role and accessible name.
type control struct{ role, name string }

// documentedControls returns the rows of the tables of roles and names in README.md.
func documentedControls(t *testing.T) map[control]bool {
	t.Helper()
	_, text, found := strings.Cut(readFile(t, "README.md"), "\n## Roles and names\n")
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

// finders match, by role, the calls of the page objects that find a control by a constant name. The
// last group is the name. Without a role, the first group is the role.
var finders = map[string]string{
	"":         `(?:find|In|Expect|ExpectNo|Focus|ExpectFocus|Text|Count|ExpectAttribute|download)\("(\w+)", "([^"]+)"`,
	"button":   `Click\("([^"]+)"`,
	"link":     `Follow\("([^"]+)"`,
	"combobox": `Choose\("([^"]+)"`,
	"textbox":  `(?:Fill|Value)\("([^"]+)"`,
	"heading":  `(?:ExpectHeading|expectPage|open)\(.*"([^"]+)"\)`,
	"dialog":   `expectReveal\([^"\n]*"([^"]+)"`,
}

// usedControls returns the controls that the page objects find, and the file of each.
func usedControls(t *testing.T) map[control]string {
	t.Helper()
	controls := map[control]string{}
	for _, path := range modelstest.Value(filepath.Glob("pages/*.go"))(t) {
		code := readFile(t, path)
		for role, finder := range finders {
			for _, call := range regexp.MustCompile(`\b`+finder).FindAllStringSubmatch(code, -1) {
				controls[control{cmp.Or(role, call[1]), call[len(call)-1]}] = path
			}
		}
	}
	return controls
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
	for c := range documented {
		for part := range strings.SplitSeq(capitals.ReplaceAllString(c.name, "\x00"), "\x00") {
			if !strings.Contains(pages.String(), strings.TrimSpace(part)) {
				t.Errorf("no page has the %s %q of README.md", c.role, c.name)
			}
		}
	}
}
