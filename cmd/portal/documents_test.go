package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"portal/models/modelstest"
)

func TestVersionIsTheFirstOfTheChangelog(t *testing.T) {
	t.Parallel()
	heading := regexp.MustCompile(`(?m)^## (\d+\.\d+\.\d+),`).FindStringSubmatch(readFile(t, "../../CHANGELOG.md"))
	if len(heading) < 2 || heading[1] != version {
		t.Errorf("the version is %s, and the first heading of CHANGELOG.md is %q", version, heading)
	}
}

func TestArchitectureNamesFilesThatExistAndEveryPackage(t *testing.T) {
	t.Parallel()
	text := readFile(t, "../../ARCHITECTURE.md")
	named := map[string]bool{}
	for _, path := range regexp.MustCompile("`([^` ]*[/.][^` ]*)`").FindAllStringSubmatch(text, -1) {
		named[filepath.Clean(path[1])] = true
		if _, err := os.Stat(filepath.Join("..", "..", path[1])); err != nil {
			t.Error(err)
		}
	}
	if len(named) < 80 {
		t.Errorf("only %d files are named", len(named))
	}
	for _, root := range []string{"cmd", "handlers", "models"} {
		for _, file := range modelstest.Value(filepath.Glob("../../" + root + "/*/*.go"))(t) {
			if folder := root + "/" + filepath.Base(filepath.Dir(file)); !named[folder] {
				t.Errorf("%s is not named", folder)
				named[folder] = true
			}
		}
	}
}

func TestSecurityNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	tests := declaredTests(t, "../..")
	for _, name := range regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w+`).FindAllString(readFile(t, "../../SECURITY.md"), -1) {
		if !tests[name] {
			t.Errorf("there is no %s", name)
		}
	}
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
