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

// The values are those that systemd's load_env_file returns.
func TestEnvFilesAreReadAsSystemdReadsThem(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		content string
		want    []string // names and values in turn
	}{
		{"A=1\nB=2", []string{"A", "1", "B", "2"}},
		{" A = a b \t\n", []string{"A", "a b"}},
		{"# A=1\n ; B=2\n\nnothing\nC=#3;", []string{"C", "#3;"}},
		{"# a comment that ends in \\\nA=1", []string{"A", "1"}},
		{"A=<a&b>$HOME`x`*", []string{"A", "<a&b>$HOME`x`*"}},
		{"A=é", []string{"A", "é"}},
		{"A=a=b", []string{"A", "a=b"}},
		{"A=\nB=", []string{"A", "", "B", ""}},
		{"=A=1\n=\n", []string{"=A", "1"}},
		{"A=1\r\nB=2\r\n", []string{"A", "1", "B", "2"}},
		{"A=one \\\n two\nB=3", []string{"A", "one  two", "B", "3"}},
		{`A=a\ b\\c\"d\n\ `, []string{"A", `a b\c"dn `}},
		{`A=it's "quoted"`, []string{"A", `it's "quoted"`}},
		{`A=' a "\n$b '  `, []string{"A", ` a "\n$b `}},
		{"A='two\nlines'\nB=1", []string{"A", "two\nlines", "B", "1"}},
		{"A=\" a 'b' \\\"c\\\" \\$d \\\\ \\n \\\ne\"\nB=1", []string{"A", ` a 'b' "c" $d \ \n e`, "B", "1"}},
		{`A='a' "b"c 'd'`, []string{"A", "abc 'd'"}},
		{"A='open\nB=1", []string{"A", "open\nB=1"}},
		{`A="open\`, []string{"A", "open"}},
		{`A=open\`, []string{"A", "open"}},
		{"export A=1\nB 2=3", []string{"export A", "1", "B 2", "3"}},
	} {
		var got []string
		for _, assigned := range parseEnvFile(test.content) {
			got = append(got, assigned.name, assigned.value)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%q: got %q, want %q", test.content, got, test.want)
		}
	}
}

func TestEveryCommandReadsAnEnvFile(t *testing.T) {
	t.Parallel()
	url := modelstest.SQLiteURL(t)
	createAccount(t, modelstest.Open(t, url, models.Options{}))
	file := filepath.Join(t.TempDir(), "portal env")
	writeFile(t, file, "DATABASE_URL=sqlite:/nowhere\nDATABASE_URL=\""+url+"\"\nPORTAL_SECRT=hunter2\nhunter3 hunter4=hunter5\n")

	for _, args := range [][]string{{"account", "list", "--env-file", file}, {"--env-file=" + file, "account", "list"}, {"--env-file", file, "account", "list"}} {
		r := portal(t, []string{"DATABASE_URL="}, "", args...)
		if r.status != 0 || !strings.Contains(r.stdout, "Ada") || !strings.Contains(r.stderr, "PORTAL_SECRT") || !strings.Contains(r.stderr, "line 4") {
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

	binary := filepath.Join(t.TempDir(), "binary")
	writeFile(t, binary, "A=\xff")
	long := filepath.Join(t.TempDir(), "long")
	writeFile(t, long, strings.Repeat("#", maxEnvFile+1))
	for path, words := range map[string]string{
		"/nowhere/portal.env": "--env-file /nowhere/portal.env: no such file", os.TempDir(): "is a directory", binary: "not UTF-8", long: "longer than 1048576 bytes",
	} {
		portal(t, nil, "", "account", "list", "--env-file", path).failsWith(t, words)
	}
}
