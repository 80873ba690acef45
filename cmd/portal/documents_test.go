package main

import (
	"os"
	"path/filepath"
	"regexp"
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
