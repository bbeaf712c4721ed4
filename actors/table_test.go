package actors_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	ourTest   = regexp.MustCompile("`(?:([a-z/]+)\\.)?((?:Test|Fuzz)\\w+)`")
	ourScript = regexp.MustCompile("`([a-z-]+\\.txt)`")
)

// The tests and the scripts that EVIDENCE.md names exist.
func TestTableOfTests(t *testing.T) {
	page, err := os.ReadFile("../.github/EVIDENCE.md")
	if err != nil {
		t.Fatal(err)
	}
	folders := map[string]string{}
	named := ourTest.FindAllStringSubmatch(string(page), -1)
	for _, m := range named {
		folder, test := m[1], m[2]
		if folders[folder] == "" {
			folders[folder] = sources(t, folder)
		}
		parameter := "(" + strings.ToLower(test[:1]) + " *testing." + test[:1] + ")"
		if !strings.Contains(folders[folder], "\nfunc "+test+parameter) {
			t.Errorf("there is no %s", m[0])
		}
	}
	for _, m := range ourScript.FindAllStringSubmatch(string(page), -1) {
		if found, err := filepath.Glob(filepath.Join("internal", "*", "testdata", m[1])); err != nil || len(found) == 0 {
			t.Errorf("there is no %s, %v", m[0], err)
		}
	}
	if len(named) < 100 {
		t.Errorf("the table names %d tests", len(named))
	}
}

// sources are the test files of a folder of this folder, or else of the module. Without a folder
// they are those of this folder and of its tests.
func sources(t *testing.T, folder string) string {
	pattern := filepath.Join(folder, "*_test.go")
	if _, err := os.Stat(folder); folder != "" && err != nil {
		pattern = filepath.Join("..", pattern)
	}
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests in %q: %v", folder, err)
	}
	if folder == "" {
		tests, err := filepath.Glob("tests/*/*_test.go")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, tests...)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
