package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"portal/models"
	"portal/models/modelstest"
)

// Systemd, Docker Compose and dotenv read these forms alike, or the others cannot read them.
func TestEnvFilesAreReadInTheFormsOfCommonTools(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		content string
		want    []string // names and values in turn
	}{
		{"A=1\nB=2", []string{"A", "1", "B", "2"}},
		{" A = a b \t\n", []string{"A", "a b"}},
		{"# A=1\n ; B=2\n\n\t\nC=#3;", []string{"C", "#3;"}},
		{"# a comment that ends in \\\nA=1", []string{"A", "1"}},
		{"A=<a&b>$HOME`x`*", []string{"A", "<a&b>$HOME`x`*"}},
		{"A=é", []string{"A", "é"}},
		{"A=a=b==", []string{"A", "a=b=="}},
		{"A=\nB=", []string{"A", "", "B", ""}},
		{"A=1\r\nB='2'\r\n", []string{"A", "1", "B", "2"}},
		{"A=1\rB=2\r", []string{"A", "1", "B", "2"}},
		{"\ufeffA=1\n", []string{"A", "1"}},
		{"export A=1\n  export\tB = '2'\nexported=3", []string{"A", "1", "B", "2", "exported", "3"}},
		{"A=one \\\n two\nB=3", []string{"A", "one  two", "B", "3"}},
		{`A=it's "quoted"`, []string{"A", `it's "quoted"`}},
		{`A=' a "\n$b ${c} # d'  `, []string{"A", ` a "\n$b ${c} # d`}},
		{"A='two\r\nlines'\nB=1", []string{"A", "two\nlines", "B", "1"}},
		{"A=\" a 'b' \\\"c\\\" \\$d \\\\ # \\\ne\"\nB=1", []string{"A", ` a 'b' "c" $d \ # e`, "B", "1"}},
		{`A="a" # a comment`, []string{"A", "a"}},
		{"A='a' #\nB=\"\"", []string{"A", "a", "B", ""}},
		{"A=1\nA=2", []string{"A", "1", "A", "2"}},
		{"A=a#b", []string{"A", "a#b"}},
	} {
		all, err := parseEnvFile(test.content)
		var got []string
		for _, assigned := range all {
			got = append(got, assigned.name, assigned.value)
		}
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%q: got %q, error %v, want %q", test.content, got, err, test.want)
		}
	}
}

// Tools read these differently, so a part of a secret could be lost without a word.
func TestEnvFilesAreReadWholeOrRefusedWithTheLine(t *testing.T) {
	t.Parallel()
	for content, words := range map[string]string{
		"A=1\nhunter2\nB=3":                  "line 2|NAME=value",
		"A=1\r\nhunter2\r\n":                 "line 2|NAME=value",
		"A=1\rhunter2":                       "line 2|NAME=value",
		"\n=hunter2":                         "line 2|NAME=value",
		"hunter2 hunter3=4":                  "line 1|NAME=value",
		"declare -x A=\"hunter2\"":           "line 1|NAME=value",
		"A-B=hunter2":                        "line 1|NAME=value",
		"export hunter2":                     "line 1|NAME=value",
		"A=hunter2 # comment":                "line 1|#|quotes",
		"A= # hunter2":                       "line 1|#|quotes",
		"B=1\nA=hunter2\\hunter3":            "line 2|backslash|single quotes",
		`A="hunter\n2"`:                      "line 1|backslash|single quotes",
		"B=1\nA=hunter\\":                    "line 2|backslash|single quotes",
		"A='1'\nB=\"hunter2\nC=hunter3":      "line 2|no closing",
		"A='hunter2\nB=hunter3\n":            "line 1|no closing",
		"A=\"hunter2\\\"":                    "line 1|no closing",
		"A='hunter2'hunter3":                 "line 1|after the closing quote",
		`A='it'\''s hunter2'`:                "line 1|after the closing quote",
		"A=\"x\nB=\"hunter2":                 "line 2|after the closing quote",
		"A='hunter2'#3":                      "line 1|after the closing quote",
		"A=postgres://portal:${HUNTER}@db":   "line 1|${",
		"A=\"$(hunter2)\"":                   "line 1|$(",
		"A=1\nB=hunter\x00":                  "line 2|control character",
		"A=1\nB=hunter\x1b":                  "line 2|control character",
		"A=1\nB='\nhunter\xff'":              "line 3|UTF-8",
		"\xff\xfeA\x00=\x00h\x00":            "UTF-16",
		"\xfe\xff\x00A\x00=\x00h":            "UTF-16",
		"A\x00=\x00hunter2":                  "line 1|control character",
		strings.Repeat("#", maxEnvFile+1):    "longer than 1048576 bytes",
		"A=1\n\n# é\nB=2\nC='a\nb'\nhunter2": "line 7",
	} {
		file := filepath.Join(t.TempDir(), "portal.env")
		writeFile(t, file, content)
		all, err := readEnvFile(file)
		if err == nil || all != nil || strings.Contains(strings.ToLower(err.Error()), "hunter") {
			t.Errorf("%.50q: got %q, error %v", content, all, err)
			continue
		}
		for word := range strings.SplitSeq(words, "|") {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%.50q: want %q in %q", content, word, err)
			}
		}
	}
}

func TestEveryCommandReadsAnEnvFile(t *testing.T) {
	t.Parallel()
	url := modelstest.SQLiteURL(t)
	createAccount(t, modelstest.Open(t, url, models.Options{}))
	file := filepath.Join(t.TempDir(), "portal env")
	writeFile(t, file, "DATABASE_URL=sqlite:/nowhere\nDATABASE_URL=\""+url+"\"\nPORTAL_SECRT=hunter2\n")

	for _, args := range [][]string{{"account", "list", "--env-file", file}, {"--env-file=" + file, "account", "list"}, {"--env-file", file, "account", "list"}} {
		r := portal(t, []string{"DATABASE_URL="}, "", args...)
		if r.status != 0 || !strings.Contains(r.stdout, "Ada") || !strings.Contains(r.stderr, "PORTAL_SECRT") {
			t.Errorf("%q: %+v", args, r)
		}
		if strings.Contains(r.stderr, "hunter") {
			t.Errorf("the file is in %q", r.stderr)
		}
	}
	r := portal(t, []string{"DATABASE_URL=sqlite:/nowhere/else"}, "", "account", "list", "--env-file", file)
	if r.status == 0 || !strings.Contains(r.stderr, "/nowhere/else") {
		t.Errorf("the environment does not win: %+v", r)
	}
	i := start(t, []string{anyPort}, "--env-file", file)
	i.Get("/readyz").Is(200)

	i.stop(t)
	blank := portal(t, []string{"DATABASE_URL= \n"}, "", "account", "list", "--env-file", file)
	if blank.status != 0 {
		t.Errorf("a blank variable counts as set: %+v", blank)
	}

	broken := filepath.Join(t.TempDir(), "broken")
	writeFile(t, broken, "DATABASE_URL="+url+"\nhunter2\n")
	for path, words := range map[string]string{
		"/nowhere/portal.env": "portal: --env-file /nowhere/portal.env: no such file", os.TempDir(): "is a directory", broken: "line 2",
	} {
		for _, args := range [][]string{{"account", "list"}, {}, {"version"}} {
			r := portal(t, nil, "", append(args, "--env-file", path)...)
			r.failsWith(t, words)
			if r.status != exitInvalid || strings.Contains(r.stderr, "hunter") {
				t.Errorf("%q: %+v", args, r)
			}
		}
	}
}
