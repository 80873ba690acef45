package main

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"portal/models/modelstest"
)

var writeDocuments = flag.Bool("write", false, "write the settings to OPERATIONS.md and portal.env.example")

const (
	exampleFile   = "operations/portal.env.example"
	operationsDoc = "../../OPERATIONS.md"
)

// documentedRow is the row of a setting in the documents.
func documentedRow(row setting) string {
	standard := ""
	if row.standard != "" {
		standard = " `" + row.standard + "`"
	}
	return "| `" + row.name + "` |" + standard + " | " + row.help + " |\n"
}

// documentedTables has a table for each group of settings.
func documentedTables() string {
	var text strings.Builder
	group := forTests
	for _, row := range settingRows() {
		if row.group == forTests {
			continue
		}
		if row.group != group {
			group = row.group
			fmt.Fprintf(&text, "\n### %s\n\n| setting | default | meaning |\n| --- | --- | --- |\n", group)
		}
		text.WriteString(documentedRow(row))
	}
	return text.String()
}

// example is a file with all settings, commented out.
func example() string {
	var text strings.Builder
	text.WriteString("# Every setting of the portal. Remove the # before a line to set it. Copy what you need to\n" +
		"# /etc/portal.env with mode 0600: the secrets are in it.\n")
	group := forTests
	for _, row := range settingRows() {
		if row.group == forTests {
			continue
		}
		if row.group != group {
			group = row.group
			fmt.Fprintf(&text, "\n## %s\n", group)
		}
		text.WriteString("\n")
		line := "#"
		for word := range strings.FieldsSeq(row.text()) {
			if len(line)+1+len(word) > 100 {
				text.WriteString(line + "\n")
				line = "#"
			}
			line += " " + word
		}
		value := row.example
		if value == "" {
			value = row.standard
		}
		if strings.ContainsAny(value, " #") {
			value = "'" + value + "'"
		}
		fmt.Fprintf(&text, "%s\n#%s=%s\n", line, row.name, value)
	}
	return text.String()
}

// With -write, the test writes what it checks.
func TestSettingsAreDocumentedFromTheirTable(t *testing.T) {
	t.Parallel()
	guide := readFile(t, operationsDoc)
	before, rest, found := strings.Cut(guide, "\n### "+inProduction+"\n")
	_, after, ended := strings.Cut(rest, "\n## ")
	if !found || !ended {
		t.Fatal("OPERATIONS.md has no tables of settings")
	}
	want := before + documentedTables() + "\n## " + after
	if *writeDocuments {
		writeFile(t, operationsDoc, want)
		writeFile(t, exampleFile, example())
		return
	}
	const repair = "run: go test ./cmd/portal -run TestSettingsAreDocumented -args -write"
	if guide != want {
		t.Errorf("the tables of OPERATIONS.md differ from the settings; %s", repair)
	}
	if readFile(t, exampleFile) != example() {
		t.Errorf("%s differs from the settings; %s", exampleFile, repair)
	}
	var first []string
	for line := range strings.Lines(readFile(t, "../../README.md")) {
		if strings.HasPrefix(line, "| `PORTAL_") || strings.HasPrefix(line, "| `DATABASE_URL`") {
			if first = append(first, line); !strings.Contains(want, line) {
				t.Errorf("README.md has a row that OPERATIONS.md does not have: %s", line)
			}
		}
	}
	if len(first) != 8 {
		t.Errorf("README.md has %d settings, want the eight that matter first", len(first))
	}
}

// A setting in the file of examples that is not commented out is valid.
func TestTheFileOfExamplesIsValid(t *testing.T) {
	logo := filepath.Join(t.TempDir(), "logo.svg")
	writeFile(t, logo, readFile(t, "../../static/favicon.svg"))
	text := regexp.MustCompile(`(?m)^#([A-Z_]+=)`).ReplaceAllString(readFile(t, exampleFile), "$1")
	all, err := parseEnvFile(text)
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"PORTAL_SECRET": goodSecret, "PORTAL_SECRET_PREVIOUS": goodSecret + "0", "PORTAL_OPERATOR_TOKEN": goodSecret, "PORTAL_OIDC_CLIENT_SECRET": goodSecret,
		"PORTAL_LIVEKIT_API_SECRET": goodSecret, "PORTAL_LOGO": logo,
	}
	for _, assigned := range all {
		if env[assigned.name] == "" {
			env[assigned.name] = assigned.value
		}
	}
	for _, row := range settingRows() {
		if _, listed := env[row.name]; !listed && row.group != forTests {
			t.Errorf("%s is not in the file", row.name)
		}
	}
	expectErrors(t, env)
}

// A document that names a setting that does not exist misleads its reader.
func TestDocumentsNameOnlySettingsThatExist(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, row := range settingRows() {
		known[row.name] = true
	}
	files := []string{
		operationsDoc, "../../README.md", "../../SECURITY.md", "../../CHANGELOG.md", "../../compose.yaml", "../../Dockerfile", "../../e2e/README.md",
	}
	for _, root := range []string{"operations", "../../templates"} {
		modelstest.Must(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				files = append(files, path)
			}
			return err
		}))
	}
	name := regexp.MustCompile(`\bPORTAL_[A-Z0-9_]*[A-Z0-9]\b`)
	for _, file := range files {
		unknown := map[string]bool{}
		for _, found := range name.FindAllString(readFile(t, file), -1) {
			// "the PORTAL_OIDC variables" are a group.
			group := slices.ContainsFunc(slices.Collect(maps.Keys(known)), func(known string) bool { return strings.HasPrefix(known, found+"_") })
			unknown[found] = !known[found] && !group
		}
		maps.DeleteFunc(unknown, func(_ string, is bool) bool { return !is })
		if len(unknown) > 0 {
			t.Errorf("%s names %v", file, slices.Sorted(maps.Keys(unknown)))
		}
	}
	if _, err := os.Stat(exampleFile); err != nil {
		t.Error(err)
	}
}
