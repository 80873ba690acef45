package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"portal/models/modelstest"
)

func TestSecurityNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	standard := readFile(t, "operations/security-standard.md")
	security := readFile(t, "../../SECURITY.md") + standard
	tests := declaredTests(t, "../..")
	named := regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w+`).FindAllString(security, -1)
	if len(named) < 50 {
		t.Errorf("the documents name only the tests %q", named)
	}
	for _, name := range named {
		if !tests[name] {
			t.Errorf("there is no %s", name)
		}
	}
	// A requirement must not be in both tables.
	met, rest, _ := strings.Cut(standard, "\n## Not met")
	numbers := regexp.MustCompile(`\b\d+\.\d+\.\d+\b`)
	for _, number := range firstCells(rest) {
		if slices.Contains(firstCells(met), number) {
			t.Errorf("%s is both met and not met", number)
		}
	}
	if n := len(numbers.FindAllString(met, -1)); n < 100 {
		t.Errorf("only %d requirements", n)
	}
}

// firstCells returns the numbers in the first column of the tables in text.
func firstCells(text string) (numbers []string) {
	for line := range strings.Lines(text) {
		if cell, _, found := strings.Cut(strings.TrimPrefix(line, "| "), " | "); found {
			numbers = append(numbers, regexp.MustCompile(`\d+\.\d+\.\d+`).FindAllString(cell, -1)...)
		}
	}
	return numbers
}

// declaredTests returns the names of all tests under root.
func declaredTests(t *testing.T, root string) map[string]bool {
	t.Helper()
	declaration := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	names := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		// For a link, SkipDir would skip the rest of its directory.
		if entry != nil && entry.IsDir() && entry.Name() == "node_modules" {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := os.ReadFile(path)
		for _, found := range declaration.FindAllStringSubmatch(string(content), -1) {
			names[found[1]] = true
		}
		return err
	})
	modelstest.Must(t, err)
	return names
}
